"""Processes that are killed at random moments: what was finished must be recorded, and nothing may stay behind.

A trial follows from the seed and its number, but for the moment within the run, which the machine has a part in.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import good_files

from ipexperf import cli, scratch
from ipexperf.errors import IpexperfError
from ipexperf.history import sqlite_files
from ipexperf.judge import baseline
from ipexperf.variables import LEASES, PREFIX

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

import forked_pytest  # noqa: E402 - a module of the tests

TAG = "IPEXPERF_RELIABILITY"
"""A variable that every process of a trial has, by which those that outlive it are found."""
PATIENCE = 90.0
ORPHANED = 5.0
"""Seconds after which a process that still lives has outlived its run."""
INSTALLED = any(entry.name == "ipexperf" for entry in entry_points(group="pytest11"))
PLUGIN = (*("-p", "no:cacheprovider", "-p", "no:hypothesispytest"), *("-p", "no:anyio", "-p", "no:unraisableexception"))
"""The last one collects garbage after all has been told: Ctrl-C in a callback of that is Python's to answer."""
CELL = ("--perf-device=fake", "--perf-dtype=fp32", "--perf-mode=spin", "--perf-stack=plain", "--perf-preset=preflight")
SHORT = ("--perf-without=roof", "--perf-samples=3", "--perf-seconds=0.01", "--perf-timeout=20")
CONFTEST = """
import os
from math import inf

from ipexperf.conduct import gate
from ipexperf.judge.policy import GatePolicy

gate.POLICY = GatePolicy(others=inf, steal=inf, held_up=inf)  # the machine's other work is not the matter here


def pytest_runtest_logreport(report):
    if report.when == "call" and report.outcome in ("passed", "failed"):
        descriptor = os.open("finished", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, (report.nodeid + "\\n").encode())
        os.close(descriptor)
"""
SUITE = "import pytest\n\n\n@pytest.mark.perf\ndef test_it(perf):\n    perf()\n"
COMMANDS: Mapping[str, Sequence[str]] = {
    "merge": ("db", "merge", "other.db"),
    "prune": ("db", "prune", "--before=last", "--yes"),
    "baseline accept": ("baseline", "accept", "last", "--case=resnet50-cpu-bf16-infer_jit-ipex", "--reason=why"),
    "report --html": ("report", "--html=report"),
}
CASE = "c.model || '-' || c.device || '-' || c.dtype || '-' || c.mode || '-' || c.stack"
MEASURED = 'FROM measurement m JOIN series s ON s.id = m.series_id JOIN "case" c ON c.id = s.case_id'
CASES = f"SELECT DISTINCT {CASE} {MEASURED} WHERE m.run_id = (SELECT max(id) FROM run)"  # noqa: S608 - names of ours
"""The cases that the last run has."""
ACCEPTED = "is in the baseline already"
"""What the second acceptance of a run says. The history must have the first one by then."""
VICTIMS = {"pytest": 8, "worker": 4, "fork server": 2, "guard": 2, "command": 4}
"""What is killed, and in how many of 20 trials."""
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""What pytest is sent. Everything else is killed by SIGKILL."""


@dataclass(slots=True)
class Trial:
    """One kill and what came of it."""

    number: int
    victim: str
    how: str = ""
    """The signal, or the command."""
    hit: bool = False
    """Whether the victim was there, and had not ended before."""
    finished: int = 0
    """The tests that had ended when the run did."""
    lost: list[str] = field(default_factory=list)
    """Those of them that the history does not have."""
    damaged: str = ""
    orphans: int = 0
    next_failed: str = ""
    trouble: str = ""
    """A traceback, a hang, or a run that did not end as it should."""

    @property
    def well(self) -> bool:
        return not (self.lost or self.damaged or self.orphans or self.next_failed or self.trouble)


class Nursery:
    """Forks runs and commands from this process, which has imported what they need."""

    def __init__(self) -> None:
        forked_pytest.preload(PLUGIN)

    def start(self, program: str, words: Sequence[str], place: Path, tag: str, **variables: str) -> int:
        """Start `pytest` or `ipexperf` with these words, and return its pid. `out` and `err` hold what it prints."""
        path = os.pathsep.join((str(ROOT / "tests" / "fakes" / "no_torch"), str(ROOT)))
        shell = {name: value for name, value in os.environ.items() if name == LEASES or not name.startswith(PREFIX)}
        environment = {**shell, "PYTHONPATH": path, TAG: tag, **variables}
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
            for name in ("out", "err"):
                (place / name).unlink(missing_ok=True)
            outputs = forked_pytest.opened(str(place / "out"), str(place / "err"))
            forked_pytest.run(program, words, str(place), environment, *outputs)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except KeyboardInterrupt:
            status = 130  # before pytest has begun, or after it has ended: that is Python's to answer
        except BaseException:  # noqa: BLE001 - the child must end here, whatever it was
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(int(status))


@contextlib.contextmanager
def leases_in(folder: Path) -> Iterator[None]:
    """Let leases lie in this folder: else all would wait for whatever else is measured on this host."""
    before = os.environ.get(LEASES)
    os.environ[LEASES] = str(folder)
    try:
        yield
    finally:
        del os.environ[LEASES]
        if before is not None:
            os.environ[LEASES] = before


def fill(place: Path) -> None:
    """Write a suite of fakes."""
    for name, text in (("pytest.ini", "[pytest]\n"), ("conftest.py", CONFTEST), ("test_suite.py", SUITE)):
        (place / name).write_text(text)


def fill_good(place: Path) -> None:
    """Write good files, and a second history that has other runs."""
    good_files.fill(place)
    shutil.copy(place / "ipexperf.db", place / "other.db")
    with closing(sqlite3.connect(place / "other.db")) as connection:
        connection.execute("UPDATE run SET uid = 'f' || substr(uid, 2)")
        connection.commit()


def run_of(models: str, *more: str) -> list[str]:
    """The words of a run of these models."""
    plugin = () if INSTALLED else ("-p", "ipexperf.plugin")
    load = (f"--perf-load={ROOT / 'tests' / 'fakes' / 'fake.py'}", f"--perf-model={models}")
    return [*PLUGIN, *plugin, "-q", "test_suite.py", *CELL, *SHORT, *load, *more]


def wait(pid: int) -> int | None:
    """The exit status of a run, or None if it hangs: then it is killed."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def finished_in(place: Path) -> list[str]:
    """The cases whose tests have ended in this folder, without their knobs."""
    lines = _text(place / "finished").splitlines()
    return sorted({line.partition("[")[2].rstrip("]").partition("+")[0] for line in lines})


