"""Random faults in a fleet: a process is killed or stopped, or a disk is full. Nothing finished may be lost.

Several Ray nodes on this machine, each with a folder of its own, measure fake cases that take no torch. In each trial
something happens at a random moment:

- `case`, `worker`, `agent`, `node`, `pytest`: the process of a case, what measures on a host, Ray's actor that passes
  its lines on, Ray's daemon of a host, or pytest is killed;
- `head`: Ray's processes of the head are killed, and the fleet is made again after the run;
- `hang`: all processes of a host are stopped for 5 to 100 seconds;
- `disk`: the disk under the folder of a host is full until the run is over. Needs root.

If pytest was killed, or the head and with it hosts, the run is resumed. Afterwards:

- every case whose test had ended is in the history;
- no case that was complete was measured again, and no round is there twice;
- the run ended in bounded time, with a summary;
- no process of the run is left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FAKES = ROOT / "tests" / "fakes"
SUITE = "import pytest\n\n\n@pytest.mark.perf\ndef test_it(perf):\n    perf()\n"
CELL = ["--device=fake", "--dtype=fp32,bf16", "--mode=spin", "--stack=plain", "--model=tiny,other,unproven"]
LAUNCHES = "2"
SHORT = [f"--perf-launches={LAUNCHES}", "--perf-samples=5", "--perf-seconds=0.05", "--perf-without=roof"]
BOUND_SECONDS = 240.0
ORPHAN_SECONDS = 120.0
COMMAND_SECONDS = 20.0
VICTIMS = ("case", "worker", "agent", "node", "pytest", "head", "hang", "disk")
NEEDLES = {
    "case": b"bench/boot.py",
    "worker": b"ipexperf.tools.fleet.worker",
    "agent": b"ray::Agent",
    "node": b"raylet/raylet",
}
HANG = (5.0, 100.0)
ROOM = 64 * 2**20
"""Of the disk of a host."""
REFUSED = 4
"""What pytest ends with if it measured nothing."""
TRIES = 3
"""A busy machine may take so long to start Ray that it gives up."""
OF_RAY = range(10_002, 20_000)
"""The ports of its workers."""
INSIDE = "IPEXPERF_FAULTS_INSIDE"
"""Set where what is mounted is seen by nobody else."""
ENDED = re.compile(r"test_it\[([^\]]+)\] (PASSED|FAILED)")


@dataclass(slots=True)
class Trial:
    """One fault, and what came of it."""

    number: int
    victim: str
    spread: str
    struck: bool = False
    """Whether the process was there to be killed."""
    ended: int = 0
    """Tests that had ended."""
    rounds: int = 0
    """Rounds in the history."""
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    orphans: int = 0
    unbounded: bool = False
    resumed: bool = False
    wrong: str = ""

    @property
    def well(self) -> bool:
        return not (self.lost or self.twice or self.orphans or self.unbounded or self.wrong)


class Rack:
    """Ray nodes on this machine."""

    def __init__(self, folder: Path, nodes: int, *, disks: bool) -> None:
        """`disks`: each host has a small one of its own."""
        self.folder = folder
        self.names = [f"n{number}" for number in range(nodes)]
        ours = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
        leases = folder / "leases"
        leases.mkdir()
        self.environment = {
            **ours,
            "PYTHONPATH": f"{FAKES / 'no_torch'}{os.pathsep}{ROOT}",
            "IPEXPERF_LEASES": str(leases),
            "FLEET_MARK": str(folder / "mark"),
        }
        for name in self.names:
            (folder / name).mkdir()
            if disks:
                subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", folder / name], check=True)
        self.form()

    def form(self) -> None:
        """Make the fleet, or make it again."""
        for left in reversed(range(TRIES)):
            self.close()
            port = _port()
            self.address = f"127.0.0.1:{port}"
            try:
                self.start(self.names[0], "up", f"--port={port}", "--head-only")
                self.rejoin()
            except RuntimeError:
                if not left:
                    raise
            else:
                return

    def start(self, name: str, *words: str) -> None:
        """Start a node as if it were alone on its machine."""
        code = "import sys; from ipexperf.tools.fleet import membership; membership.members = lambda: []; "
        code += "from ipexperf import cli; sys.exit(cli.main())"
        command = [sys.executable, "-c", code, "fleet", *words, f"--name={name}", f"--folder={self.folder / name}"]
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(ended.stderr)

    def close(self) -> None:
        """End everything that runs on any node."""
        until = time.monotonic() + COMMAND_SECONDS
        for number in (signal.SIGTERM, signal.SIGKILL):
            while self.all(*self.names) and time.monotonic() < until:
                signal_all(self.all(*self.names), number)
                time.sleep(0.5)
            until = time.monotonic() + COMMAND_SECONDS

    def rejoin(self) -> None:
        """Have every node join again whose daemon is gone."""
        there = set(self.processes("node").values())
        for name in self.names[1:]:
            tries = TRIES
            while name not in there:
                signal_all(self.all(name), signal.SIGKILL)
                tries -= 1
                try:
                    self.start(name, "join", self.address)
                    break
                except RuntimeError:
                    if not tries:
                        raise

    def processes(self, kind: str) -> dict[int, str]:
        """The processes of a kind, each with its node's name. The head is not among them."""
        return {pid: name for pid, name in self.all(*self.names[1:]).items() if NEEDLES[kind] in _command(pid)}

    def all(self, *names: str) -> dict[int, str]:
        """All processes of these nodes, each with its node's name."""
        marks = {f"IPEXPERF_FLEET_FOLDER={self.folder / name}".encode(): name for name in names}
        matches = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                for mark in marks.keys() & set((path / "environ").read_bytes().split(b"\0")):
                    matches[int(path.name)] = marks[mark]
        return matches

    def fill(self, name: str) -> None:
        """Leave no room on the disk of a node."""
        state = os.statvfs(self.folder / name)
        with (self.folder / name / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, state.f_bavail * state.f_frsize)


