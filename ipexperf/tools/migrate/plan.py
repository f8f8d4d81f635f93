"""The plan of `ipexperf migrate`: the work that users do on one stack, and the cases of another stack that do the same.

Nothing is listed here: rows come from the modes, dtypes and knobs of the old stack, candidates from those of the new
one. Where there is no counterpart, the leaves give the reason.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ipexperf.bench import registry
from ipexperf.bench.api import GRAPHS, TRAINING, Cell, Knob
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import AXES, Case
from ipexperf.dtypes import DTYPES
from ipexperf.errors import UsageError
from ipexperf.plan import groups, knobs, matrix
from ipexperf.plan.matrix import LeftOut
from ipexperf.plan.options import Options

ON_OFF = ("on", "off")


@dataclass(frozen=True, slots=True)
class StackSide:
    """A stack in its environment."""

    stack: str
    facts: Facts
    options: Options


@dataclass(frozen=True, slots=True)
class OldCase:
    """A case of the old stack, with the cases of the new one that may replace it."""

    case: Case
    candidates: tuple[Case, ...]
    """The cases of the new stack that do the same work, the plainest first."""
    no_equal: str = ""
    """The reason why the new stack has no case of the same mode and settings, or an empty text."""


@dataclass(frozen=True, slots=True)
class LostSetting:
    """A setting of the old stack that the new one does not have: a case with it, and the same case without."""

    knob: Knob
    on: Case
    off: Case


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The rows, settings and rounds of a migration, the most valuable first."""

    rows: tuple[OldCase, ...] = ()
    settings: tuple[LostSetting, ...] = ()
    contests: tuple[groups.Group, ...] = ()
    """The cases that share rounds."""
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids of the old stack's cells that cannot run, by reason."""
    untrained: str = ""
    """The model's reason why no training is compared although it was requested, or an empty text."""

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(case for contest in self.contests for case in contest.cases)


def make(old: StackSide, new: StackSide) -> MigrationPlan:
    """Plan the migration of the one model that both sides name."""
    planned = [_planned(cell, unmet, old) for cell, unmet in _cells(old)]
    usable = sorted((case for case in planned if isinstance(case, Case)), key=_value)
    new_cases = [case for cell, unmet in _candidates(new) if isinstance(case := _planned(cell, unmet, new), Case)]
    for side, source, cases in ((old, "--from", usable), (new, "--to", new_cases)):
        if not cases:
            raise UsageError(f"{source}: {side.stack} cannot run {', '.join(side.options.model or ())}: {_why(side)}")
    rows = tuple(_row(case, new_cases, new) for case in usable)
    settings = tuple(_settings(rows, old, new))
    return MigrationPlan(rows, settings, tuple(_contests(rows, settings)), _left_out(planned, new), _untrained(planned))


def _why(side: StackSide) -> str:
    """Return the commonest reason why the cells of a side cannot run."""
    planned = [_planned(cell, unmet, side) for cell, unmet in _cells(side)]
    reasons = Counter(left_out.reason for left_out in planned if isinstance(left_out, LeftOut))
    return next((reason for reason, _ in reasons.most_common(1)), "no mode and dtype was asked for")


def work(case: Case | Cell) -> tuple[tuple[str, str], ...]:
    """Return the settings of the case's mode: those that choose the work. The others belong to the stack."""
    names = {knob.name for knob in registry.modes.get(case.mode).knobs}
    return tuple(setting for setting in case.knobs if setting[0] in names)


def contest(case: Case) -> str:
    """Return the name of a round: the group, the dtype and the work that its cases share."""
    settings = "".join(f" {name}={value}" for name, value in work(case))
    return f"{groups.name(case)} {case.dtype}{settings}"


def cell(case: Case) -> Cell:
    """Return the cell of a case."""
    return Cell(**{axis: getattr(case, axis) for axis in AXES}, knobs=case.knobs)


def _planned(cell: Cell, unmet: str | None, side: StackSide) -> Case | LeftOut:
    return matrix.case_of(cell, unmet, side.options, side.facts, {})


def _plain_cells(side: StackSide) -> Iterator[Cell]:
    """Yield the cells of a stack with this model, each at its defaults."""
    options = side.options
    choices = (
        options.model or (),
        options.device or matrix.DEFAULT_DEVICE,
        _requested_or_all(options.dtype, tuple(DTYPES)),
        _requested_or_all(options.mode, registry.modes.names()),
    )
    return (Cell(*axes, stack=side.stack) for axes in itertools.product(*choices))


def _requested_or_all(requested: Sequence[str] | None, all_values: Sequence[str]) -> Sequence[str]:
    return all_values if requested is None or matrix.ALL in requested else requested


def _cells(side: StackSide) -> Iterator[tuple[Cell, str | None]]:
    """Yield the cells of a stack, also with each value of the knobs that users choose from, and why one cannot run."""
    yielded = set()
    for plain in _plain_cells(side):
        for settings in _choices(plain, side.options):
            turned = knobs.turned(plain, settings, side.facts)
            if turned[0] not in yielded:
                yielded.add(turned[0])
                yield turned