class Bench:
    """A folder with a suite of fakes and one history, in which trials follow one another."""

    def __init__(self, place: Path, nursery: Nursery, seed: int, victims: Sequence[str]) -> None:
        self.place = place
        self._nursery = nursery
        self._seed = seed
        self._victims = list(victims)
        fill(place)
        self.temporary = place / "tmp"
        self.temporary.mkdir()
        self._good = place / "good"
        self._good.mkdir()
        fill_good(self._good)
        self._seconds: dict[str, float] = {}
        """How long a run, and each command, takes that nobody kills."""
        self._runs: dict[str, int] = {}
        """How many runs the history has after each command."""

    def trial(self, number: int) -> Trial:
        """Make one trial."""
        chance = random.Random(f"{self._seed}:kill:{number}")  # noqa: S311 - no secret
        victim = chance.choices(self._victims, [VICTIMS[name] for name in self._victims])[0]
        trial = Trial(number, victim)
        if victim == "command":
            self._command(trial, chance)
        else:
            self._run(trial, chance)
        return trial

    def _run(self, trial: Trial, chance: random.Random) -> None:
        usual = self._usual_seconds()
        tag = f"{os.getpid()}-{trial.number}"
        (self.place / "finished").unlink(missing_ok=True)
        before = self._recorded_runs()
        number = chance.choice(SIGNALS) if trial.victim == "pytest" else signal.SIGKILL
        trial.how = number.name
        moment = time.monotonic() + chance.uniform(0, usual)
        pid = self._begin("tiny,other", 2, tag)
        time.sleep(max(0.0, moment - time.monotonic()))
        trial.hit, status = self._strike(trial.victim, pid, number, tag, chance)
        status = wait(pid) if status is None else status
        finished = finished_in(self.place)
        trial.finished = len(finished)
        trial.orphans = orphans(tag)
        anyhow = (status,) if status is not None and trial.victim == "pytest" else ()
        trial.trouble = self._trouble(status, (0, 1, *anyhow))
        self._check(trial, finished, before)
        self._next(trial)

    def _usual_seconds(self) -> float:
        """How long a run takes that nobody kills. Makes one the first time."""
        if "run" not in self._seconds:
            began = time.monotonic()
            wait(self._begin("tiny,other", 2, "first"))
            self._seconds["run"] = time.monotonic() - began
        return self._seconds["run"]

    def _trouble(self, status: int | None, expected: Sequence[int]) -> str:
        """What is wrong with how a run ended and what it printed, or an empty text."""
        told = _text(self.place / "out") + _text(self.place / "err")
        if status is None:
            return f"did not end within {PATIENCE:g} s"
        if "Traceback" in told or "INTERNALERROR" in told:
            return told.strip().splitlines()[-1]
        return "" if status in expected else f"ended with {status}"

    def _begin(self, models: str, launches: int, tag: str) -> int:
        words = run_of(models, f"--perf-launches={launches}")
        return self._nursery.start("pytest", words, self.place, tag, TMPDIR=str(self.temporary))

    def _strike(
        self, victim: str, pid: int, number: signal.Signals, tag: str, chance: random.Random
    ) -> tuple[bool, int | None]:
        """Kill the victim as soon as there is one. Returns whether there was, and the exit status of an ended run."""
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return False, os.waitstatus_to_exitcode(status)
            there = [pid] if victim == "pytest" else _of_kind(victim, tag)
            if there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(there), number)
                    return True, None
            time.sleep(0.005)

    def _recorded_runs(self) -> int:
        path = self.place / "ipexperf.db"
        return int(query(path, "SELECT count(*) FROM run")[0][0]) if path.exists() and path.stat().st_size else 0

    def _check(self, trial: Trial, finished: Sequence[str], before: int) -> None:
        path = self.place / "ipexperf.db"
        if not path.exists():
            trial.lost = list(finished)
            return
        trial.damaged = fault(path)
        if trial.damaged:
            return
        new = self._recorded_runs() - before
        rows = query(path, CASES)
        there = {name for (name,) in rows} if new else set()
        trial.lost = [name for name in finished if name not in there]
        [(status,)] = query(path, "SELECT status FROM run ORDER BY id DESC LIMIT 1") if new else [("",)]
        killed = trial.victim == "pytest" and trial.how == "SIGKILL"
        if status == "running" and not killed and not trial.trouble:
            trial.trouble = "the run is said to be running, and has ended"

    def _next(self, trial: Trial) -> None:
        """A run in the same folder and history, which nobody kills."""
        before = self._recorded_runs()
        status = wait(self._begin("tiny", 1, "next"))
        if status != 0 or self._recorded_runs() != before + 1:
            trial.next_failed = f"ended with {status}: {_text(self.place / 'out')[-300:]}"
        trial.orphans += orphans("next")
        trial.next_failed = trial.next_failed or remains(self.place)

    def _command(self, trial: Trial, chance: random.Random) -> None:
        name = chance.choice(list(COMMANDS))
        trial.how = name
        if name not in self._seconds:
            with self._fresh() as place:
                began = time.monotonic()
                status = wait(self._nursery.start("ipexperf", COMMANDS[name], place, "command"))
                self._seconds[name] = time.monotonic() - began
                assert status == 0, f"{name}: {_text(place / 'err')}"
                self._runs[name] = int(query(place / "ipexperf.db", "SELECT count(*) FROM run")[0][0])
        with self._fresh() as place:
            pid = self._nursery.start("ipexperf", COMMANDS[name], place, "command")
            time.sleep(chance.uniform(0, self._seconds[name]))
            trial.hit = os.waitpid(pid, os.WNOHANG)[0] == 0
            if trial.hit:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            trial.orphans = orphans("command")
            trial.damaged = _damage(place)
            if trial.damaged:
                return
            (place / "copy.db").unlink(missing_ok=True)
            status = wait(self._nursery.start("ipexperf", COMMANDS[name], place, "command"))
            runs = int(query(place / "ipexperf.db", "SELECT count(*) FROM run")[0][0])
            told = f"{_text(place / 'err')} {_text(place / 'out')}"
            again = name == "baseline accept" and ACCEPTED in told and _accepted(place) == 1
            if (status != 0 and not again) or runs != self._runs[name] or _damage(place):
                trial.next_failed = f"{name} ended with {status} and {runs} runs: {told} {_damage(place)}"
            trial.next_failed = trial.next_failed or remains(place)

    @contextlib.contextmanager
    def _fresh(self) -> Iterator[Path]:
        """A copy of the good files."""
        with tempfile.TemporaryDirectory(dir=self.place) as name:
            place = Path(name)
            shutil.copytree(self._good, place, dirs_exist_ok=True)
            yield place