def _port() -> int:
    """A free port that Ray has no use for."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        if port not in OF_RAY:
            return port


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def pytest_command(rack: Rack, folder: Path, spread: str, *more: str) -> list[str]:
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    base = [sys.executable, "-m", "pytest", "-v", f"--rootdir={folder}", str(folder)]
    base += ["-p", "ipexperf.short_options", "-p", "no:cacheprovider"]
    base += [f"--perf-load={FAKES / 'fake.py'}", f"--perf-load={FAKES / 'fleet_models.py'}", *CELL, *SHORT]
    return [*base, f"--perf-fleet={rack.address}", f"--perf-spread={spread}", f"--perf-db={folder / 'db'}", *more]


def trial(rack: Rack, number: int, victim: str, chance: random.Random, folder: Path) -> Trial:
    one = Trial(number, victim, chance.choice(["each", "share"]))
    output = folder / "output"
    run = _begin(rack, folder, one.spread, output)
    time.sleep(chance.uniform(2.0, 20.0))
    strike(rack, one, run, chance)
    one.unbounded = not _ends(run)
    text = output.read_text()
    ended = {name for name, _ in ENDED.findall(text)}
    if victim != "pytest" and not says_how_it_ended(text, run.returncode):
        one.wrong = f"no summary: {text[-300:]}"
    if victim == "head" and one.struck:
        one.orphans += _orphans(rack)
        rack.form()
    if one.struck and (victim == "pytest" or (victim == "head" and "was lost" in text)):
        ended |= _resume(rack, one, folder, text)
    one.ended = len(ended)
    if "Traceback" in text:
        one.wrong = one.wrong or f"a traceback: {text[text.index('Traceback') :][:600]}"
    one.orphans += _orphans(rack)
    compare(one, folder / "db", ended)
    for name in rack.names:
        (rack.folder / name / "ballast").unlink(missing_ok=True)
    rack.rejoin()
    return one


def _begin(rack: Rack, folder: Path, spread: str, output: Path, *more: str) -> subprocess.Popen[bytes]:
    with output.open("wb") as into:
        return subprocess.Popen(
            pytest_command(rack, folder, spread, *more),
            stdout=into,
            stderr=subprocess.STDOUT,
            env=rack.environment,
            cwd=folder,
        )


def strike(rack: Rack, one: Trial, run: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Let it happen."""
    if run.poll() is not None:
        return
    victim, name = one.victim, chance.choice(rack.names[1:])
    one.struck = True
    if victim == "pytest":
        run.kill()
    elif victim == "head":
        signal_all(rack.all(rack.names[0]), signal.SIGKILL)
    elif victim == "hang":
        signal_all(rack.all(name), signal.SIGSTOP)
        until = time.monotonic() + chance.uniform(*HANG)
        while run.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
        signal_all(rack.all(name), signal.SIGCONT)
    elif victim == "disk":
        rack.fill(name)
    else:
        there = rack.processes(victim)
        one.struck = bool(there)
        if there:
            signal_all([chance.choice(sorted(there))], signal.SIGKILL)


def says_how_it_ended(text: str, status: int | None) -> bool:
    """Whether a run printed its summary, or why it measured nothing."""
    last = (text.strip().splitlines() or [""])[-1]
    return "= " in last or (status == REFUSED and last.startswith("ERROR: "))


