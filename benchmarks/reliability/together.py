"""Runs that share a history and measure at the same time, one of which may be killed: the others lose nothing."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import kills

from ipexperf.errors import IpexperfError
from ipexperf.history import sqlite_files

MOST = 8
MODELS = ("tiny", "other")
OF_RUN = (
    "SELECT r.status, count(DISTINCT s.case_id) FROM run r LEFT JOIN measurement m ON m.run_id = r.id "
    "LEFT JOIN series s ON s.id = m.series_id WHERE r.meta LIKE ? GROUP BY r.id"
)


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


def examine(number: int, seed: int, say: Callable[[str], None]) -> list[Trial]:
    """Make so many trials, each with a history of its own."""
    nursery = kills.Nursery()
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
    if victim is not None:
        time.sleep(chance.uniform(0.2, 2.0 * trial.runs))
        if os.waitpid(pids[victim], os.WNOHANG)[0] == 0:
            os.kill(pids[victim], signal.SIGKILL)
            os.waitpid(pids[victim], 0)
        else:
            trial.killed, victim = False, None  # it had ended, and well or not is seen below
    for index, (pid, place) in enumerate(zip(pids, places, strict=True)):
        if index == victim:
            continue
        status = _wait(pid)
        trial.failed += status not in (0, None)
        trial.finished += len(_finished(place))
    trial.orphans = kills._orphans(tag)  # noqa: SLF001 - beside this file
    path = folder / "shared.db"
    try:
        sqlite_files.check(path)
    except IpexperfError as error:
        trial.damaged = str(error)
        return trial
    for index, place in enumerate(places):
        rows = kills._query_with(path, OF_RUN, (f"%{place.name}%",))  # noqa: SLF001 - as above
        there = rows[0][1] if rows else 0
        trial.lost += max(0, len(_finished(place)) - there)
        if index != victim and (len(rows) != 1 or rows[0][0] != "finished"):
            trial.failed += 1
    return trial


def _begin(place: Path, folder: Path, lease: str, nursery: kills.Nursery, tag: str) -> int:
    place.mkdir()
    for name, text in (("pytest.ini", "[pytest]\n"), ("conftest.py", kills.CONFTEST), ("test_suite.py", kills.SUITE)):
        (place / name).write_text(text)
    words = [*kills.PLUGIN, *(() if kills.INSTALLED else ("-p", "ipexperf.plugin")), "-q", "test_suite.py"]
    words += [*kills.CELL, *kills.SHORT, f"--perf-load={kills.ROOT / 'tests' / 'fakes' / 'fake.py'}"]
    words += [f"--perf-model={','.join(MODELS)}", "--perf-launches=2", f"--perf-lease={lease}"]
    words += [f"--perf-db={folder / 'shared.db'}", f"--perf-cache={place / 'cache'}"]
    return nursery.start("pytest", words, place, tag, IPEXPERF_LEASES=str(folder / "leases"))


def _wait(pid: int) -> int | None:
    """The exit status of a run, -1 if it hangs, or None if it was waited for already."""
    until = time.monotonic() + kills.PATIENCE
    while time.monotonic() < until:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


def _finished(place: Path) -> set[str]:
    path = place / "finished"
    return set(path.read_text().splitlines()) if path.exists() else set()
