"""The changes of a series as marks and levels of a chart. They come from the whole series; a board shows its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ipexperf.history.board import Board, Line
from ipexperf.history.changed import Event, Examined
from ipexperf.history.medians import Moment
from ipexperf.judge.changes import ChangePoint
from ipexperf.judge.environment import FINDINGS, differences
from ipexperf.outcomes import is_fine, row, title
from ipexperf.result import PRIMARY
from ipexperf.verdict import PairsEvidence


@dataclass(frozen=True, slots=True)
class Mark:
    """One event of a series. `kind` is slower, faster, recovered, environment, accepted, or an outcome."""

    run: int
    kind: str
    text: str
    lines: tuple[str, ...] = ()
    ratio: float | None = None
    before: float | None = None
    after: float | None = None
    undone: bool = False
    """True if it is over."""

    @property
    def better(self) -> bool:
        """Whether the case became faster."""
        return self.kind == "faster" or is_fine(self.kind)

    @property
    def worse(self) -> bool:
        """Whether the case became slower, or fails."""
        return self.kind == "slower" or (row(self.kind).moved and not self.better)


class DrawnLevel(NamedTuple):
    """A level on the board: its first and last run there."""

    first: int
    last: int
    value: float


class Differences:
    """Differences between environments, cached because many cases ask for the same pair."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._places = {run_id: place for place, run_id in enumerate(board.run_ids)}
        self._cache: dict[tuple[int, int, Sequence[str]], tuple[str, ...]] = {}

    def place(self, moment: Moment) -> int | None:
        """Return the place of a run on the board, or None if it is older."""
        return self._places.get(moment.number)

    def between(self, line: Line, first: int, second: int, sections: Sequence[str] = FINDINGS) -> tuple[str, ...]:
        """Return the differences for a case between two runs."""
        old, new = (line.environments.get(run, self._board.of_runs[run]) for run in (first, second))
        if old == new:
            return ()
        if (old, new, sections) not in self._cache:
            environments = self._board.environments
            self._cache[old, new, sections] = tuple(differences(environments[old], environments[new], sections))
        return self._cache[old, new, sections]


def marks(line: Line, examined: Examined, differ: Differences) -> Iterable[Mark]:
    """Yield a mark for each change that began on the board, and for each recovery."""
    for event in examined.events():
        change, recovery = event
        if (place := differ.place(examined.series.runs[change.index])) is not None:
            yield _mark(line, examined, event, place, differ)
        if recovery is not None and (back := differ.place(examined.series.runs[recovery.index])) is not None:
            text = "back at the level of before"
            lines = _around(line, examined, recovery, differ)
            yield Mark(back, "recovered", text, lines, recovery.ratio, recovery.old, recovery.new)


def judged(line: Line, changes: Sequence[Mark]) -> Iterable[Mark]:
    """Yield a mark for each verdict that something moved, with its own cause, unless one of the `changes` is the same.

    Consecutive runs with the same verdict beside the same baseline or arm are one event.
    """
    spots = {spot.run: spot for spot in line.spots[PRIMARY]}
    told = [place for place in sorted(line.verdicts) if place in spots and place not in line.experiments]
    events = [list(runs) for _, runs in groupby(told, lambda place: _compared(line, place))]
    for number, runs in enumerate(events):
        verdict = line.verdicts[runs[0]]
        if not row(verdict.outcome).moved or any(
            change.run in runs and change.better == is_fine(verdict.outcome) for change in changes
        ):
            continue
        after = spots[runs[0]].median
        before = after / verdict.ratio if after and verdict.ratio else None
        evidence = verdict.evidence
        lines = evidence.differences if evidence else ()
        # Beside an arm of its own commit a later run says nothing of this event.
        over = number + 1 < len(events) and not (isinstance(evidence, PairsEvidence) and not evidence.lock)
        text = f"{title(verdict.outcome)}, and later no more" if over else title(verdict.outcome)
        yield Mark(runs[0], verdict.outcome, text, lines, verdict.ratio, before, after, undone=over)


def _compared(line: Line, place: int) -> tuple[object, ...]:
    """What was found in a run, and beside what."""
    verdict = line.verdicts[place]
    evidence = verdict.evidence
    arm = (evidence.lock or evidence.against) if isinstance(evidence, PairsEvidence) else ""
    return verdict.outcome, verdict.baseline, arm


def levels(examined: Examined, differ: Differences) -> Iterable[DrawnLevel]:
    """Yield the levels of a series that are on the board."""
    for level in examined.course.levels:
        places = [differ.place(run) for run in examined.series.runs[level.begin : level.end]]
        if on_board := [place for place in places if place is not None]:
            yield DrawnLevel(on_board[0], on_board[-1], level.value)


def _mark(line: Line, examined: Examined, event: Event, place: int, differ: Differences) -> Mark:
    change, recovery = event
    numbers = (change.ratio, change.old, change.new)
    word = "slower" if change.up else "faster"
    lines = _around(line, examined, change, differ)
    if recovery is None:
        return Mark(place, word, f"{word} from here on", lines, *numbers)
    end = examined.series.runs[recovery.index].started_at[:10]
    return Mark(place, word, f"{word}, until {end}", lines, *numbers, undone=True)


def _around(line: Line, examined: Examined, change: ChangePoint, differ: Differences) -> tuple[str, ...]:
    """Describe the runs around a step: the two between which it happened, their commits, and their environments."""
    last, first = examined.series.runs[change.earliest - 1], examined.series.runs[change.latest]
    ends = [run.started_at[:10] for run in (last, first)]
    vague = [f"95 % sure: between the runs of {ends[0]} and {ends[1]}"] if change.latest > change.earliest else []
    commits_differ = last.commit and first.commit and last.commit != first.commit
    commits = [f"commits {(last.commit or '')[:10]}..{(first.commit or '')[:10]}"] if commits_differ else []
    places = differ.place(last), differ.place(first)
    # A run that is older than the board has no environment on it.
    known = () if places[0] is None or places[1] is None else differ.between(line, places[0], places[1])
    return (*vague, *commits, *known)