def _accepted(place: Path) -> int:
    """How many accepted sessions the history has."""
    return int(query(place / "ipexperf.db", "SELECT count(*) FROM baseline")[0][0])


def remains(place: Path) -> str:
    """The temporary folders that dead processes left below this folder, or an empty text."""
    left = sorted(path.name for path in place.rglob("*") if scratch.NAME.fullmatch(path.name))
    return f"temporary folders are left: {', '.join(left)}" if left else ""


def _damage(place: Path) -> str:
    """What is wrong with the files of a folder, or an empty text."""
    for name in ("ipexperf.db", "copy.db"):
        if (place / name).exists() and (damage := fault(place / name)):
            return damage
    try:
        for key in baseline.machine_keys(place / "baselines"):
            baseline.read(place / "baselines", key)
    except IpexperfError as error:
        return str(error)
    report = place / "report"
    if report.exists() and not (report / "ipexperf-report.json").exists():
        return "half a report"
    return ""


def fault(path: Path) -> str:
    """What is wrong with a history, or an empty text."""
    try:
        sqlite_files.check(path)
    except IpexperfError as error:
        return str(error)
    return ""


def _of_kind(victim: str, tag: str) -> list[int]:
    """The processes of a trial that are of this kind."""
    return [pid for pid in processes(tag) if _kind(pid) == victim]


