"""Choose few cases that show every row of the feature table, and put the most valuable first."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, EXPORTED, GRAPHS, Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.dtypes import PLAIN
from ipexperf.plan import groups, knobs, matrix, placement
from ipexperf.plan.matrix import LeftOut
from ipexperf.plan.options import Options
from ipexperf.tools.evidence import features
from ipexperf.tools.evidence.features import NUMBER, Row

SMALL = ("resnet18", features.DECODER, features.LINEAR)
"""The models to try first: the cheapest. The others follow by name."""
OF_LINEAR_LAYERS = frozenset({("linear_bn_folding", "off"), ("quantisation", "dynamic")})
"""Settings with little or no effect on convolutions: the network of linear layers shows them."""
WORTH: Mapping[str, int] = {"instructions": 20, "failure": 12, "mode": 10, "knob": 4, "condition": 4, "model": 1}
"""The worth of a row, by kind: what only this machine can show comes first."""
EMULATED = 2
"""The worth of a row whose dtype this processor only emulates."""
NUMBERS = ("2", "1", "4", "8")
"""Values to try for a knob that takes any number."""

Setting = tuple[str, str]
Try = tuple[Cell, tuple[Setting, ...]]
"""A cell and the settings to turn in it."""


@dataclass(frozen=True, slots=True)
class CoveringCase:
    """A case to run, with the options that lead to it, such as a placement."""

    case: Case
    options: Options = field(compare=False)


@dataclass(frozen=True, slots=True)
class Cover:
    """The chosen cases, the most valuable first, and the reasons why no case shows the other rows."""

    planned: tuple[CoveringCase, ...]
    impossible: Mapping[Row, str]


class Planner:
    """Plans the cases of one device."""

    def __init__(self, device: str, options: Options, facts: Facts) -> None:
        """`facts` are those of the workers' interpreter and this machine."""
        self.device = device
        self.facts = facts
        self._options = options
        self._missing: dict[str, str | None] = {}
        self.rows = features.every(device)
        models = [row.of("model") for row in self.rows if row.kind == "model"]
        models += [name for name in (features.DECODER, features.LINEAR) if name in registry.models.names()]
        self._models = sorted(models, key=lambda name: (SMALL.index(name) if name in SMALL else len(SMALL), name))

    def make(self, proved: Collection[Row] = ()) -> Cover:
        """Choose cases that show all rows except those already proved.

        Each row that no case before it shows gets the plainest case that does, with as many other settings as fit.
        """
        impossible = {row: reason for row in self.rows if (reason := features.not_here(row, self.device, self.facts))}
        uncovered = {row for row in self.rows if row not in impossible and row not in proved}
        chosen: list[tuple[CoveringCase, set[Row]]] = []
        for row in sorted(self.rows, key=lambda row: -self._worth([row])):
            if row not in uncovered:
                continue
            planned = self._plainest(row)
            if isinstance(planned, str):
                impossible[row] = planned
                uncovered.remove(row)
                continue
            planned, rows = self._packed(planned, uncovered)
            chosen.append((planned, rows))
            uncovered -= rows
        # A model's row runs before an emulated dtype in a mode that takes long, such as one that compiles.
        chosen.sort(key=lambda pick: -self._worth(pick[1]) / cost(pick[0].case))
        return Cover(tuple(planned for planned, _ in chosen), impossible)

    def alone(self, planned: CoveringCase) -> list[CoveringCase]:
        """Return simpler cases to run after a case failed: one with none of its settings, and one with each alone."""
        case = planned.case
        if case.settings != case.knobs:
            return []
        plain = dataclasses.replace(features.cell_of(case), knobs=())
        cases = [self._case((plain, settings)) for settings in ((), *((setting,) for setting in case.knobs))]
        return [
            CoveringCase(simpler, planned.options) for simpler in cases if isinstance(simpler, Case) and simpler != case
        ]

    def shows(self, row: Row, case: Case) -> bool:
        """Return True if the case shows the row, and is of the network that shows it best."""
        if _of_linear_layers(row) and features.LINEAR in self._models and case.model != features.LINEAR:
            return False
        return features.shows(row, case, self.facts)

    def _case(self, one: Try, options: Options | None = None) -> Case | LeftOut:
        cell, settings = one
        turned_cell, unmet = knobs.turned(cell, settings, self.facts)
        # With its dtype named, because an emulated one is left out otherwise.
        named = dataclasses.replace(options or self._options, dtype=(cell.dtype,))
        return matrix.case_of(turned_cell, unmet, named, self.facts, self._missing)

    def _plainest(self, row: Row) -> CoveringCase | str:
        """Return the first case that shows a row, or the reason why no case does."""
        options = self._under(row) if row.kind == "condition" else self._options
        left_out: list[LeftOut] = []
        for tried in self._tries(row):
            case = self._case(tried, options)
            if isinstance(case, LeftOut):
                left_out.append(case)
            elif self.shows(row, case):
                return CoveringCase(case, options)
        if left_out and row.kind in ("mode", "knob", "model"):
            reasons = [one.reason for one in left_out if one.cell.model == left_out[0].cell.model]
            # A stack that is asked for by name may have nothing to do at its defaults: its last setting tells more.
            last = row.kind == "mode" and registry.stacks.get(row.of("stack")).by_name
            return reasons[-1] if last else reasons[0]
        if row.kind == "knob":
            stack, knob = row.of("stack"), row.of("knob")
            has_it = next(self._tries(row), None) is not None
            return f"{stack} has it by default alone" if has_it else f"no case of {stack} has the knob {knob}"
        return "no case has it"

    def _tries(self, row: Row) -> Iterator[Try]:
        """Yield what may show a row, the plainest first."""
        if row.kind == "mode":
            for model in dict.fromkeys((*self._able(row.of("mode")), *self._models)):
                yield from _with_choices(self._cell(row, model))
        elif row.kind == "knob":
            yield from self._with_knob(row)
        elif row.kind == "instructions":
            for cell in self._plain:
                if cell.dtype == row.of("dtype"):
                    yield from _with_choices(cell)
        elif row.kind == "condition":
            cells = [cell for cell in self._plain if cell.dtype == PLAIN]
            yield from ((cell, ()) for cell in sorted(cells, key=_plainness)[:1])
        else:
            model = row.of("model") or features.failing(row.of("outcome"))
            if model in registry.models.names():
                cells = [
                    Cell(model, self.device, PLAIN, mode, stack)
                    for mode in registry.modes.names()
                    for stack in registry.stacks.names()
                ]
                for cell in sorted(cells, key=_plainness):
                    yield from _with_choices(cell)

    def _with_knob(self, row: Row) -> Iterator[Try]:
        """Yield cells with the setting of a row, and after all of them those that have another setting too."""
        knob, linear = row.of("knob"), _of_linear_layers(row) and features.LINEAR in self._models
        cells = [dataclasses.replace(cell, model=features.LINEAR) if linear else cell for cell in self._plain]
        cells = [cell for cell in cells if cell.stack == row.of("stack") and knob in knobs.of(cell)]
        settings = [(knob, value) for value in (NUMBERS if row.of("value") == NUMBER else (row.of("value"),))]
        yield from ((cell, (setting,)) for cell in cells for setting in settings)
        yield from ((cell, (other, setting)) for cell in cells for setting in settings for other in _settings(cell))

    @functools.cached_property
    def _plain(self) -> list[Cell]:
        """For each mode, dtype and stack: the cell of the first model that can run it."""
        plain = []
        for row in self.rows:
            if row.kind == "mode":
                cells = [self._cell(row, model) for model in self._models]
                plain += [cell for cell in cells if any(self._runs(one) for one in _with_choices(cell))][:1]
        return plain

    def _runs(self, one: Try) -> bool:
        return isinstance(self._case(one), Case)

    def _able(self, mode: str) -> list[str]:
        """The models that can run a mode in any dtype on any stack."""
        return list(dict.fromkeys(cell.model for cell in self._plain if cell.mode == mode))

    def _cell(self, row: Row, model: str) -> Cell:
        """Return the cell of a mode's row with this model."""
        return Cell(model, self.device, row.of("dtype"), row.of("mode"), row.of("stack"))

    def _under(self, row: Row) -> Options:
        """Return the options that ask for the condition of a row."""
        # Every machine has these. A container without them fails with a message.
        any_machine = {"cores": "0", "node": "0"}
        words = f"{row.of('name')}={row.of('value') or any_machine[row.of('name')]}"
        return dataclasses.replace(self._options, placement=placement.read(words))

    def _packed(self, planned: CoveringCase, uncovered: Collection[Row]) -> tuple[CoveringCase, set[Row]]:
        """Add settings to the case while it shows more rows and loses none. Return it with the rows it shows."""
        rows = {row for row in uncovered if self.shows(row, planned.case)}
        case = planned.case
        if case.settings != case.knobs or not features.is_whole(case) or case.model == features.LINEAR:
            return planned, rows
        cell = dataclasses.replace(features.cell_of(case), knobs=())
        for row in self.rows:
            if row.kind != "knob" or row not in uncovered or row in rows or row.of("stack") != case.stack:
                continue
            if row.of("knob") in dict(planned.case.knobs):
                continue
            for value in NUMBERS if row.of("value") == NUMBER else (row.of("value"),):
                more = self._case((cell, (*planned.case.knobs, (row.of("knob"), value))))
                if not isinstance(more, Case):
                    continue
                with_value = {other for other in uncovered if self.shows(other, more)}
                if with_value > rows:
                    planned, rows = CoveringCase(more, planned.options), with_value
                    break
        return planned, rows

    def _worth(self, rows: Iterable[Row]) -> int:
        return sum(EMULATED if features.emulated(row, self.device, self.facts) else WORTH[row.kind] for row in rows)


