"""A loop for hours: what a long run, and many runs after one another, leave behind or take more and more of."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import kills

LOOK_SECONDS = 0.2
LEAST_LOOKS = 8
LEAST_RUNS = 4
"""A quarter of them is one run."""
LEAST_LAUNCHES = 6
"""What each of them leaves behind is more than a moment's chance between the second quarter and the last."""
MOST_BYTES = 64 * 2**10
"""A run keeps what it measured until it ends: its memory may grow by so much a launch."""
WARM_BYTES = 2 * 2**20
"""What its first launches may still add."""
MOMENT = 2
"""Files, processes and descriptors that a look may catch, and the next one not."""


@dataclass(frozen=True, slots=True)
class Look:
    """What there was at one moment."""

    memory: int
    descriptors: int
    threads: int
    processes: int
    files: int
    """Files in the folder for temporary files, and in the folder of leases."""


@dataclass(frozen=True, slots=True)
class Course:
    """How a quantity went: its middle in the second quarter of the looks, and in the last."""

    name: str
    early: float
    late: float
    wrong: str = ""


@dataclass(slots=True)
class Soak:
    """What the loop saw."""

    launches: int = 0
    runs: int = 0
    seconds: float = 0.0
    courses: tuple[Course, ...] = ()
    trouble: str = ""

    @property
    def well(self) -> bool:
        return not self.trouble and not any(course.wrong for course in self.courses)


def examine(minutes: float, nursery: kills.Nursery, say: Callable[[str], None]) -> list[Soak]:
    """Half of the time one long run, half of it short runs that follow one another."""
    soaks = []
    for part in (_long_run, _many_runs):
        with tempfile.TemporaryDirectory(prefix="ipexperf-soak-") as name:
            place = Path(name)
            kills.fill(place)
            for folder in ("tmp", "leases"):
                (place / folder).mkdir()
            began = time.monotonic()
            soak = part(place, nursery, 30.0 * minutes, say)
            soak.seconds = time.monotonic() - began
            soaks.append(soak)
    return soaks


def _start(place: Path, nursery: kills.Nursery, launches: int, tag: str) -> int:
    words = kills.run_of("tiny,other", f"--perf-launches={launches}")
    folders = {"TMPDIR": str(place / "tmp"), "IPEXPERF_LEASES": str(place / "leases")}
    return nursery.start("pytest", words, place, tag, **folders)


def _long_run(place: Path, nursery: kills.Nursery, seconds: float, say: Callable[[str], None]) -> Soak:
    """One run with as many launches as fill the time."""
    began = time.monotonic()
    few = 2
    if (status := kills.wait(_start(place, nursery, few, "soak"))) != 0:
        return Soak(trouble=f"a run of {few} launches ended with {status}")
    launches = max(LEAST_LAUNCHES, int(seconds / (time.monotonic() - began) * few))
    pid = _start(place, nursery, launches, "soak")
    say(f"one run of {launches} launches of two cases")
    looks: list[Look] = []
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if (look := _look(pid, place, "soak")) is not None:
            looks.append(look)
        time.sleep(LOOK_SECONDS)
    soak = Soak(launches, 1)
    if os.waitstatus_to_exitcode(status):
        soak.trouble = f"it ended with {os.waitstatus_to_exitcode(status)}"
    elif len(looks) < LEAST_LOOKS:
        soak.trouble = f"only {len(looks)} looks: give it more minutes"
    else:
        soak.courses = _courses(looks, launches)
    return soak


def _many_runs(place: Path, nursery: kills.Nursery, seconds: float, say: Callable[[str], None]) -> Soak:
    """Runs of the same cases in one folder, until the time is over."""
    until = time.monotonic() + seconds
    soak = Soak()
    sizes: dict[str, list[float]] = {"temporary files": [], "files of leases": [], "files of caches": []}
    history: list[float] = []
    path = place / "ipexperf.db"
    while time.monotonic() < until or soak.runs < LEAST_RUNS:
        before = path.stat().st_size if path.exists() else 0
        if (status := kills.wait(_start(place, nursery, 1, f"soak-{soak.runs}"))) != 0:
            soak.trouble = f"run {soak.runs + 1} ended with {status}"
            break
        if left := kills.orphans(f"soak-{soak.runs}"):
            soak.trouble = f"{left} processes outlived run {soak.runs + 1}"
            break
        soak.runs += 1
        soak.launches += 2
        history.append(path.stat().st_size - before)
        for name, folder in zip(sizes, ("tmp", "leases", ".ipexperf"), strict=True):
            sizes[name].append(float(sum(1 for _ in (place / folder).rglob("*"))))
        if soak.runs % 100 == 0:
            say(f"{soak.runs} runs")
    courses = [_course(name, values, 0.0) for name, values in sizes.items()]
    soak.courses = (*courses, _course("bytes that a run adds to the history", history, statistics.mean(history or [0])))
    return soak


def _look(pid: int, place: Path, tag: str) -> Look | None:
    """What a run has just now, or None if it has ended."""
    try:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - called often
    except OSError:
        return None
    if "VmRSS" not in status:
        return None
    files = sum(1 for folder in ("tmp", "leases") for _ in (place / folder).rglob("*"))
    memory = int(status["VmRSS"].split()[0]) * 2**10
    return Look(memory, descriptors, int(status["Threads"]), len(kills.processes(tag)), files)


def _courses(looks: Sequence[Look], launches: int) -> tuple[Course, ...]:
    allowed = {"memory": WARM_BYTES + MOST_BYTES * launches}
    return tuple(
        _course(name, [float(getattr(look, name)) for look in looks], allowed.get(name, MOMENT))
        for name in ("memory", "descriptors", "threads", "processes", "files")
    )


def _course(name: str, values: Sequence[float], allowed: float) -> Course:
    """Compare the second quarter with the last: what grows by more than allowed is wrong."""
    if not values:
        return Course(name, 0.0, 0.0, "nothing was seen")
    quarter = max(1, len(values) // 4)
    early, late = statistics.median(values[quarter : 2 * quarter] or values), statistics.median(values[-quarter:])
    wrong = f"it grew by {late - early:,.0f}" if late - early > allowed else ""
    return Course(name, early, late, wrong)
