"""Inputs that make no sense, each to be used or refused in one sentence. Anything else that is raised is a traceback.

An input follows from the seed, its kind and its number alone, so that one of them can be made again.
"""

import argparse
import contextlib
import copy
import io
import json
import os
import random
import shutil
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipexperf import cli, lock, redaction
from ipexperf.bench.networks import own_target
from ipexperf.conduct import protocol
from ipexperf.dashboard import folder
from ipexperf.environments import make
from ipexperf.errors import IpexperfError
from ipexperf.history import History, addresses
from ipexperf.judge import baseline
from ipexperf.plan import arms, gates, matrix, options, reading
from ipexperf.tools.bisect.answers import AnswerLog

BITS = (
    *("", " ", ",", "=", ":", "@", "~", "-", "--", "/", "..", "%", "'", '"', "\\", "\n", "\t", "\udcff", "é"),
    *("💥", "$HOME", "0", "1", "-1", "1.5", "1e999", "nan", "inf", "9" * 30, "0x10", "last", "last~1", "first"),
    *("2026-05-04", "9999-12-31", "2026-13-45", "today", "main", "HEAD", "a1b2", "fp32", "bf16", "cpu", "xpu"),
    *("fake", "all", "resnet50", "stack=stock", "OMP_NUM_THREADS=1", "OMP_NUM_THREADS=x", "MY_TOKEN=secret"),
    *("level=O0", "baseline", "lock:", "run:last", "module:callable", "x.py:f@3x224", "hf:", "timm:x@"),
    *("os:getcwd", "postgresql://u:p@h/d", "sqlite://", "x" * 300, "true", "null", "[", "{", "}", "=cmd()"),
    *("[bold]", "<b>", "cores=0-3", "node=9", "5%", "500%", "=HYPERLINK(1)"),
)
TYPES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**70, 1.5, "", "text", "\udcff", [], [1], [[]], {}, {"a": 1}, [None], float("inf")),
)
FIELDS = ("schema", "rows", "cells", "documents", "bytes", "end")
COMMANDS = (
    *("show last", "show last --json", "show last~1", "show", "show --csv", "trend", "trend --csv"),
    *("trend --json", "report --csv", "report --pytest-benchmark", "compare --ratios", "compare --ratios --json"),
    *("compare last~1 last", "changes", "changes --json", "gate", "report --markdown"),
    *("report --html report", "db check", "baseline accept last --reason why"),
    *("show last --csv", "compare last~2 last --json", "comment"),
    *("db prune --before 2027-01-01", "db prune --before 2027-01-01 --yes", "db upgrade", "db merge other.db"),
)
READING = ("show", "trend", "compare", "changes", "gate", "report", "db", "baseline")


@dataclass(slots=True)
class Count:
    """What became of the inputs of one kind."""

    used: int = 0
    refused: int = 0
    tracebacks: int = 0
    examples: list[str] = field(default_factory=list)
    """The first tracebacks: the number of the input, and the last lines."""

    @property
    def all(self) -> int:
        return self.used + self.refused + self.tracebacks


@dataclass(frozen=True, slots=True)
class Laboratory:
    """A folder of its own, with a good history in it to damage."""

    folder: Path
    history: Path


class _DefectError(Exception):
    """A command did not raise, and answered in a way that it never should."""


def words(chance: random.Random) -> str:
    """A text of some bits."""
    return "".join(chance.choice(BITS) for _ in range(chance.choice((1, 1, 1, 2, 3, 6))))


def a_command_line(chance: random.Random, lab: Laboratory) -> None:
    """A command that reads, with words of which each may be any."""
    line = [chance.choice(READING)]
    for _ in range(chance.randrange(5)):
        if chance.random() < 0.5:
            names = ("--db", "--json", "--csv", "--model", "--since", "--until", "--case", "--limit", "--over")
            name = chance.choice(names)
            line.append(f"{name}={words(chance)}" if chance.random() < 0.5 else name)
        else:
            line.append(words(chance))
    _run([word for word in line if "\0" not in word], lab)