def _ends(run: subprocess.Popen[bytes]) -> bool:
    """Wait for a run. False if it did not end in time, and had to be killed."""
    try:
        run.wait(BOUND_SECONDS)
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()
        return False
    return True


def _resume(rack: Rack, one: Trial, folder: Path, text: str) -> set[str]:
    """Run again, with what the hosts kept. Return the tests that ended."""
    name = re.search(r"--perf-resume (\S+)", text)
    if name is None:
        return set()
    output = folder / "resumed"
    run = _begin(rack, folder, one.spread, output, f"--perf-resume={name[1]}")
    one.resumed = _ends(run)
    one.unbounded = one.unbounded or not one.resumed
    return {test for test, _ in ENDED.findall(output.read_text())}


def compare(one: Trial, database: Path, ended: set[str]) -> None:
    """What the history has, against the tests that ended."""
    if not database.exists():
        one.lost = sorted(ended)
        return
    script = [sys.executable, Path(__file__).with_name("recorded.py"), database, LAUNCHES]
    answer = subprocess.run(
        script, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    if answer.returncode:
        one.wrong = one.wrong or f"the history cannot be read: {answer.stderr[-300:]}"
        one.lost = sorted(ended)
        return
    judge(one, json.loads(answer.stdout), ended)


def judge(one: Any, document: dict[str, Any], ended: set[str]) -> None:
    """Hold what `recorded.py` says against the tests that ended. `one` is a trial, of this file or of `cut.py`."""
    recorded: set[str] = set()
    complete: dict[str, list[list[float]]] = {}
    for run in document["runs"]:
        for case in run["cases"]:
            name = f"{case['case']}@{run['host']}" if one.spread == "each" else case["case"]
            if run["status"] != "running":
                recorded.add(name)
            values = complete.setdefault(name, [])
            if case["values"] is not None and case["values"] not in values:
                values.append(case["values"])
    one.lost = sorted(ended - recorded)
    one.twice = [name for name, values in complete.items() if len(values) > 1] + document["rounds_twice"]
    one.rounds = document["rounds"]
    running = sum(run["status"] == "running" for run in document["runs"])
    if running and not one.resumed:
        one.wrong = one.wrong or f"{running} runs are still running"


def _orphans(rack: Rack) -> int:
    """What measures although nothing is left to measure."""
    until = time.monotonic() + ORPHAN_SECONDS
    while rack.processes("worker") and time.monotonic() < until:
        time.sleep(0.5)
    left = rack.processes("worker")
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def keep(trial: Path, folder: Path) -> None:
    """Copy what the runs of a trial printed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("output", "resumed"):
        if (trial / name).exists():
            shutil.copy(trial / name, folder)


def table(trials: Sequence[Trial]) -> Iterator[str]:
    for victim in VICTIMS:
        of_kind = [one for one in trials if one.victim == victim and one.struck]
        if of_kind:
            sums = [len(of_kind), sum(one.resumed for one in of_kind), sum(one.ended for one in of_kind)]
            sums += [sum(one.rounds for one in of_kind), sum(len(one.lost) for one in of_kind)]
            sums += [sum(len(one.twice) for one in of_kind), sum(one.orphans for one in of_kind)]
            sums += [sum(one.unbounded for one in of_kind), sum(bool(one.wrong) for one in of_kind)]
            yield f"| {victim} | {' | '.join(map(str, sums))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=4, help="with the head, which measures nothing")
    parser.add_argument("--victim", choices=VICTIMS, action="append", help="only this one (repeatable)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep there what each run printed")
    arguments = parser.parse_args()
    root = os.geteuid() == 0
    if root and INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])  # noqa: S606 - no shell
    victims = arguments.victim or [victim for victim in VICTIMS if root or victim != "disk"]
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="ipexperf-rack-", ignore_cleanup_errors=True) as name:
        rack = Rack(Path(name), arguments.nodes, disks=root)
        try:
            for number in range(arguments.trials):
                folder = Path(name) / f"trial-{number}"
                folder.mkdir()
                chance = random.Random(f"{arguments.seed}:{number}")  # noqa: S311 - no secret
                one = trial(rack, number, chance.choice(victims), chance, folder)
                trials.append(one)
                if arguments.keep is not None:
                    keep(folder, arguments.keep / f"{arguments.seed}-{number}-{one.victim}")
                sys.stderr.write(f"{'well' if one.well else 'NOT WELL'}: {json.dumps(asdict(one))}\n")
        finally:
            rack.close()
            if root:
                for node in rack.names:
                    subprocess.run(["umount", "-l", rack.folder / node], check=False)
            for line in table(trials):
                sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
