"""The content of a report: each case through time, with its newest run and its changes."""

from __future__ import annotations

import hashlib
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ipexperf.case import Case
from ipexperf.dashboard import change_marks
from ipexperf.dashboard.change_marks import Differences, DrawnLevel, Mark
from ipexperf.history import History
from ipexperf.history.board import AcceptedSession, Board, Line, Spot
from ipexperf.history.changed import examine
from ipexperf.history.records import Recorded, RunRecord
from ipexperf.history.rounds import Paired
from ipexperf.judge.environment import RAN
from ipexperf.outcomes import is_fine, place, row
from ipexperf.ratio import Ratio
from ipexperf.report.speeds import to_beat
from ipexperf.result import METRICS, PRIMARY, THROUGHPUT, accuracies
from ipexperf.verdict import Verdict

NEAR = 4
"""An environment is looked for among so many of the newest before it. One that came back later counts as another."""
LONGEST = 60
"""Length limit for the part of a case's id in a file name."""


@dataclass(frozen=True, slots=True)
class CaseStory:
    """One case on one machine: its line, its newest run, its events, and the name of its page.

    Its newest run is no experiment, unless all of its runs are.
    """

    line: Line
    slug: str
    newest: Recorded
    marks: tuple[Mark, ...]
    levels: tuple[DrawnLevel, ...]
    factor: Ratio | None
    """Throughput relative to stock PyTorch in fp32, in the same run."""

    @property
    def case(self) -> Case:
        return self.line.case

    @property
    def spots(self) -> list[Spot]:
        """Return the step times, oldest first."""
        return self.line.spots[PRIMARY]

    @property
    def now(self) -> Spot:
        """Return the step time of the newest run."""
        return _states(self.line)[-1]

    @property
    def change(self) -> Mark | None:
        """Return the newest change that is not over, if there is one. Of a case that fails now, one for the worse."""
        fails = row(self.newest.outcome).fails
        moved = [mark for mark in self.marks if mark.worse or (mark.better and not fails)]
        return max(moved, key=lambda mark: (not mark.undone, mark.run), default=None)

    def found(self, mark: Mark) -> Verdict | None:
        """Return the newest verdict, if it still finds what a mark says."""
        outcome = self.newest.outcome
        same = mark is self.change and row(outcome).moved and mark.better == is_fine(outcome)
        return self.newest.verdict if same else None

    def acceptance(self, mark: Mark) -> AcceptedSession | None:
        """Return the first session from a change on that became a baseline, if any did."""
        return next((session for session in self.line.accepted if session.run >= mark.run), None)

    @property
    def experiment(self) -> bool:
        """Whether all of its runs were experiments."""
        return not self.line.usual


@dataclass(frozen=True, slots=True)
class Story:
    """The part of a history that a report shows."""

    board: Board
    entries: tuple[CaseStory, ...]
    """The worst first."""
    paired: Mapping[tuple[str, str], Paired]
    """Rounds of the newest run of each case, by run and machine."""
    differ: Differences
    older: int = 0
    """Number of changes with runs that are older than the board's."""

    def run_of(self, entry: CaseStory) -> RunRecord:
        """Return the newest run of a case."""
        return self.board.runs[entry.now.run]

    def environments(self, entry: CaseStory) -> list[int]:
        """Return a number for what ran in each run of a case: equal numbers, equal software, variables and source."""
        first_of: list[int] = []
        numbers = []
        for spot in entry.spots:
            near = range(len(first_of))[-NEAR:]
            alike = (place for place in near if not self.differ.between(entry.line, first_of[place], spot.run, RAN))
            number = next(alike, len(first_of))
            if number == len(first_of):
                first_of.append(spot.run)
            numbers.append(number)
        return numbers


def drawn() -> list[str]:
    """Return the metrics that are drawn through time beside the accuracy, that of speed first."""
    return [name for name, metric in METRICS.items() if metric.drawn]


