"""What the threads and children of this process ran, and how long they waited for a core. Standard library only.

Work of its own that not every step has, such as a thread that sorts now and then, makes its steps wait like a neighbour
does. That is the program's doing, and no neighbour's.
"""

from __future__ import annotations

import os
import resource
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ipexperf.bench.clocks import clock_gettime, perf_counter, process_time, sleep
from ipexperf.bench.machine import kernel_files

RAN = 0.05
"""A thread takes part in a sample if it runs for this share of it."""
POLL_SECONDS = 0.001

_TASKS = "/proc/self/task"
_ENDED, _ENDED_CHILDREN = 0, -1
"""Stand for the threads and children that ended meanwhile: nobody can ask for them singly any more."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """Seconds since the start of this process: what all of it ran, and what each thread and child did."""

    cpu: float
    ended_children: float
    ran: Mapping[int, float]
    """By number. Those of children are negative."""
    waited: Mapping[int, float]


@dataclass(slots=True)
class Threads:
    """The threads of this process, and in how many of the samples each of them took part."""

    _files: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The open files of each thread: its statistics and its children. Opening them for each sample paused the threads
    long enough to slow the next step."""
    _samples: int = 0
    _took_part: Counter[int] = field(default_factory=Counter)
    alone: bool = False
    """Whether only the thread that steps has worked in these steps."""

    def begin(self) -> None:
        """Begin anew with other steps."""
        self.alone = True
        self._samples = 0
        self._took_part.clear()

    def warmed(self, since: Accounts, wall: float) -> None:
        """See who worked in the warm steps, which took so long since these accounts, and are no samples."""
        self.begin()
        self.sampled(since, self.look(), wall)
        self._samples = 0
        self._took_part.clear()

    def look(self) -> Accounts:
        ran, waited = {}, {}
        threads = [int(name) for name in os.listdir(_TASKS)]  # noqa: PTH208 - runs between samples, and pathlib is slower
        for thread in threads:
            try:
                if thread not in self._files:
                    self._files[thread] = _opened(thread)
                statistics, children = self._files[thread]
                waited[thread] = int(os.pread(statistics, 100, 0).split()[1]) / 1e9 if statistics else 0.0
                ran[thread] = clock_gettime(~thread << 3 | 6)
                for child in map(int, os.pread(children, 4000, 0).split() if children else ()):
                    ran[-child] = clock_gettime(~child << 3 | 2)
            except OSError:  # noqa: PERF203 - it ended while we looked
                continue
        for ended in self._files.keys() - set(threads):
            for file in filter(None, self._files.pop(ended)):
                os.close(file)
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Accounts(process_time(), reaped.ru_utime + reaped.ru_stime, ran, waited)

    def sampled(self, before: Accounts, after: Accounts, wall: float) -> tuple[float, float]:
        """The CPU time of a sample, and what its threads waited for a core that others had.

        What threads and children ran that take part in few samples is taken from the waiting: it was theirs.
        """
        ran = {key: seconds - before.ran.get(key, 0.0) for key, seconds in after.ran.items()}
        cpu = after.cpu - before.cpu
        ran[_ENDED] = cpu - sum(seconds for key, seconds in ran.items() if key > 0)
        lost = sum(seconds for key, seconds in before.ran.items() if key < 0 and key not in after.ran)
        ran[_ENDED_CHILDREN] = after.ended_children - before.ended_children - lost
        self._samples += 1
        took_part = [key for key, seconds in ran.items() if seconds > RAN * wall]
        self._took_part.update(took_part)
        self.alone = self.alone and {threading.get_native_id()}.issuperset(took_part)
        seldom = {key for key in ran if 0 < 2 * self._took_part[key] <= self._samples}
        own = sum(max(0.0, ran[key]) for key in seldom)
        waited = sum(
            seconds - before.waited.get(key, 0.0) for key, seconds in after.waited.items() if key not in seldom
        )
        return cpu, max(0.0, waited - own)

    def settle(self, limit: float) -> bool:
        """Wait until this process and its children have nothing left to do. False if they go on for longer."""
        until, idle = perf_counter() + limit, 0
        while idle < 2:  # one look may find asleep what works and sleeps in turns
            if perf_counter() > until:
                return False
            sleep(POLL_SECONDS)
            idle = 0 if _runs(self.look().ran) else idle + 1
        return True


def _opened(thread: int) -> tuple[int, int]:
    """The files of a thread. 0 stands for one that the kernel was built without."""
    paths = [f"{_TASKS}/{thread}/{name}" for name in ("schedstat", "children")]
    statistics, children = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) if os.path.exists(path) else 0 for path in paths)  # noqa: PTH110 - as above
    return statistics, children


def _runs(tasks: Iterable[int]) -> bool:
    """Whether a thread other than this one, or one of a child, has work to do, with a core or without."""
    return any(_state(path) == "R" for task in tasks for path in _paths(task))


def _paths(task: int) -> list[str]:
    """The threads of a child, or the thread itself, as parts of a path below /proc."""
    if task > 0:
        return [f"self/task/{task}"] if task != threading.get_native_id() else []
    return [f"{-task}/task/{thread.name}" for thread in Path(f"/proc/{-task}/task").glob("*")]


def _state(thread: str) -> str:
    try:
        return kernel_files.stat_fields(thread)[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has just ended
