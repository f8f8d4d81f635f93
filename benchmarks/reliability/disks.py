"""Disks that fill up, or can only be read, under each thing that is written: what is refused, what is lost.

Each trial has a small file system of its own, mounted where only this process and its children see it. The same run or
command is made there twice: on the bad disk, and again when there is room.
"""

import contextlib
import ctypes
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import kills

NEW_NAMESPACE = 0x00020000
"""CLONE_NEWNS of unshare(2): mounts of this process are its own."""
ROOM = 64 * 2**20
INODES = 1000
SQLITE_TAKES = 192 * 2**10
"""About how much its journals take while it writes."""
BALLAST = "ballast"
"""The folder of the files that take the room."""
KINDS = ("full", "read-only", "no inodes")
RUNS_OF_CASES = f"SELECT {kills.CASE}, count(DISTINCT m.run_id) {kills.MEASURED} GROUP BY 1"
CONFTEST = kills.CONFTEST.replace('report.nodeid + "\\n"', 'report.outcome + " " + report.nodeid + "\\n"')
"""Also writes down how each test ended."""


@dataclass(frozen=True, slots=True)
class Target:
    """A thing that is written: what writes it, with `{disk}` for the small disk."""

    name: str
    program: str
    """`pytest` or `ipexperf`."""
    words: tuple[str, ...]
    copies: tuple[str, ...] = ()
    """Good files that lie on the small disk before."""
    temporary: bool = False
    """Whether the small disk is the folder for temporary files."""
    may_pass: bool = False
    """Whether the run may succeed all the same, because it needs nothing of what it could not write."""


TARGETS = (
    Target("history of a run", "pytest", ("--perf-db={disk}/ipexperf.db",)),
    Target("history that has runs", "pytest", ("--perf-db={disk}/ipexperf.db",), copies=("ipexperf.db",)),
    Target("cache of a run", "pytest", ("--perf-cache={disk}/cache",), may_pass=True),
    Target("report of a run", "pytest", ("--perf-report={disk}/report",)),
    Target("temporary files of a run", "pytest", (), temporary=True, may_pass=True),
    Target(
        "baselines",
        "ipexperf",
        (*kills.COMMANDS["baseline accept"], "--baselines={disk}/baselines"),
        copies=("baselines",),
    ),
    Target("merge", "ipexperf", ("db", "merge", "other.db", "--db={disk}/ipexperf.db"), copies=("ipexperf.db",)),
    Target(
        "prune",
        "ipexperf",
        ("db", "prune", "--before=last", "--yes", "--db={disk}/ipexperf.db"),
        copies=("ipexperf.db",),
    ),
    Target("report --html", "ipexperf", ("report", "--html={disk}/report")),
)


@dataclass(slots=True)
class Trial:
    """One run or command on a bad disk, and what came of it."""

    target: str
    kind: str
    free: int
    """Bytes that were free."""
    status: int | None = None
    said: str = ""
    """The last line that was printed."""
    passed: int = 0
    """Tests that passed."""
    lost: int = 0
    """Tests that passed and are not in the history."""
    damaged: str = ""
    trouble: str = ""
    """A traceback, a hang, or a success that cannot be."""
    again: str = ""
    """Why the same did not work when there was room."""

    @property
    def well(self) -> bool:
        return not (self.lost or self.damaged or self.trouble or self.again)


class Disk:
    """A small file system in memory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        _mount("-t", "tmpfs", "-o", f"size={ROOM},nr_inodes={INODES}", "tmpfs", str(place))

    @property
    def used(self) -> int:
        state = os.statvfs(self.place)
        return (state.f_blocks - state.f_bfree) * state.f_frsize

    def spoil(self, kind: str, free: int) -> None:
        """Leave so many bytes, or no inode, or let nobody write."""
        if kind == "read-only":
            _mount("-o", "remount,ro", str(self.place))
            return
        ballast = self.place / BALLAST
        ballast.mkdir()
        with contextlib.suppress(OSError):
            if kind == "no inodes":
                for number in range(INODES):
                    (ballast / str(number)).touch()
            else:
                with (ballast / "bytes").open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, max(1, ROOM - self.used - free))

    def mend(self) -> None:
        _mount("-o", "remount,rw", str(self.place))
        shutil.rmtree(self.place / BALLAST, ignore_errors=True)

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.place)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


def why_not() -> str:
    """Why this process can mount nothing, or an empty text."""
    if shutil.which("mount") is None:
        return "there is no command mount"

    def mount() -> None:
        try:
            _alone()
        except (OSError, subprocess.CalledProcessError):
            os._exit(1)

    _, ended = os.waitpid(kills.in_child(mount), 0)
    return "this process may not mount small disks: only root can, and not in every container" if ended else ""


def examine(
    rounds: int, seed: int, nursery: kills.Nursery, say: Callable[[str], None], only: Collection[str] = ()
) -> list[Trial]:
    """Make so many trials of each thing and kind of disk, in a process whose mounts are its own."""
    with tempfile.TemporaryDirectory(prefix="ipexperf-disks-") as name:
        lines = Path(name) / "trials.jsonl"

        def work() -> None:
            _alone()
            with lines.open("w") as file:
                for trial in _trials(Path(name), nursery, rounds, seed, only):
                    file.write(json.dumps(asdict(trial)) + "\n")
                    file.flush()
                    if not trial.well:
                        say(str(trial))

        _, status = os.waitpid(kills.in_child(work), 0)
        trials = [Trial(**json.loads(line)) for line in lines.read_text().splitlines()]
    if status:
        raise RuntimeError(f"the trials ended after {len(trials)}")
    return trials


def _alone() -> None:
    """Give this process mounts of its own, which end with it."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NAMESPACE):
        raise OSError(ctypes.get_errno(), "unshare")
    _mount("--make-rprivate", "/")


