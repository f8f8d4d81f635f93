"""What a report tells: each case through time with its newest run, what changed in it, and what it was before."""

from __future__ import annotations

import hashlib
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from ipexperf.history.comparison import ACCURACIES, unsound
from ipexperf.judge import changes
from ipexperf.judge.environment import differences
from ipexperf.report.table import to_beat
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.history import History
    from ipexperf.history.board import Board, BoardRun, Line, Spot
    from ipexperf.history.in_turns import Paired
    from ipexperf.history.records import Recorded

MEMORY = "peak_memory"
TRENDS = (PRIMARY, MEMORY, *ACCURACIES)
"""The metrics that are followed through time."""
LONGEST = 60
"""As much of a case's name as a file is named by."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that happened to a series: `kind` is slower, faster, environment or accepted."""

    run: int
    kind: str
    text: str
    lines: tuple[str, ...] = ()
    ratio: float | None = None
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Factor:
    """How many times as fast a case is as the plain one that it is to beat."""

    times: float
    lo: float | None = None
    hi: float | None = None
    rounds: int = 0
    """In so many rounds they took turns, and the ends are those of the interval; 0: it is of their launches."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One case on one machine: its line, its newest run and the one before, what happened, and where its page is."""

    line: Line
    slug: str
    newest: Recorded
    before: Recorded | None
    marks: tuple[Mark, ...]
    levels: tuple[tuple[int, int, float], ...]
    """From which run to which one the level was so many seconds."""
    factor: Factor | None
    """Times the throughput of the same in fp32 on stock PyTorch, in the same run."""

    @property
    def case(self) -> Case:
        return self.line.case

    @property
    def spots(self) -> list[Spot]:
        """The step times, oldest first."""
        return self.line.spots[PRIMARY]


@dataclass(frozen=True, slots=True)
class Story:
    """A history as a report tells it."""

    board: Board
    entries: tuple[Entry, ...]
    paired: Mapping[tuple[str, str], Paired] = field(default_factory=dict)
    """The rounds of each newest run of a case, by run and machine."""

    def run_of(self, entry: Entry) -> BoardRun:
        """The newest run of a case."""
        return self.board.runs[entry.spots[-1].run]


def gather(history: History, limit: int) -> Story:
    """Read what is told: so many of the newest runs."""
    board = history.board(TRENDS, limit)
    lines = sorted(board.lines, key=lambda line: (line.case.id, line.case.batch, line.machine_key, line.case.uid))
    recorded = _recorded(history, board, lines)
    paired = history.paired(one for line in lines if (one := _of(recorded, board, line, 1)) is not None)
    factors = _factors(recorded, paired)
    series = [_good(line) for line in lines]
    found = changes.find_each([[median for _, median in good] for good in series])
    differ = _Differences(board)
    entries = []
    for line, good, moved in zip(lines, series, found, strict=True):
        newest, before = (_of(recorded, board, line, back) for back in (1, 2))
        assert newest is not None  # noqa: S101 - a line has a newest run
        marks = [*_moved(board, line, good, moved, differ), *_accepted(line)]
        # A change of level tells what differs there: the environment is no second thing that happened.
        told = {mark.run: set(mark.lines) for mark in marks}
        marks += [x for x in _environments(line, differ) if not set(x.lines) <= told.get(x.run, set())]
        entries.append(
            Entry(
                line=line,
                slug=slug(line.case, line.machine_key),
                newest=newest,
                before=before,
                marks=tuple(sorted(marks, key=lambda mark: (mark.run, mark.kind))),
                levels=tuple(_levels(good, moved)),
                factor=factors.get((newest.run_uid, line.machine_key, line.case.uid)),
            )
        )
    return Story(board, tuple(entries), paired)


def slug(case: Case, machine_key: str) -> str:
    """The name of a case's page: the same in every report, and safe in a path and a link."""
    digest = hashlib.sha256(f"{case.uid} {machine_key}".encode()).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '_', case.id)[:LONGEST]}-{digest}"


def _recorded(history: History, board: Board, lines: Iterable[Line]) -> dict[tuple[str, str, str], Recorded]:
    """The cases of every run that is the newest of some case, or the one before."""
    wanted = sorted({spot.run for line in lines for spot in line.spots[PRIMARY][-2:]})
    return {
        (one.run_uid, one.machine_key, one.case.uid): one
        for place in wanted
        for one in history.measurements(board.runs[place].uid)
    }


