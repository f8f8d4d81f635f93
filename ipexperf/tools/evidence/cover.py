"""Choose few cases that show every row of the feature table: a greedy set cover, most valuable rows first."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, EXPORTED, GRAPHS, Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.dtypes import DTYPES, PLAIN
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


@dataclass(frozen=True, slots=True)
class CoveringCase:
    """A case to run, with the options that lead to it, such as a placement or a start."""

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
        self._naming = {dtype: _naming(options, dtype) for dtype in DTYPES}
        self._missing: dict[str, str | None] = {}
        self.rows = features.every(device)
        models = [row.of("model") for row in self.rows if row.kind == "model"]
        models += [name for name in (features.DECODER, features.LINEAR) if name in registry.models.names()]
        self._models = sorted(models, key=lambda name: (SMALL.index(name) if name in SMALL else len(SMALL), name))

    def make(self, proved: Collection[Row] = ()) -> Cover:
        """Choose cases that show all rows except those already proved."""
        impossible = {row: reason for row in self.rows if (reason := features.not_here(row, self.device, self.facts))}
        wanted = [row for row in self.rows if row not in impossible and row not in proved]
        candidates = [CoveringCase(case, self._options) for case in self._candidates()]
        candidates += self._pairs(wanted, candidates)
        candidates += self._failures(wanted)
        candidates += self._conditions(wanted)
        chosen, uncovered = self._chosen(wanted, candidates)
        impossible.update({row: self._why(row) for row in uncovered if row not in impossible})
        return Cover(tuple(chosen), impossible)

    def alone(self, planned: CoveringCase) -> list[CoveringCase]:
        """Return simpler cases to run after a case failed: one with none of its settings, and one with each alone."""
        case = features.without_conditions(planned.case)
        if planned.case != case:
            return []
        plain = dataclasses.replace(features.cell_of(case), knobs=())
        cases = [self._case(plain, settings) for settings in ((), *((setting,) for setting in case.knobs))]
        return [
            CoveringCase(simpler, planned.options) for simpler in cases if isinstance(simpler, Case) and simpler != case
        ]

    def _case(self, cell: Cell, settings: Sequence[Setting] = (), options: Options | None = None) -> Case | LeftOut:
        turned_cell, unmet = knobs.turned(cell, tuple(settings), self.facts)
        named = _naming(options, cell.dtype) if options else self._naming[cell.dtype]
        return matrix.case_of(turned_cell, unmet, named, self.facts, self._missing)

    @functools.cached_property
    def _plain(self) -> list[Cell]:
        """For each mode, dtype and stack: the cell of the first model that can run it."""
        plain = []
        for row in self.rows:
            if row.kind == "mode":
                cells = [self._cell(row, model) for model in self._models]
                plain += [cell for cell in cells if next(self._settled(cell), None) is not None][:1]
        return plain

    def _cell(self, row: Row, model: str) -> Cell:
        """Return the cell of a mode's row with this model."""
        return Cell(model, self.device, row.of("dtype"), row.of("mode"), row.of("stack"))

    def _whole(self, model: str) -> list[Cell]:
        """Return the cells of a model in the plain dtype, the plainest first."""
        return [Cell(model, self.device, PLAIN, mode, stack) for mode in self._modes() for stack in _stacks()]

    def _settled(self, cell: Cell) -> Iterator[Case]:
        """Yield the case of a cell at its defaults, or else one for each setting of its mode that makes it possible."""
        case = self._case(cell)
        if isinstance(case, Case):
            yield case
            return
        for setting in _choices(cell):
            if isinstance(with_setting := self._case(cell, (setting,)), Case):
                yield with_setting

    def _candidates(self) -> Iterator[Case]:
        """Yield cases at their defaults and with each setting, and the plainest case of each model."""
        for cell in self._plain:
            for case in self._settled(cell):
                yield case
                for setting in _settings(cell):
                    if isinstance(with_setting := self._case(dataclasses.replace(cell), (*case.knobs, setting)), Case):
                        yield with_setting
        yield from self._of_linear_layers()
        for model in self._models:
            plainest = next((case for cell in self._whole(model) for case in self._settled(cell)), None)
            if plainest is not None:
                yield plainest

    @functools.cached_property
    def _linear(self) -> list[Cell]:
        """The plain cells with the network of linear layers, if that is registered."""
        registered = features.LINEAR in self._models
        return [dataclasses.replace(cell, model=features.LINEAR) for cell in self._plain] if registered else []

    def _of_linear_layers(self) -> Iterator[Case]:
        for cell in self._linear:
            for setting in filter(OF_LINEAR_LAYERS.__contains__, _settings(cell)):
                if isinstance(case := self._case(cell, (setting,)), Case):
                    yield case

    def _modes(self) -> list[str]:
        """Return the modes, those that change a network least first."""
        modes = registry.modes

        def plainness(name: str) -> tuple[bool, bool, int, str]:
            mode = modes.get(name)
            return mode.trains, bool(mode.family), GRAPHS.index(mode.graph), name

        return sorted(modes.names(), key=plainness)

    def _pairs(self, wanted: Iterable[Row], candidates: Sequence[CoveringCase]) -> list[CoveringCase]:
        """For each setting that no case can have alone, return the first case that can have it beside another one."""
        missing = [row for row in wanted if row.kind == "knob" and not self._shown(row, candidates)]
        return [pair for row in missing if (pair := self._pair(row)) is not None]

    def _pair(self, row: Row) -> CoveringCase | None:
        for cell in self._linear if _of_linear_layers(row) else self._plain:
            if cell.stack != row.of("stack"):
                continue
            for value in NUMBERS if row.of("value") == NUMBER else (row.of("value"),):
                for other in _settings(cell):
                    case = self._case(cell, (other, (row.of("knob"), value)))
                    if isinstance(case, Case) and features.shows(row, case, self.facts):
                        return CoveringCase(case, self._options)
        return None

    def _shown(self, row: Row, candidates: Iterable[CoveringCase]) -> bool:
        return any(self.shows(row, candidate.case) for candidate in candidates)

    def shows(self, row: Row, case: Case) -> bool:
        """Return True if the case shows the row, and is of the network that shows it best."""
        if _of_linear_layers(row) and self._linear and case.model != features.LINEAR:
            return False
        return features.shows(row, case, self.facts)

    def _failures(self, wanted: Iterable[Row]) -> list[CoveringCase]:
        """Return the plainest case of each model that fails on purpose."""
        planned = []
        for row in wanted:
            if row.kind != "failure" or features.failing(row.of("outcome")) not in registry.models.names():
                continue
            cells = self._whole(features.failing(row.of("outcome")))
            case = next((case for cell in cells if isinstance(case := self._case(cell), Case)), None)
            if case is not None:
                planned.append(CoveringCase(case, self._options))
        return planned

    def _conditions(self, wanted: Iterable[Row]) -> list[CoveringCase]:
        """Return the plainest case under each condition. The run shows whether the machine can meet the condition."""
        cells = [cell for cell in self._plain if cell.dtype == PLAIN and cell.mode in self._modes()]
        cell = min(
            cells,
            key=lambda candidate: (_stacks().index(candidate.stack), self._modes().index(candidate.mode)),
            default=None,
        )
        if cell is None:
            return []
        planned = []
        for row in wanted:
            if row.kind == "condition":
                options = self._under(row)
                case = self._case(cell, options=options)
                if isinstance(case, Case) and features.shows(row, case, self.facts):
                    planned.append(CoveringCase(case, options))
        return planned

    def _under(self, row: Row) -> Options:
        """Return the options that ask for the condition of a row."""
        # Every machine has these. A container without them fails with a message.
        any_machine = {"cores": "0", "node": "0"}
        words = f"{row.of('name')}={row.of('value') or any_machine[row.of('name')]}"
        return dataclasses.replace(self._options, placement=placement.read(words))

    def _chosen(
        self, wanted: Sequence[Row], candidates: Sequence[CoveringCase]
    ) -> tuple[list[CoveringCase], list[Row]]:
        """Choose cases greedily. Return them, and the rows that none of them shows."""
        rows_of = {candidate: {row for row in wanted if self.shows(row, candidate.case)} for candidate in candidates}
        order = {candidate: number for number, candidate in enumerate(rows_of)}
        uncovered = set(wanted)
        chosen: list[tuple[CoveringCase, set[Row]]] = []
        while True:

            def key(candidate: CoveringCase) -> tuple[float, bool, int, int]:
                rows = {row for row in rows_of[candidate] & uncovered if row.kind != "model"}  # noqa: B023 - called at once
                # The worth of a model's own row is left out: it would draw other rows to large models.
                return (
                    -self._worth(rows) / cost(candidate.case),
                    candidate.case.model not in SMALL,
                    len(candidate.case.knobs),
                    order[candidate],
                )

            best = min((candidate for candidate in rows_of if rows_of[candidate] & uncovered), key=key, default=None)
            if best is None:
                # So a model's row runs before an emulated dtype in a mode that takes long, such as one that compiles.
                chosen.sort(key=lambda pick: -self._worth(pick[1]) / cost(pick[0].case))
                return [planned for planned, _ in chosen], [row for row in wanted if row in uncovered]
            planned, rows = self._packed(best, rows_of[best] & uncovered, uncovered)
            chosen.append((planned, rows))
            uncovered -= rows

    def _packed(self, planned: CoveringCase, rows: set[Row], uncovered: set[Row]) -> tuple[CoveringCase, set[Row]]:
        """Add settings to the case while it shows more rows and loses none. Return it with the rows it shows."""
        plain = features.is_whole(planned.case) and planned.case.model != features.LINEAR
        if planned.case != features.without_conditions(planned.case) or not plain:
            return planned, rows
        stack, missing_rows = planned.case.stack, sorted(uncovered, key=str)
        for row in (row for row in missing_rows if row.kind == "knob" and row.of("stack") == stack):
            if row in rows or row.of("knob") in dict(planned.case.knobs):
                continue
            cell = dataclasses.replace(features.cell_of(planned.case), knobs=())
            for value in NUMBERS if row.of("value") == NUMBER else (row.of("value"),):
                case = self._case(cell, (*planned.case.knobs, (row.of("knob"), value)))
                if not isinstance(case, Case):
                    continue
                with_value = {other for other in uncovered if self.shows(other, case)}
                if with_value > rows:
                    planned, rows = CoveringCase(case, planned.options), with_value
                    break
        return planned, rows

    def _worth(self, rows: Iterable[Row]) -> int:
        return sum(EMULATED if features.emulated(row, self.device, self.facts) else WORTH[row.kind] for row in rows)

    def _why(self, row: Row) -> str:
        """Return the reason why no case shows a row."""
        if row.kind == "mode":
            return self._why_mode(row)
        if row.kind == "model":
            tries = (self._case(cell) for cell in self._whole(row.of("model")))
            return next((answer.reason for answer in tries if isinstance(answer, LeftOut)), "no case has it")
        if row.kind == "knob":
            return self._why_knob(row)
        return "no case has it"

    def _why_mode(self, row: Row) -> str:
        """Return the reason of the first model that can run the mode in any dtype on any stack."""
        mode = row.of("mode")
        able = [
            model
            for model in self._models
            if any(
                isinstance(self._case(Cell(model, self.device, dtype, mode, stack)), Case)
                for dtype in DTYPES
                for stack in _stacks()
            )
        ]
        for model in (*able, *self._models):
            cell = self._cell(row, model)
            tries = [self._case(cell, settings) for settings in ((), *((setting,) for setting in _choices(cell)))]
            reasons = [answer.reason for answer in tries if isinstance(answer, LeftOut)]
            if len(reasons) == len(tries):
                return reasons[-1] if registry.stacks.get(cell.stack).by_name else reasons[0]
        return "no model can"

    def _why_knob(self, row: Row) -> str:
        """Return the reason of the first cell that has the knob, or say that no case of the stack has it."""
        reason = ""
        value = NUMBERS[0] if row.of("value") == NUMBER else row.of("value")
        for cell in self._plain:
            if cell.stack == row.of("stack") and row.of("knob") in knobs.of(cell):
                case = self._case(cell, ((row.of("knob"), value),))
                if isinstance(case, LeftOut):
                    return case.reason
                reason = reason or f"{cell.stack} has it by default alone"
        return reason or f"no case of {row.of('stack')} has the knob {row.of('knob')}"