def _trials(outer: Path, nursery: kills.Nursery, rounds: int, seed: int, only: Collection[str]) -> Iterator[Trial]:
    for target in TARGETS:
        if only and target.name not in only:
            continue
        need = _need(target, outer, nursery)
        for kind in KINDS:
            for number in range(rounds if kind == "full" else 1):
                chance = random.Random(f"{seed}:disk:{target.name}:{number}")  # noqa: S311 - no secret
                # The first disk is full to the last byte. SQLite takes more than it keeps: some others are full late.
                free = chance.randrange(need + SQLITE_TAKES) if number else 0
                yield _trial(target, kind, free, outer, nursery)


def _need(target: Target, outer: Path, nursery: kills.Nursery) -> int:
    """How many bytes the target takes on a disk with room. It must succeed there."""
    with _place(outer, target) as (place, disk):
        before = disk.used
        status = _do(target, place, disk, nursery)
        if status:
            raise RuntimeError(f"{target.name} ends with {status} on a good disk: {_said(place)}")
        return max(0, disk.used - before)


def _trial(target: Target, kind: str, free: int, outer: Path, nursery: kills.Nursery) -> Trial:
    trial = Trial(target.name, kind, free)
    with _place(outer, target) as (place, disk):
        disk.spoil(kind, free)
        trial.status = _do(target, place, disk, nursery)
        said = _said(place)
        trial.said = (said.strip().splitlines() or [""])[-1][:200]
        disk.mend()
        if trial.status is None:
            trial.trouble = "it hangs"
        elif "Traceback" in said or "INTERNALERROR" in said:
            trial.trouble = f"a traceback: {trial.said}"
        elif trial.status not in (0, 1, 2, 4):
            trial.trouble = f"it ended with {trial.status}"
        elif trial.status and not said.strip():
            trial.trouble = f"it ended with {trial.status} and without a word"
        elif not (trial.status or free or target.may_pass) and kind != "no inodes":
            trial.trouble = "it ended well, where nothing could be written"
        trial.damaged = _damage(place, disk)
        passed = _passed(place)
        if target.program == "pytest":
            trial.passed = passed.total()
            if not trial.status and trial.passed < 2 and not trial.trouble:
                trial.trouble = "it ended well without having measured"
        # What a command has done once, it may refuse to do again.
        if (trial.status or target.program == "pytest") and (status := _do(target, place, disk, nursery)):
            trial.again = f"it ended with {status}: {_said(place)[-300:]}"
        trial.damaged = trial.damaged or _damage(place, disk)
        trial.lost = (passed + _passed(place) - _recorded(place, disk)).total()
    return trial


@contextlib.contextmanager
def _place(outer: Path, target: Target) -> Iterator[tuple[Path, Disk]]:
    """A folder with a suite and good files, and a small disk in it."""
    with tempfile.TemporaryDirectory(dir=outer) as name:
        place = Path(name)
        if target.program == "ipexperf" or target.copies:
            kills.fill_good(place)
        if target.program == "pytest":
            kills.fill(place)
            (place / "conftest.py").write_text(CONFTEST)
        disk = Disk(place / "disk")
        try:
            for file in target.copies:
                source = place / file
                copy = shutil.copytree if source.is_dir() else shutil.copy
                copy(source, disk.place / file)
            yield place, disk
        finally:
            disk.close()


def _do(target: Target, place: Path, disk: Disk, nursery: kills.Nursery) -> int | None:
    (place / "finished").unlink(missing_ok=True)
    words = [word.format(disk=disk.place) for word in target.words]
    if target.program == "pytest":
        words = kills.run_of("tiny,other", "--perf-launches=1", *words)
    variables = {"IPEXPERF_LEASES": str(place / "leases"), **({"TMPDIR": str(disk.place)} if target.temporary else {})}
    tag = f"disks-{os.getpid()}"
    status = kills.wait(nursery.start(target.program, words, place, tag, **variables))
    kills.orphans(tag)
    return status


def _said(place: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in (place / "out", place / "err") if path.exists())


def _passed(place: Path) -> Counter[str]:
    """The cases of the tests that passed."""
    path = place / "finished"
    lines = path.read_text().splitlines() if path.exists() else []
    passed = [line for line in lines if line.startswith("passed ")]
    return Counter(line.partition("[")[2].rstrip("]").partition("+")[0] for line in passed)


def _histories(place: Path, disk: Disk) -> Sequence[Path]:
    """The histories that have tables. A run makes those of an empty file."""
    paths = [path for path in (place / "ipexperf.db", disk.place / "ipexperf.db") if path.exists()]
    return [path for path in paths if kills.tables(path)]


def _recorded(place: Path, disk: Disk) -> Counter[str]:
    """How many runs have each case."""
    answers = [kills.query(path, RUNS_OF_CASES) for path in _histories(place, disk)]
    return Counter({name: runs for answer in answers for name, runs in answer})


def _damage(place: Path, disk: Disk) -> str:
    """What is wrong with a history, or an empty text."""
    return next(filter(None, map(kills.fault, _histories(place, disk))), "")