def _kind(pid: int) -> str:
    with contextlib.suppress(OSError):
        if Path(f"/proc/{pid}/comm").read_text().strip() == "ipexperf-guard":
            return "guard"
        words = _words(pid)
        if b"worker" in words:
            return "worker"
        if b"server" in words:  # a forked worker has the command line of its server
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            return "worker" if b"server" in _words(parent) else "fork server"
    return ""


def _words(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def processes(tag: str) -> list[int]:
    """The processes that were started in a trial, without those that are dead."""
    mark = f"{TAG}={tag}\0".encode()
    there = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - called often
        if name.isdigit():
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes():
                    there.append(int(name))
    return there


def orphans(tag: str) -> int:
    """How many processes of a trial still live after a while. They are killed then."""
    until = time.monotonic() + ORPHANED
    while (left := processes(tag)) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def tables(path: Path) -> int:
    """How many tables a database has."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        [(number,)] = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchall()
        return int(number)


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone():
            return [(0,)]
        return connection.execute(sql).fetchall()


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def examine(
    number: int, seed: int, jobs: int, nursery: Nursery, say: Callable[[str], None], wanted: Sequence[str] = ()
) -> list[Trial]:
    """Make so many trials, in several processes. Each has a folder and a history of its own.

    `wanted` are the kinds of victims; without them, all.
    """
    assert cli is not None  # imported here, so that forked commands need not
    chosen = list(wanted or VICTIMS)
    with tempfile.TemporaryDirectory(prefix="ipexperf-reliability-") as name:
        outer = Path(name)
        parts = [range(job, number, jobs) for job in range(jobs)]
        children = [_job(outer / str(job), nursery, seed, part, chosen, say) for job, part in enumerate(parts)]
        for pid in children:
            os.waitpid(pid, 0)
        lines = [line for job in range(jobs) for line in _text(outer / f"{job}.jsonl").splitlines()]
    return sorted((Trial(**json.loads(line)) for line in lines), key=lambda trial: trial.number)


def _job(
    place: Path, nursery: Nursery, seed: int, numbers: range, chosen: Sequence[str], say: Callable[[str], None]
) -> int:
    """Start a process that makes these trials, and writes each into a file as soon as it is over."""

    def work() -> None:
        (place / "leases").mkdir(parents=True)
        with leases_in(place / "leases"), place.with_suffix(".jsonl").open("w") as file:
            bench = Bench(place, nursery, seed, chosen)
            for done, number in enumerate(numbers, 1):
                trial = bench.trial(number)
                file.write(json.dumps(asdict(trial)) + "\n")
                file.flush()
                if not trial.well or done % 25 == 0:
                    say(f"{done} of {len(numbers)}{'' if trial.well else f': {trial}'}")

    return in_child(work)


def in_child(work: Callable[[], object]) -> int:
    """Do this in a process that is forked from here, and return its pid. It ends with 1 if that fails."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the child must end here, whatever it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