def cost(case: Case) -> int:
    """Estimate how many times as long as plain inference a case takes."""
    mode = registry.modes.get(case.mode)
    compiled = mode.graph in (COMPILED, EXPORTED)
    return 1 + mode.trains + 2 * compiled + 2 * mode.requests + 2 * (mode.processes(case) - 1)


def _naming(options: Options, dtype: str) -> Options:
    """Return the options with this dtype named: an emulated one is left out unless they name it."""
    return dataclasses.replace(options, dtype=(dtype,))


def _of_linear_layers(row: Row) -> bool:
    return (row.of("knob"), row.of("value")) in OF_LINEAR_LAYERS


def _stacks() -> list[str]:
    """Return the stacks, stock PyTorch first."""
    return sorted(registry.stacks.names(), key=lambda name: (name != groups.STOCK, name))


def _choices(cell: Cell) -> Iterator[Setting]:
    """Yield the settings of the mode that choose the work, such as a kind of input."""
    for knob in registry.modes.get(cell.mode).knobs:
        if knob.choice:
            yield from ((knob.name, value) for value in knob.values)


def _settings(cell: Cell) -> Iterator[Setting]:
    """Yield every setting that the mode and the stack of a cell have."""
    for name, knob in knobs.of(cell).items():
        for value in features.values(knob):
            numbers = [number for number in NUMBERS if knob.wrong(number) is None and number not in knob.values]
            yield from ((name, chosen) for chosen in (numbers if value == NUMBER else [value]))