def _choices(plain: Cell, options: Options) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield the settings to compare, one by one: the requested ones, or the default and every other value.

    A mode that varies a plain one, such as training on several ranks, is compared at its defaults.
    """
    mode = registry.modes.get(plain.mode)
    if mode.plain:
        yield ()
        return
    declared = (*mode.knobs, *registry.stacks.get(plain.stack).knobs)
    choices = [knob for knob in declared if knob.choice and not knob.unfit(mode)]
    requested = knobs.requested(options)
    if not any(knob.name in requested for knob in choices):
        yield ()
    for knob in choices:
        for value in requested.get(knob.name, knob.values):
            if knob.dtypes is None or plain.dtype in knob.dtypes:
                yield ((knob.name, value),)


def _candidates(side: StackSide) -> Iterator[tuple[Cell, str | None]]:
    """Yield the cells of a stack, also with each of its own settings turned, except in training.

    Training would be compiled once more for each, forward and backward, which takes as long as several rows.
    """
    for plain, unmet in _cells(side):
        yield plain, unmet
        if registry.modes.get(plain.mode).trains:
            continue
        for knob in registry.stacks.get(side.stack).knobs:
            default = knob.default(registry.models.get(plain.model), dict(plain.knobs))
            for value in knob.values:
                if value != default:
                    turned, reason = knobs.turned(plain, (*plain.knobs, (knob.name, value)), side.facts)
                    yield turned, unmet or reason


def _row(case: Case, new_cases: Sequence[Case], new: StackSide) -> OldCase:
    candidates = sorted((candidate for candidate in new_cases if contest(candidate) == contest(case)), key=plainness)
    counterpart, unmet = knobs.turned(_bare(case, new.stack), work(case), new.facts)
    equal = _planned(counterpart, unmet, new)
    return OldCase(case, tuple(candidates), equal.reason if isinstance(equal, LeftOut) else "")


def _bare(case: Case, stack: str) -> Cell:
    return dataclasses.replace(cell(case), stack=stack, knobs=())


def plainness(case: Case) -> tuple[int, int, str]:
    """Return the sort key of candidates that are equally fast: those that change a network least come first."""
    return len(case.knobs), GRAPHS.index(registry.modes.get(case.mode).graph), case.id


def _value(case: Case) -> tuple[bool, int, int, int, bool, str]:
    """Return the sort key of rows: inference and training in batches first, then what fewer people do.

    For a decoder, reading and writing texts comes before inference in batches.
    """
    mode = registry.modes.get(case.mode)
    rank = 0 if mode.by_tokens else 2 if mode.family else 1
    return mode.cold, rank, len(work(case)), list(DTYPES).index(case.dtype), mode.trains, case.id


def _settings(rows: Sequence[OldCase], old: StackSide, new: StackSide) -> Iterator[LostSetting]:
    """Yield each setting that the old stack has on by default and the new one lacks, in the first row with it.

    Training comes first: its settings matter most, because nothing of a network in training is frozen.
    Compiling comes last: it takes longest.
    """
    knobs_of_new = {knob.name for knob in registry.stacks.get(new.stack).knobs}
    modes = {row.case: registry.modes.get(row.case.mode) for row in rows}
    ordered = sorted(rows, key=lambda row: (not modes[row.case].trains, GRAPHS.index(modes[row.case].graph)))
    for knob in registry.stacks.get(old.stack).knobs:
        if knob.values != ON_OFF or knob.name in knobs_of_new:
            continue
        for row in ordered:
            off, unmet = knobs.turned(cell(row.case), (*row.case.knobs, (knob.name, "off")), old.facts)
            planned = _planned(off, unmet, old)
            if row.candidates and off.knobs != row.case.knobs and isinstance(planned, Case):
                yield LostSetting(knob, row.case, planned)
                break


def _contests(rows: Sequence[OldCase], settings: Sequence[LostSetting]) -> Iterator[groups.Group]:
    """Yield the rounds: rows, their candidates, and the settings that belong to them.

    In this order: if they are too many for one round, the first ones take turns with one another.
    """
    names = dict.fromkeys(contest(row.case) for row in rows if row.candidates)
    for name in names:
        rows_of_contest = [row for row in rows if contest(row.case) == name]
        cases = [
            *(row.case for row in rows_of_contest),
            *(case for row in rows_of_contest for case in row.candidates),
            *(setting.off for setting in settings if contest(setting.on) == name),
        ]
        yield groups.Group(name, tuple(dict.fromkeys(cases)))


def _left_out(planned: Sequence[Case | LeftOut], new: StackSide) -> dict[str, tuple[str, ...]]:
    """Return the cells that the old stack cannot run, by reason, except those that the new one refuses for the same."""
    reasons: dict[str, list[str]] = {}
    for cell_or_case in planned:
        if isinstance(cell_or_case, LeftOut):
            on_new_stack = _planned(
                *knobs.turned(dataclasses.replace(cell_or_case.cell, stack=new.stack), (), new.facts), new
            )
            if not (isinstance(on_new_stack, LeftOut) and on_new_stack.reason == cell_or_case.reason):
                reasons.setdefault(cell_or_case.reason, []).append(cell_or_case.id)
    return {reason: tuple(ids) for reason, ids in reasons.items()}


def _untrained(planned: Sequence[Case | LeftOut]) -> str:
    """Return the model's reason why no training is planned, such as that its loss is unknown, or an empty text."""
    cells = [planned_cell.cell if isinstance(planned_cell, LeftOut) else planned_cell for planned_cell in planned]
    trainings = [cell for cell in cells if registry.modes.get(cell.mode).trains]
    if not trainings or any(isinstance(one, Case) for one in trainings):
        return ""
    return registry.models.get(trainings[0].model).why_nots.get(TRAINING, "")