def _run(line: list[str], lab: Laboratory) -> None:
    out, err = io.StringIO(), io.StringIO()
    with _in_folder(lab.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.main(line)
        except SystemExit as error:  # argparse
            status = error.code if isinstance(error.code, int) else 1
    told = err.getvalue()
    if "Traceback" in told:  # of `gate`, whose exit status must be no verdict then
        raise _DefectError(f"{' '.join(line)!r}: {told.strip()}")
    if status not in (0, 1, 2, 125):
        raise _DefectError(f"{' '.join(line)!r} ended with {status}")
    if status == cli.USAGE_ERROR:
        raise IpexperfError(told)


@contextlib.contextmanager
def _in_folder(place: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)


def an_option(chance: random.Random, _: Laboratory) -> None:
    """An option of pytest, as in the ini file, up to the names that it may hold."""
    chosen = chance.sample(options.OPTIONS, chance.randrange(1, 4))
    texts = [f"{option.flag}={words(chance)}" for option in chosen if not option.switch]
    resolved = reading.resolve(lambda _: None, texts, {})
    matrix.check_names(resolved)
    gates.gate(resolved)


def an_arm(chance: random.Random, _: Laboratory) -> None:
    text = " ".join(words(chance) for _ in range(chance.randrange(1, 4)))
    redaction.redacted_command([f"--perf-against={text}"])
    parsed = arms.parse(text, "--perf-against")
    if any(f"{name}={value}" in parsed.text for name, value in parsed.variables.items() if "secret" in value):
        raise _DefectError(f"{text!r} is shown as {parsed.text!r}")


def a_selector(chance: random.Random, lab: Laboratory) -> None:
    with History.open(lab.history, create=False) as history:
        if chance.random() < 0.5:
            history.find_run(words(chance))
        else:
            history.span(words(chance), words(chance))


def a_target(chance: random.Random, _: Laboratory) -> None:
    own_target.parse(words(chance) + chance.choice((":", "@", "")) + words(chance))


def an_address(chance: random.Random, _: Laboratory) -> None:
    text = (
        chance.choice(("postgresql://", "sqlite://", "x://", ""))
        + words(chance)
        + chance.choice(("@", "/", ""))
        + words(chance)
    )
    redaction.redacted(text)
    addresses.file_of(text)


def a_baseline(chance: random.Random, lab: Laboratory) -> None:
    """A baseline file that was edited, by hand or by a bad merge."""
    good = json.loads((lab.folder / "baselines" / "machine.json").read_text())
    place = lab.folder / "edited"
    place.mkdir(exist_ok=True)
    data = _edited_json(chance, good) if chance.random() < 0.7 else _edited_bytes(chance, json.dumps(good).encode())
    (place / "machine.json").write_bytes(data)
    there = baseline.read(place, "machine")
    for one in there.cases:
        there.find(one.case)
        one.expired("2026-01-01")
        if not one.step_time > 0:
            raise _DefectError("a level that no clock tells")
    baseline.dumps(there)


def a_lock(chance: random.Random, lab: Laboratory) -> None:
    text = (lab.folder / "good.lock").read_bytes()
    parsed = lock.parse(_edited_bytes(chance, text).decode(errors="surrogateescape"), "a lock")
    lock.differences(parsed, lock.parse(text.decode(), "a lock"))


def a_protocol_line(chance: random.Random, _: Laboratory) -> None:
    request = chance.choice(("sample", "warm", "close"))
    good = {"ok": True, "samples": [[1.0, 2.0, 0.0]], "block": 1, "checks": [], "metrics": {"a": 1.0}, "notes": []}
    good |= {"first_step": 1.0, "warm_time": 1.0, "steady": 1.0, "emulated": False, "fingerprint": None}
    line = _edited_json(chance, good) if chance.random() < 0.7 else _edited_bytes(chance, json.dumps(good).encode())
    protocol.parse(line.replace(b"\n", b" "), request)


def a_cache_file(chance: random.Random, lab: Laboratory) -> None:
    """The list of an environment, the answers of a bisection, or the manifest of a report."""
    place = lab.folder / "cache"
    place.mkdir(exist_ok=True)
    good = {
        "python": "/usr/bin/python3",
        "name": "x",
        "made_by": folder.MAKER,
        "files": ["a"],
        "key": "k",
        "measured": {},
    }
    data = _edited_json(chance, good) if chance.random() < 0.7 else _edited_bytes(chance, json.dumps(good).encode())
    for name in (make.LOCK, "answers.jsonl", folder.MANIFEST):
        (place / name).write_bytes(data)
    use = chance.randrange(3)
    if use == 0:
        make.read(place)
    elif use == 1:
        AnswerLog(place / "answers.jsonl")
    else:
        folder.check(place)


def a_database(chance: random.Random, lab: Laboratory) -> None:
    """A damaged history, asked by three commands."""
    place = Path(tempfile.mkdtemp(dir=lab.folder))
    try:
        path = place / "ipexperf.db"
        shutil.copy(lab.history, path)
        _damage(chance, path)
        shutil.copy(lab.history, place / "other.db")
        inside = Laboratory(place, path)
        refused = None
        for line in chance.sample(COMMANDS, 3):
            try:
                _run(line.split(), inside)
            except IpexperfError as error:  # noqa: PERF203 - each command is asked for itself
                refused = error
        if refused is not None:
            raise refused
    finally:
        shutil.rmtree(place)


def _damage(chance: random.Random, path: Path) -> None:
    how = chance.choice(FIELDS)
    if how in ("bytes", "end"):
        data = bytearray(path.read_bytes())
        if how == "end":
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.choice((1, 10, 1000)) if data else 0):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        return
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice(tables)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        documents = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")') if row[2] == "JSON"]
        column = chance.choice(documents if how == "documents" and documents else columns)
        with contextlib.suppress(sqlite3.Error):  # what SQLite itself refuses is no damage that can be
            if how == "schema":
                connection.execute(
                    chance.choice((f'DROP TABLE "{table}"', f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO gone'))
                )
            elif how == "rows":
                connection.execute(f'DELETE FROM "{table}" WHERE abs(random()) % 3 < 2')  # noqa: S608 - a fault, made on purpose
            else:
                for key, text in _chosen(chance, connection, table, column):
                    value = _cell(chance, text, documents=how == "documents")
                    connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {key}', (value,))  # noqa: S608 - as above


def _chosen(
    chance: random.Random, connection: sqlite3.Connection, table: str, column: str
) -> Iterator[tuple[str, Any]]:
    """Some rows: what names each in SQL, and what its column holds."""
    keys = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")') if row[5]] or ["rowid"]
    names = ", ".join(f'"{key}"' for key in keys)
    rows = connection.execute(f'SELECT {names}, "{column}" FROM "{table}"').fetchall()  # noqa: S608 - as above
    for row in chance.sample(rows, min(len(rows), chance.choice((1, 3, 1000)))):
        yield " AND ".join(f'"{key}" = {value!r}' for key, value in zip(keys, row, strict=False)), row[-1]


def _cell(chance: random.Random, text: Any, *, documents: bool) -> Any:
    if documents and isinstance(text, str):
        with contextlib.suppress(ValueError):
            return _edited_json(chance, json.loads(text)).decode(errors="replace")
    return chance.choice(
        (None, 7, -1, 1.5, 1e308, "", "text", "{}", "[]", "null", "NaN", "2026-13-45", b"\xff\x00", "[" * 5000)
    )


def _edited_json(chance: random.Random, document: Any) -> bytes:
    """The document with one to three of its values replaced, taken away or doubled."""
    document = json.loads(json.dumps(document))
    for _ in range(chance.choice((1, 1, 2, 3))):
        document = _edited(chance, document)
    return json.dumps(document).encode()


def _edited(chance: random.Random, value: Any) -> Any:
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = chance.choice(keys)
        if chance.random() < 0.15:
            del value[key]
        elif chance.random() < 0.1 and isinstance(value, list):
            value.append(json.loads(json.dumps(value[key])))
        else:
            value[key] = _edited(chance, value[key])
        return value
    return copy.deepcopy(chance.choice(TYPES))


def _edited_bytes(chance: random.Random, data: bytes) -> bytes:
    edited = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20))):
        at = chance.randrange(len(edited) + 1)
        how = chance.randrange(4)
        if how == 0:
            edited[at : at + chance.randrange(40)] = b""
        elif how == 1:
            edited[at:at] = words(chance).encode(errors="surrogateescape")
        elif how == 2:
            edited[at:at] = bytes(edited[at : at + 60])
        else:
            edited[at : at + 1] = bytes([chance.randrange(256)])
    return bytes(edited)


