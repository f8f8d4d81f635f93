"""The plan of `ipexperf migrate`: what users of one stack do, and what does the same on another one.

Nothing is listed here: rows come from the modes, dtypes and knobs of the old stack, candidates from those of the new
one, and where there is no counterpart, the leaves say why.
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
class Side:
    """A stack in its environment."""

    stack: str
    facts: Facts
    options: Options


@dataclass(frozen=True, slots=True)
class Row:
    """Something that users of the old stack do."""

    case: Case
    candidates: tuple[Case, ...]
    """The cases of the new stack that do the same work, the plainest first."""
    no_equal: str = ""
    """Why the new stack has no case of the same mode and settings, or an empty text."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the old stack that the new one does not have: a case with it, and the same case without."""

    knob: Knob
    on: Case
    off: Case


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What is compared, in the order of value."""

    rows: tuple[Row, ...] = ()
    settings: tuple[Setting, ...] = ()
    contests: tuple[groups.Group, ...] = ()
    """The cases that share rounds."""
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids of the old stack's cells that cannot run, by reason."""
    untrained: str = ""
    """Why no training is compared although it was asked for, in the words of the model, or an empty text."""

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(case for contest in self.contests for case in contest.cases)


def make(old: Side, new: Side) -> MigrationPlan:
    """Plan the migration of the one model that both sides name."""
    planned = [_planned(cell, unmet, old) for cell, unmet in _cells(old)]
    usable = sorted((one for one in planned if isinstance(one, Case)), key=_value)
    other = [one for cell, unmet in _candidates(new) if isinstance(one := _planned(cell, unmet, new), Case)]
    for side, source, cases in ((old, "--from", usable), (new, "--to", other)):
        if not cases:
            raise UsageError(f"{source}: {side.stack} cannot run {', '.join(side.options.model or ())}: {_why(side)}")
    rows = tuple(_row(case, other, new) for case in usable)
    settings = tuple(_settings(rows, old, new))
    return MigrationPlan(rows, settings, tuple(_contests(rows, settings)), _left_out(planned, new), _untrained(planned))


def _why(side: Side) -> str:
    """Why no cell of a side can run: the reason that most of them have."""
    planned = [_planned(one, unmet, side) for one, unmet in _cells(side)]
    reasons = Counter(one.reason for one in planned if isinstance(one, LeftOut))
    return next((reason for reason, _ in reasons.most_common(1)), "no mode and dtype was asked for")


def work(case: Case | Cell) -> tuple[tuple[str, str], ...]:
    """The settings of a case that say what is done. The others say how, and are the stack's."""
    names = {knob.name for knob in registry.modes.get(case.mode).knobs}
    return tuple(setting for setting in case.knobs if setting[0] in names)


def contest(case: Case) -> str:
    """What the cases of a round have in common here: the group, the dtype and the work."""
    settings = "".join(f" {name}={value}" for name, value in work(case))
    return f"{groups.name(case)} {case.dtype}{settings}"


def cell(case: Case) -> Cell:
    """The cell of a case."""
    return Cell(**{axis: getattr(case, axis) for axis in AXES}, knobs=case.knobs)


def _planned(one: Cell, unmet: str | None, side: Side) -> Case | LeftOut:
    return matrix.case_of(one, unmet, side.options, side.facts, {})


def _plain_cells(side: Side) -> Iterator[Cell]:
    """The cells of a stack with this model, each with its defaults."""
    options = side.options
    choices = (
        options.model or (),
        options.device or matrix.DEFAULT_DEVICE,
        _asked(options.dtype, tuple(DTYPES)),
        _asked(options.mode, registry.modes.names()),
    )
    return (Cell(*axes, stack=side.stack) for axes in itertools.product(*choices))


def _asked(wish: Sequence[str] | None, everything: Sequence[str]) -> Sequence[str]:
    return everything if wish is None or matrix.ALL in wish else wish


def _cells(side: Side) -> Iterator[tuple[Cell, str | None]]:
    """The cells of a stack, also with each value of the knobs that users choose among, and why one cannot be."""
    seen = set()
    for plain in _plain_cells(side):
        for wish in _choices(plain, side.options):
            turned = knobs.turned(plain, wish, side.facts)
            if turned[0] not in seen:
                seen.add(turned[0])
                yield turned


