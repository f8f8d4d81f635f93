"""Random faults in a fleet: what measures, its agent, a node or pytest is killed. Nothing finished may be lost.

Several Ray nodes on this machine, each with a folder of its own, measure fake cases that take no torch. In each trial
one process is killed at a random moment; if that was pytest, the run is resumed. Afterwards:

- every case whose test had ended, or that a journal had whole, is in the history, once;
- the run ended in bounded time, with a verdict;
- no process of the run is left;
- a node that was killed joins again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAKES = ROOT / "tests" / "fakes"
SUITE = "import pytest\n\n\n@pytest.mark.perf\ndef test_it(perf):\n    perf()\n"
CELL = ["--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain", "--model", "tiny,other,unproven"]
SHORT = ["--perf-launches=2", "--perf-samples=5", "--perf-seconds=0.05", "--perf-no-pulse", "--perf-no-roof"]
BOUND_SECONDS = 240.0
ORPHAN_SECONDS = 30.0
VICTIMS = ("worker", "agent", "node", "pytest")
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
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    orphans: int = 0
    unbounded: bool = False
    wrong: str = ""

    @property
    def well(self) -> bool:
        return not (self.lost or self.twice or self.orphans or self.unbounded or self.wrong)


class Rack:
    """Ray nodes on this machine."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.names = [f"n{number}" for number in range(nodes)]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        ours = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
        leases = folder / "leases"
        leases.mkdir()
        self.environment = {
            **ours,
            "PYTHONPATH": f"{FAKES / 'no_torch'}{os.pathsep}{ROOT}",
            "IPEXPERF_LEASES": str(leases),
            "FLEET_MARK": str(folder / "mark"),
        }
        self.start(self.names[0], "up", f"--port={self.address.rpartition(':')[2]}", "--head-only")
        for name in self.names[1:]:
            self.start(name, "join", self.address)

    def start(self, name: str, *words: str) -> None:
        """Start a node as if it were alone on its machine."""
        (self.folder / name).mkdir(exist_ok=True)
        code = "import sys; from ipexperf.fleet import membership; membership.members = lambda: []; "
        code += "from ipexperf import cli; sys.exit(cli.main())"
        command = [sys.executable, "-c", code, "fleet", *words, f"--name={name}", f"--folder={self.folder / name}"]
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(ended.stderr)

    def close(self) -> None:
        command = [sys.executable, "-m", "ipexperf.cli", "fleet", "down"]
        subprocess.run(command, env=self.environment, capture_output=True, check=False)

    def processes(self, kind: str) -> dict[int, str]:
        """The processes of a kind, each with its node's name. The head is not among them."""
        return {pid: name for pid, name in self._all(kind) if name != self.names[0]}

    def _all(self, kind: str) -> Iterator[tuple[int, str]]:
        needle = {"worker": b"ipexperf.fleet.worker", "agent": b"ray::Agent", "node": b"raylet/raylet"}[kind]
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if needle not in (path / "cmdline").read_bytes():
                    continue
                variables = (path / "environ").read_bytes().split(b"\0")
                for name in self.names:
                    if f"IPEXPERF_FLEET_FOLDER={self.folder / name}".encode() in variables:
                        yield int(path.name), name


def pytest_command(rack: Rack, folder: Path, spread: str, *more: str) -> list[str]:
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    base = [sys.executable, "-m", "pytest", "-v", f"--rootdir={folder}", str(folder)]
    base += ["-p", "ipexperf.short_options", "-p", "no:cacheprovider"]
    base += [f"--perf-load={FAKES / 'fake.py'}", f"--perf-load={FAKES / 'fleet_models.py'}", *CELL, *SHORT]
    return [*base, f"--perf-fleet={rack.address}", f"--perf-spread={spread}", f"--perf-db={folder / 'db'}", *more]