KINDS: Mapping[str, tuple[Callable[[random.Random, Laboratory], None], int]] = {
    "options": (an_option, 3),
    "arms": (an_arm, 3),
    "selectors": (a_selector, 2),
    "targets": (a_target, 2),
    "addresses": (an_address, 2),
    "baseline files": (a_baseline, 3),
    "lock files": (a_lock, 3),
    "cache files": (a_cache_file, 1),
    "protocol lines": (a_protocol_line, 3),
    "command lines": (a_command_line, 2),
    "damaged databases": (a_database, 4),
}
"""How an input of each kind is made and used, and how many of 28 inputs are of it."""


def counts(number: int) -> dict[str, int]:
    """How many inputs of each kind there are among so many."""
    shares = sum(share for _, share in KINDS.values())
    return {kind: max(1, number * share // shares) for kind, (_, share) in KINDS.items()}


def look(kind: str, index: int, seed: int, lab: Laboratory) -> str:
    """Make one input and use it: `used`, `refused`, or the traceback."""
    chance = random.Random(f"{seed}:{kind}:{index}")  # noqa: S311 - no secret
    try:
        KINDS[kind][0](chance, lab)
    except (IpexperfError, argparse.ArgumentTypeError, protocol.MalformedError):
        return "refused"
    except Exception:  # noqa: BLE001 - this is what is looked for
        return traceback.format_exc()
    return "used"


def examine(number: int, seed: int, lab: Laboratory, say: Callable[[str], None], only: str = "") -> dict[str, Count]:
    """Use so many inputs. `only` names one kind."""
    table: dict[str, Count] = {}
    for kind, share in counts(number).items():
        if only and kind != only:
            continue
        count = table.setdefault(kind, Count())
        for index in range(share):
            answer = look(kind, index, seed, lab)
            count.used += answer == "used"
            count.refused += answer == "refused"
            if answer not in ("used", "refused"):
                count.tracebacks += 1
                count.examples = [*count.examples, f"{kind} {index} of seed {seed}:\n{answer}"][:8]
        say(f"{kind}: {count.all}, of which {count.tracebacks} ended in a traceback")
    return table


@contextlib.contextmanager
def laboratory() -> Iterator[Laboratory]:
    """A folder with a history, a baseline file and a lock, none of which holds anything of this machine."""
    from good_files import fill

    with tempfile.TemporaryDirectory(prefix="ipexperf-reliability-") as outer:
        place = Path(outer, "here")
        place.mkdir()
        yield Laboratory(place, fill(place))