def gather(history: History, limit: int) -> Story:
    """Read the newest runs. Changes are found in the whole history."""
    board = history.board((*drawn(), *accuracies()), limit)
    lines = sorted(board.lines, key=lambda line: (line.case.slot, line.machine_key, line.case.uid))
    recorded = _recorded(history, board, lines)
    paired = history.paired(recorded[_newest(board, line)] for line in lines)
    factors = _factors(recorded, paired)
    examined = {
        (changed.series.case.uid, changed.series.machine_key): changed
        for changed in examine(history, [PRIMARY], without=_experiments(board, lines))
    }
    differ = Differences(board)
    entries, older = [], 0
    for line in lines:
        newest = recorded[_newest(board, line)]
        marks: list[Mark] = []
        levels: list[DrawnLevel] = []
        # A series without a run that counts is missing.
        if series := examined.get((line.case.uid, line.machine_key)):
            marks += change_marks.marks(line, series, differ)
            levels += change_marks.levels(series, differ)
            older += sum(differ.place(series.series.runs[event.change.index]) is None for event in series.events())
        marks += change_marks.judged(line, marks)
        # A change lists the differences itself, so a change of environment there is not a second event.
        told = {mark.run for mark in marks if mark.lines}
        marks += [mark for mark in _environments(line, differ) if mark.run not in told]
        marks += _accepted(line)
        entries.append(
            CaseStory(
                line=line,
                slug=slug(line.case, line.machine_key),
                newest=newest,
                marks=tuple(sorted(marks, key=lambda mark: (mark.run, mark.kind))),
                levels=tuple(levels),
                factor=factors.get((newest.run_uid, line.machine_key, line.case.uid)),
            )
        )
    entries.sort(
        key=lambda entry: badness(entry.newest.outcome, found.times if (found := entry.newest.verdict) else None)
    )
    return Story(board, tuple(entries), paired, differ, older)


def badness(outcome: str, times: float | None) -> tuple[int, float]:
    """Return the place of a case where the worst come first."""
    return place(outcome), -(times or 0.0)


def _states(line: Line) -> list[Spot]:
    """Return the step times of the runs that were no experiments, or all of them if each was one."""
    return line.usual or line.spots[PRIMARY]


def _experiments(board: Board, lines: Iterable[Line]) -> set[tuple[str, int]]:
    """Return the cases, by uid and row id of the run, that make no level."""
    return {(line.case.uid, board.run_ids[place]) for line in lines for place in line.experiments}


def slug(case: Case, machine_key: str) -> str:
    """Return the file name of a case's page: the same in every report, and safe in paths and links."""
    digest = hashlib.sha256(f"{case.uid} {machine_key}".encode()).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '_', case.id)[:LONGEST]}-{digest}"


def _recorded(history: History, board: Board, lines: Iterable[Line]) -> dict[tuple[str, str, str], Recorded]:
    """Return the cases of every run that is the newest of some case."""
    places = sorted({_states(line)[-1].run for line in lines})
    return {
        (measurement.run_uid, measurement.machine_key, measurement.case.uid): measurement
        for place in places
        for measurement in history.measurements(board.runs[place].uid)
    }


def _newest(board: Board, line: Line) -> tuple[str, str, str]:
    """Return the key of the newest run of a case."""
    return board.runs[_states(line)[-1].run].uid, line.machine_key, line.case.uid


def _factors(
    recorded: Mapping[tuple[str, str, str], Recorded], paired: Mapping[tuple[str, str], Paired]
) -> dict[tuple[str, str, str], Ratio]:
    """Return the speed of each sound network relative to the reference of its group, of the same run and machine."""
    speeds = {
        (run, machine, measurement.case): statistics.geometric_mean(measurement.values[THROUGHPUT])
        for (run, machine, _), measurement in recorded.items()
        if not measurement.unsound(THROUGHPUT)
    }
    return {
        (run, machine, case.uid): _factor(speed / base, paired.get((run, machine)), plain, case)
        for (run, machine, case), speed in speeds.items()
        if (plain := to_beat(case)) and (base := speeds.get((run, machine, plain))) is not None
    }


def _factor(times: float, paired: Paired | None, base: Case, case: Case) -> Ratio:
    """Return the ratio from shared rounds, if there are any."""
    estimate = paired.between(base, case) if paired is not None and case != base else None
    return estimate.ratio(inverted=True) if estimate else Ratio(times)


def _environments(line: Line, differ: Differences) -> Iterable[Mark]:
    # A case that never began has no environment, and the run's may be of another device.
    runs = [spot.run for spot in line.spots[PRIMARY] if not line.environments or spot.run in line.environments]
    for old, new in pairwise(runs):
        if lines := differ.between(line, old, new):
            experiment = "an experiment, which is neither the state of the case nor a level"
            yield Mark(
                new, "environment", experiment if new in line.experiments else "another environment from here on", lines
            )


def _accepted(line: Line) -> Iterable[Mark]:
    for acceptance in line.accepted:
        state = ", superseded since" if acceptance.superseded else ""
        yield Mark(
            acceptance.run,
            "accepted",
            f"accepted as baseline by {acceptance.by}, {acceptance.at[:10]}{state}",
            (acceptance.reason,),
        )


def by_run(entries: Iterable[CaseStory]) -> dict[int, list[tuple[CaseStory, int]]]:
    """Return the cases of each run by the index of the run, each with the index of its spot."""
    by_number: dict[int, list[tuple[CaseStory, int]]] = defaultdict(list)
    for entry in entries:
        for index, spot in enumerate(entry.spots):
            by_number[spot.run].append((entry, index))
    return by_number