def trial(rack: Rack, number: int, chance: random.Random, folder: Path) -> Trial:
    one = Trial(number, chance.choice(VICTIMS), chance.choice(["each", "share"]))
    output = folder / "output"
    began = time.monotonic()
    run = _begin(rack, folder, one.spread, output)
    time.sleep(chance.uniform(2.0, 12.0))
    taken_away = _strike(rack, one, run, chance)
    try:
        run.wait(BOUND_SECONDS)
    except subprocess.TimeoutExpired:
        one.unbounded = True
        run.kill()
        run.wait()
    text = output.read_text()
    ended = set(ENDED.findall(text))
    one.ended = len(ended)
    if one.victim == "pytest" and one.struck:
        resumed = _resume(rack, one, folder, text)
        if resumed:
            ended |= set(ENDED.findall(resumed))
    elif "= " not in text.splitlines()[-1]:
        one.wrong = one.wrong or f"no summary: {text[-300:]}"
    _compare(one, folder / "db", {name for name, _ in ended})
    if "Traceback" in text and "crashed" not in text:
        one.wrong = one.wrong or "a traceback"
    one.orphans = _orphans(rack)
    if taken_away:
        rack.start(taken_away, "join", rack.address)
    if time.monotonic() - began > 2 * BOUND_SECONDS:
        one.unbounded = True
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


def _strike(rack: Rack, one: Trial, run: subprocess.Popen[bytes], chance: random.Random) -> str:
    """Kill the victim. Return the node that must join again, or an empty text."""
    if run.poll() is not None:
        return ""
    if one.victim == "pytest":
        run.kill()
        one.struck = True
        return ""
    there = rack.processes(one.victim)
    if not there:
        return ""
    pid = chance.choice(sorted(there))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        one.struck = True
    return there[pid] if one.victim == "node" else ""


def _resume(rack: Rack, one: Trial, folder: Path, text: str) -> str:
    """Run again, with what the hosts kept."""
    name = re.search(r"--perf-resume (\S+)", text)
    if name is None:
        return ""
    output = folder / "resumed"
    run = _begin(rack, folder, one.spread, output, f"--perf-resume={name[1]}")
    try:
        run.wait(BOUND_SECONDS)
    except subprocess.TimeoutExpired:
        one.unbounded = True
        run.kill()
    return output.read_text()


def _compare(one: Trial, database: Path, ended: set[str]) -> None:
    """What the history has, against the tests that ended."""
    if not database.exists():
        one.lost = sorted(ended)
        return
    with closing(sqlite3.connect(database)) as history:
        if history.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            one.wrong = "the history is damaged"
        cases = history.execute(
            'SELECT c.model, json_extract(r.meta, "$.fleet.hosts") FROM run r JOIN measurement m ON m.run_id = r.id '
            "JOIN series s ON s.id = m.series_id JOIN \"case\" c ON c.id = s.case_id WHERE s.metric = 'step_time' "
            "AND r.id = (SELECT max(id) FROM run x WHERE x.meta = r.meta)"
        ).fetchall()
        doubled = history.execute(
            "SELECT run_id, series_id, count(*) FROM measurement GROUP BY 1, 2 HAVING count(*) > 1"
        ).fetchall()
        running = history.execute("SELECT count(*) FROM run WHERE status = 'running'").fetchone()[0]
    one.twice = [str(row) for row in doubled]
    recorded = Counter(model for model, _ in cases)
    for test in sorted(ended):
        model = test.partition("-")[0]
        if not recorded[model]:
            one.lost.append(test)
    if running and one.victim != "pytest":
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=4, help="with the head, which measures nothing")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="ipexperf-rack-") as name:
        rack = Rack(Path(name), arguments.nodes)
        try:
            for number in range(arguments.trials):
                folder = Path(name) / f"trial-{number}"
                folder.mkdir()
                chance = random.Random(f"{arguments.seed}:{number}")  # noqa: S311 - no secret
                trials.append(trial(rack, number, chance, folder))
                one = trials[-1]
                how = "well" if one.well else json.dumps(asdict(one))
                sys.stderr.write(f"{number + 1} of {arguments.trials}: {one.victim}, {one.spread}: {how}\n")
        finally:
            rack.close()
    for victim in VICTIMS:
        of_kind = [one for one in trials if one.victim == victim and one.struck]
        row = (victim, len(of_kind), sum(one.ended for one in of_kind), sum(len(one.lost) for one in of_kind))
        more = (sum(len(one.twice) for one in of_kind), sum(one.orphans for one in of_kind))
        sys.stdout.write(
            f"| {victim} | {row[1]} | {row[2]} | {row[3]} | {more[0]} | {more[1]} | "
            f"{sum(one.unbounded for one in of_kind)} | {sum(bool(one.wrong) for one in of_kind)} |\n"
        )


if __name__ == "__main__":
    main()
