"""An interpreter for `--perf-python` that keeps what real workers say on a tape, or says it again without torch.

With TAPE_PYTHON, every process is a real one under that interpreter, and what it was asked and answered goes on the
tape. Without, nothing real starts: a process answers what the tape has for its place in the order of starts. So a run
of the controller can be repeated anywhere, to the last digit.

TAPE names a folder: one file of the tape for each process, `here` for what this run has started. TAPE_PLACES has the
folders of this machine by their names, as JSON: the tape has the names alone.
"""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, NoReturn

KIND = 1
"""Where boot.py's entry stands among the words behind `python [-u]`."""


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "-u"]
    tape = Path(os.environ["TAPE"])
    number = _number(tape)
    path = tape / f"{number:03}.json"
    if words[KIND] == "worker":
        requests, replies = (int(word) for word in words[KIND + 1 :])
        with os.fdopen(requests) as asked, os.fdopen(replies, "w") as told:
            if python := os.environ.get("TAPE_PYTHON"):
                record(python, words[0], asked, told, path)
            else:
                replay(asked, told, path)
    elif python := os.environ.get("TAPE_PYTHON"):
        record_answer(python, words, path)
    else:
        replay_answer(words, path)


def _number(tape: Path) -> int:
    """This process's place in the order of starts, beginning with 0. The controller waits for each before the next."""
    for number in itertools.count():
        with contextlib.suppress(FileExistsError):
            (tape / "here" / str(number)).touch(exist_ok=False)
            return number
    raise AssertionError


def record(python: str, boot: str, asked: IO[str], told: IO[str], path: Path) -> None:
    """Stand between the controller and a real worker, and keep each request with the lines that it was answered by."""
    requests, ours = os.pipe()
    mine, replies = os.pipe()
    worker = subprocess.Popen(
        [python, "-u", boot, "worker", str(requests), str(replies)],
        env={**os.environ, "IPEXPERF_CONTROLLER": str(os.getpid())},  # it dies with us, and we with the controller
        pass_fds=(requests, replies),
        start_new_session=True,
    )
    os.close(requests)
    os.close(replies)
    talk: list[dict[str, Any]] = []
    with os.fdopen(ours, "w") as to, os.fdopen(mine) as answers:
        request: dict[str, Any] | None = None
        while True:
            said = _reply(answers)
            over = not said or "say" in said[-1] or (request is not None and request["do"] == "close")
            code = worker.wait() if over else None
            talk.append({"asked": request, "said": said, "made": _made(request)})
            _write(path, {"worker": talk, "code": code})  # first: the controller may kill us once it has the reply
            for document in said:
                told.write(json.dumps(document) + "\n")
            told.flush()
            line = "" if over else asked.readline()
            if not line:
                break
            request = json.loads(line)
            to.write(line)
            to.flush()
    if code is not None:
        _end(code)


def _reply(answers: IO[str]) -> list[dict[str, Any]]:
    """The next reply, with the progress before it. Nothing behind the progress: the worker has ended."""
    said: list[dict[str, Any]] = []
    for line in answers:
        said.append(json.loads(line))
        if "say" not in said[-1]:
            break
    return said


def replay(asked: IO[str], told: IO[str], path: Path) -> None:
    """Answer each request with what the tape has behind it, which must be the same request."""
    kept = _read(path)
    for number, talk in enumerate(kept["worker"]):
        if number:
            line = asked.readline()
            if not line:
                return
            request = json.loads(line)
            if (found := _essence(request)) != (expected := _essence(talk["asked"])):
                told.write(json.dumps(_failure(f"was asked {found} where the tape {path.name} has {expected}")) + "\n")
                return
            for name in talk["made"]:
                Path(request["path"]).with_name(name).write_bytes(b"from the tape")
        for document in talk["said"]:
            told.write(json.dumps(document) + "\n")
            told.flush()
    if kept["code"] is not None:
        _end(kept["code"])
    asked.read()  # until the controller has ended the real one


def _essence(request: dict[str, Any]) -> dict[str, Any]:
    """What of a request the tape must have too: not which place or how many warm steps chance has chosen."""
    return {name: request[name] for name in ("do", "case", "count", "block") if name in request}


def _made(request: dict[str, Any] | None) -> list[str]:
    """The files that it made where a request wanted one: that, and those that are named after it."""
    path = Path(request["path"]) if request and "path" in request else None
    return [file.name for file in path.parent.glob(f"{path.name}*")] if path else []


def _failure(reason: str) -> dict[str, Any]:
    return {"ok": False, "outcome": "error", "reason": reason}


def record_answer(python: str, words: list[str], path: Path) -> None:
    """Run a process that answers once, on its output or into a descriptor that it is given, and keep both."""
    into = _into(words)
    done = subprocess.run([python, *words], stdout=subprocess.PIPE, text=True, check=False, pass_fds=into)
    written = [os.pread(number, os.fstat(number).st_size, 0).decode() for number in into]
    _write(path, {"answer": words[KIND], "said": done.stdout, "written": written, "code": done.returncode})
    sys.stdout.write(done.stdout)
    _end(done.returncode)


def replay_answer(words: list[str], path: Path) -> None:
    kept = _read(path)
    if kept.get("answer") != words[KIND]:
        raise SystemExit(f"{words[KIND]} was started where the tape {path.name} has {kept.get('answer', 'a worker')}")
    for number, text in zip(_into(words), kept["written"], strict=True):
        os.write(number, text.encode())
    sys.stdout.write(kept["said"])
    _end(kept["code"])


def _into(words: list[str]) -> list[int]:
    """The descriptor behind the entry of boot.py. `python -c` has none."""
    return [] if words[0] == "-c" else [int(words[KIND + 1])]


def _write(path: Path, document: dict[str, Any]) -> None:
    new = path.with_suffix(".new")
    new.write_text(named(json.dumps(document, indent=1), json.loads(os.environ["TAPE_PLACES"])))
    new.replace(path)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise SystemExit(f"the run starts more processes than its tape has: {path.name} is missing")
    kept: dict[str, Any] = json.loads(filled(path.read_text(), json.loads(os.environ["TAPE_PLACES"])))
    return kept


def named(text: str, places: dict[str, str]) -> str:
    """The text with a name such as {venv} for each folder of this machine, the innermost first."""
    for name, folder in sorted(places.items(), key=lambda place: -len(place[1])):
        text = re.sub(rf"(?:(?<![\w./}}])|(?<=-[IL])){re.escape(folder)}(?![\w.-])", f"{{{name}}}", text)
    return text


def filled(text: str, places: dict[str, str]) -> str:
    """The text with the folders of this machine for their names."""
    for name, folder in places.items():
        text = text.replace(f"{{{name}}}", folder)
    return text


def _end(code: int) -> NoReturn:
    """End as the real process did."""
    sys.stdout.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
