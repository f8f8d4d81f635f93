"""Runs that share a history and measure at the same time, one of which may be killed: the others lose nothing."""

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import kills

MOST = 8
RUNS = (
    "SELECT r.status, count(DISTINCT s.case_id), json_extract(r.meta, '$.suite') FROM run r "
    "LEFT JOIN measurement m ON m.run_id = r.id LEFT JOIN series s ON s.id = m.series_id GROUP BY r.id"
)
"""Of each run its status, how many cases it has, and the name of the folder that it ran in."""


@dataclass(slots=True)
class Trial:
    """So many runs at once, and what came of them."""

    number: int
    runs: int
    lease: str
    killed: bool
    """Whether one of them was killed."""
    finished: int = 0
    """The cases whose tests had ended."""
    lost: int = 0
    """Those of them that the history does not have."""
    failed: int = 0
    """Runs that nobody killed and that did not end well."""
    orphans: int = 0
    damaged: str = ""

    @property
    def well(self) -> bool:
        return not (self.lost or self.failed or self.orphans or self.damaged)


def examine(number: int, seed: int, nursery: kills.Nursery, say: Callable[[str], None]) -> list[Trial]:
    """Make so many trials, each with a history of its own."""
    trials = []
    for one in range(number):
        with tempfile.TemporaryDirectory(prefix="ipexperf-together-") as folder:
            trials.append(_trial(one, random.Random(f"{seed}:together:{one}"), Path(folder), nursery))  # noqa: S311
        if not trials[-1].well or (one + 1) % 5 == 0:
            say(f"{one + 1} of {number}{'' if trials[-1].well else f': {trials[-1]}'}")
    return trials


def _trial(number: int, chance: random.Random, folder: Path, nursery: kills.Nursery) -> Trial:
    trial = Trial(number, chance.randint(2, MOST), chance.choice(["wait", "off"]), chance.random() < 0.5)
    tag = f"together-{os.getpid()}-{number}"
    places = [folder / f"run-{index}" for index in range(trial.runs)]
    pids = [_begin(place, folder, trial.lease, nursery, tag) for place in places]
    victim = chance.randrange(trial.runs) if trial.killed else None
    ended: dict[int, int | None] = {}
    if victim is not None:
        time.sleep(chance.uniform(0.2, 2.0 * trial.runs))
        pid, status = os.waitpid(pids[victim], os.WNOHANG)
        if pid:  # it had ended before
            ended[victim] = os.waitstatus_to_exitcode(status)
            trial.killed, victim = False, None
        else:
            os.kill(pids[victim], signal.SIGKILL)
            os.waitpid(pids[victim], 0)
    for index, pid in enumerate(pids):
        if index != victim and index not in ended:
            ended[index] = kills.wait(pid)
    trial.orphans = kills.orphans(tag)
    path = folder / "shared.db"
    trial.damaged = kills.fault(path)
    if trial.damaged:
        return trial
    runs = {name: (status, cases) for status, cases, name in kills.query(path, RUNS)}
    for index, place in enumerate(places):
        finished = len(kills.finished_in(place))
        status, cases = runs.get(place.name, ("", 0))
        trial.finished += finished
        trial.lost += max(0, finished - cases)
        trial.failed += index != victim and (ended[index], status) != (0, "finished")
    return trial


def _begin(place: Path, folder: Path, lease: str, nursery: kills.Nursery, tag: str) -> int:
    place.mkdir()
    kills.fill(place)
    where = (f"--perf-db={folder / 'shared.db'}", f"--perf-cache={place / 'cache'}")
    words = kills.run_of("tiny,other", "--perf-launches=2", f"--perf-lease={lease}", *where)
    return nursery.start("pytest", words, place, tag, IPEXPERF_LEASES=str(folder / "leases"))