def _of(recorded: Mapping[tuple[str, str, str], Recorded], board: Board, line: Line, back: int) -> Recorded | None:
    spots = line.spots[PRIMARY]
    if len(spots) < back:
        return None
    return recorded.get((board.runs[spots[-back].run].uid, line.machine_key, line.case.uid))


def _factors(
    recorded: Mapping[tuple[str, str, str], Recorded], paired: Mapping[tuple[str, str], Paired]
) -> dict[tuple[str, str, str], Factor]:
    """How many times as fast each sound case is as the plain one that it is to beat, of the same run and machine."""
    speeds = {
        (run, machine, one.case): statistics.geometric_mean(one.values["throughput"])
        for (run, machine, _), one in recorded.items()
        if not unsound(one, "throughput")
    }
    return {
        (run, machine, case.uid): _factor(speed / base, paired.get((run, machine)), to_beat(case), case)
        for (run, machine, case), speed in speeds.items()
        if (base := speeds.get((run, machine, to_beat(case)))) is not None
    }


def _factor(times: float, paired: Paired | None, base: Case, case: Case) -> Factor:
    """What their turns say, where they took turns."""
    found = paired.between(base, case) if paired is not None and case != base else None
    if found is None:
        return Factor(times)
    ratio = found.ratio(inverted=True)
    return Factor(ratio.ratio, ratio.lo, ratio.hi, found.rounds)


def _good(line: Line) -> list[tuple[int, float]]:
    """The runs that count, with their step times."""
    return [
        (spot.run, spot.median)
        for spot in line.spots[PRIMARY]
        if spot.outcome == "ok" and spot.median is not None and 0 < spot.median < math.inf
    ]


class _Differences:
    """What differs between two environments; most pairs are asked about by many cases."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._known: dict[tuple[int, int], tuple[str, ...]] = {}

    def between(self, line: Line, first: int, second: int) -> tuple[str, ...]:
        """What differs for a case between two runs."""
        old, new = (line.environments.get(run, self._board.runs[run].environment) for run in (first, second))
        if old == new:
            return ()
        if (old, new) not in self._known:
            known = self._board.environments
            self._known[old, new] = tuple(differences(known[old], known[new]))
        return self._known[old, new]


def _moved(
    board: Board,
    line: Line,
    good: Sequence[tuple[int, float]],
    moved: Sequence[changes.Change],
    differ: _Differences,
) -> Iterable[Mark]:
    for change in moved:
        last, first = good[change.index - 1][0], good[change.index][0]
        sides = (good[change.index - change.before : change.index], good[change.index : change.index + change.after])
        before, after = (statistics.median(value for _, value in side) for side in sides)
        commits = [board.runs[place].commit for place in (last, first)]
        known = all(commits) and commits[0] != commits[1]
        told = [f"commits {commits[0][:10]}..{commits[1][:10]}"] if known and commits[0] and commits[1] else []
        kind = "slower" if change.ratio > 1 else "faster"
        text = f"{kind} by {abs(change.ratio - 1):.1%} from here on"
        lines = (*told, *differ.between(line, last, first))
        yield Mark(first, kind, text, lines, change.ratio, before, after)


def _environments(line: Line, differ: _Differences) -> Iterable[Mark]:
    # A case that never began has no environment of its own, and the run's may be another.
    runs = [spot.run for spot in line.spots[PRIMARY] if not line.environments or spot.run in line.environments]
    for old, new in pairwise(runs):
        if found := differ.between(line, old, new):
            yield Mark(new, "environment", "another environment from here on", found)


def _accepted(line: Line) -> Iterable[Mark]:
    for one in line.accepted:
        state = ", superseded since" if one.superseded else ""
        yield Mark(one.run, "accepted", f"accepted as baseline by {one.by}, {one.at[:10]}{state}", (one.reason,))


def _levels(good: Sequence[tuple[int, float]], moved: Sequence[changes.Change]) -> Iterable[tuple[int, int, float]]:
    """The level of each stretch between changes; a series that is too short for changes has none."""
    if len(good) < 2 * changes.MINIMUM:
        return
    bounds = [0, *(change.index for change in moved), len(good)]
    for first, end in pairwise(bounds):
        stretch = good[first:end]
        yield stretch[0][0], stretch[-1][0], statistics.median(value for _, value in stretch)


def by_run(entries: Iterable[Entry]) -> dict[int, list[tuple[Entry, int]]]:
    """The cases of each run, by the run's place, each with the place of its spot."""
    found: dict[int, list[tuple[Entry, int]]] = defaultdict(list)
    for entry in entries:
        for index, spot in enumerate(entry.spots):
            found[spot.run].append((entry, index))
    return found