def _choices(plain: Cell, options: Options) -> Iterator[tuple[tuple[str, str], ...]]:
    """The settings that are compared one by one: those asked for, or the default and every other value.

    A mode that varies a plain one, such as training on several ranks, is compared at its defaults.
    """
    mode = registry.modes.get(plain.mode)
    if mode.plain:
        yield ()
        return
    declared = (*mode.knobs, *registry.stacks.get(plain.stack).knobs)
    choices = [knob for knob in declared if knob.choice and not knob.unfit(mode)]
    asked = {knob.name: getattr(options, knob.name, ()) for knob in choices}
    if not any(asked.values()):
        yield ()
    for knob in choices:
        for value in asked[knob.name] or knob.values:
            if knob.dtypes is None or plain.dtype in knob.dtypes:
                yield ((knob.name, value),)


def _candidates(side: Side) -> Iterator[tuple[Cell, str | None]]:
    """The cells of a stack, also with each of its own settings turned, but not in training.

    There it would be compiled once more for each, forward and backward, which takes as long as several rows.
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


def _row(case: Case, other: Sequence[Case], new: Side) -> Row:
    candidates = sorted((one for one in other if contest(one) == contest(case)), key=plainness)
    counterpart, unmet = knobs.turned(_bare(case, new.stack), work(case), new.facts)
    equal = _planned(counterpart, unmet, new)
    return Row(case, tuple(candidates), equal.reason if isinstance(equal, LeftOut) else "")


def _bare(case: Case, stack: str) -> Cell:
    return dataclasses.replace(cell(case), stack=stack, knobs=())


def plainness(case: Case) -> tuple[int, int, str]:
    """The order of candidates that are equally fast: what changes a network least, first."""
    return len(case.knobs), GRAPHS.index(registry.modes.get(case.mode).graph), case.id


def _value(case: Case) -> tuple[bool, int, int, int, bool, str]:
    """The order in which rows are measured: inference and training in batches, then what fewer people do.

    A decoder is there to read and to write texts, so that comes before its inference as any network's.
    """
    mode = registry.modes.get(case.mode)
    rank = 0 if mode.by_tokens else 2 if mode.family else 1
    return mode.cold, rank, len(work(case)), list(DTYPES).index(case.dtype), mode.trains, case.id


def _settings(rows: Sequence[Row], old: Side, new: Side) -> Iterator[Setting]:
    """Each setting of the old stack that is on by default and that the new one lacks, in the first row with it.

    Training comes first: there the setting is worth most to know, because nothing of a trained network is frozen.
    Compiling comes last: it takes longest.
    """
    known = {knob.name for knob in registry.stacks.get(new.stack).knobs}
    modes = {row.case: registry.modes.get(row.case.mode) for row in rows}
    ordered = sorted(rows, key=lambda row: (not modes[row.case].trains, GRAPHS.index(modes[row.case].graph)))
    for knob in registry.stacks.get(old.stack).knobs:
        if knob.values != ON_OFF or knob.name in known:
            continue
        for row in ordered:
            off, unmet = knobs.turned(cell(row.case), (*row.case.knobs, (knob.name, "off")), old.facts)
            planned = _planned(off, unmet, old)
            if row.candidates and off.knobs != row.case.knobs and isinstance(planned, Case):
                yield Setting(knob, row.case, planned)
                break


def _contests(rows: Sequence[Row], settings: Sequence[Setting]) -> Iterator[groups.Group]:
    """The rounds: rows, their candidates, and the settings that belong to them.

    In this order, because where they are too many for one round, the first ones take turns with one another.
    """
    names = dict.fromkeys(contest(row.case) for row in rows if row.candidates)
    for name in names:
        ours = [row for row in rows if contest(row.case) == name]
        cases = [
            *(row.case for row in ours),
            *(case for row in ours for case in row.candidates),
            *(setting.off for setting in settings if contest(setting.on) == name),
        ]
        yield groups.Group(name, tuple(dict.fromkeys(cases)))


def _left_out(planned: Sequence[Case | LeftOut], new: Side) -> dict[str, tuple[str, ...]]:
    """The cells that the old stack cannot run, by reason. Not those that no stack can, for the same reason."""
    reasons: dict[str, list[str]] = {}
    for one in planned:
        if isinstance(one, LeftOut):
            other = _planned(*knobs.turned(dataclasses.replace(one.cell, stack=new.stack), (), new.facts), new)
            if not (isinstance(other, LeftOut) and other.reason == one.reason):
                reasons.setdefault(one.reason, []).append(one.id)
    return {reason: tuple(ids) for reason, ids in reasons.items()}


def _untrained(planned: Sequence[Case | LeftOut]) -> str:
    """Why no training is planned, if the model says that none can be: such as a network of which no loss is known."""
    cells = [one.cell if isinstance(one, LeftOut) else one for one in planned]
    trainings = [one for one in cells if registry.modes.get(one.mode).trains]
    if not trainings or any(isinstance(one, Case) for one in trainings):
        return ""
    return registry.models.get(trainings[0].model).why_nots.get(TRAINING, "")