def cost(case: Case) -> int:
    """Estimate how many times as long as plain inference a case takes."""
    mode = registry.modes.get(case.mode)
    compiled = mode.graph in (COMPILED, EXPORTED)
    return 1 + mode.trains + 2 * compiled + 2 * mode.requests + 2 * (mode.processes(case) - 1)


def _plainness(cell: Cell) -> tuple[bool, bool, int, str, bool, str]:
    """The sort key of cells: modes that change a network least come first, and stock PyTorch of each."""
    mode = registry.modes.get(cell.mode)
    how = mode.trains, bool(mode.family), GRAPHS.index(mode.graph), cell.mode
    return (*how, cell.stack != groups.STOCK, cell.stack)


def _of_linear_layers(row: Row) -> bool:
    return (row.of("knob"), row.of("value")) in OF_LINEAR_LAYERS


def _with_choices(cell: Cell) -> Iterator[Try]:
    """Yield a cell at its defaults, and with each setting of the mode that chooses the work, such as an input."""
    yield cell, ()
    for knob in registry.modes.get(cell.mode).knobs:
        if knob.choice:
            yield from ((cell, ((knob.name, value),)) for value in knob.values)


def _settings(cell: Cell) -> Iterator[Setting]:
    """Yield every setting that the mode and the stack of a cell have."""
    for name, knob in knobs.of(cell).items():
        for value in features.values(knob):
            numbers = [number for number in NUMBERS if knob.wrong(number) is None and number not in knob.values]
            yield from ((name, chosen) for chosen in (numbers if value == NUMBER else [value]))
