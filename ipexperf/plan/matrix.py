"""The matrix: combine presets, axes and registries. Each cell becomes a case, or is left out with a reason."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from ipexperf.bench import declaration, loading, optimizers, precision, registry
from ipexperf.bench.api import GRAPHS, INFERENCE, TRAINING, Mode, Stack
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Model
from ipexperf.bench.networks import own_target as targets
from ipexperf.case import AXES, NetworkCase
from ipexperf.dtypes import DTYPES
from ipexperf.errors import UsageError, WorkerError
from ipexperf.plan import knobs, sizes
from ipexperf.plan.options import Options
from ipexperf.plan.presets import PRESETS

ALL = "all"
MARK = ("models", "own", "tolerance", "gate")
"""The arguments of `pytest.mark.perf`."""
REASONS = 3
"""Most reasons to show if a request cannot be met. Each stack may have one."""
PATH_OR_REASON = [NoneType, str]
"""The types, in any order, of what a data set's `find` returns."""
DEFAULT_DEVICE = ("cpu",)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A cell that does not run, with the reason."""

    cell: Cell
    reason: str

    @property
    def id(self) -> str:
        return self.cell.id


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases to run, the cells left out, and the number of launches."""

    cases: tuple[NetworkCase, ...]
    left_out: tuple[LeftOut, ...]
    launches: int
    facts: Facts
    """The facts of the workers' interpreter and of their machine."""
    preset: str

    @property
    def why_empty(self) -> str:
        """Why there is no case, or an empty text."""
        empty = not self.cases and self.left_out
        return f"nothing in preset {self.preset} can run here: {self.left_out[0].reason}" if empty else ""

    @property
    def reasons(self) -> dict[str, int]:
        """The number of cells left out, by reason."""
        return dict(Counter(left.reason for left in self.left_out))


def names(axis: str) -> tuple[str, ...]:
    """Return all values of an axis."""
    if axis == "dtype":
        return tuple(DTYPES)
    return registry.KINDS[axis].names()


def check_names(options: Options) -> None:
    """Load what the options name. Raise UsageError for unknown names, with the option that they came from."""
    loading.load(options.load)
    for axis in AXES:
        requested = [value for value in options.axis(axis) or () if value != ALL]
        check(axis, requested, options.source(axis))
    for name, index in options.indices.items():
        if name == ALL or not registry.devices.get(name).accelerator:
            source = options.source("device")
            raise UsageError(f"{source}: {name}:{index}: {name} has no index: only a card has one, as in xpu:1")
    knobs.check(options)


def check(axis: str, requested: Iterable[str], source: str) -> None:
    """Raise UsageError for the first of these names that the axis does not have."""
    available = names(axis)
    registered = set(available)
    for value in requested:
        if value not in registered:
            if axis == "model" and (file := Path(value).with_suffix(".py")).is_file():
                raise UsageError(f"{source}: {file} is a file: name what makes its network, as {targets.example(file)}")
            raise UsageError(f"{source}: {registry.unknown(axis, value, available)}")


def selected(cases: Iterable[NetworkCase], mark: Mapping[str, Any], source: str) -> list[NetworkCase]:
    """Return the cases of a test marked with `models=[...]` or `own=True`; else all cases."""
    models, own = mark.get("models"), mark.get("own")
    if models is None and own is None:
        return list(cases)
    loading.load(name for name in models or () if ":" in name)
    wanted_models = {targets.parse(name).name if targets.is_target(name) else name for name in models or ()}
    check("model", wanted_models, source)
    return [case for case in cases if case.model in wanted_models or (own and registry.models.get(case.model).target)]


def mark_arguments(marks: Iterable[Any], source: str) -> dict[str, Any]:
    """Merge the `perf` marks of a test. The test's own win over those of its class and module."""
    arguments: dict[str, Any] = {}
    for mark in marks:
        if mark.args:
            raise UsageError(f"{source}: pytest.mark.perf: name the argument, such as models={mark.args[0]!r}")
        for name in mark.kwargs:
            if name not in MARK:
                raise UsageError(f"{source}: pytest.mark.perf: {registry.unknown('argument', name, MARK)}")
        arguments = {**mark.kwargs, **arguments}
    return arguments


def accelerators(options: Options, *also: str) -> dict[str, int]:
    """Return the accelerators among the requested devices, each with its index: torch must look for them."""
    requested = {*(options.device or DEFAULT_DEVICE), *also}
    devices = [name for name in names("device") if name in requested or ALL in requested]
    return {name: options.index(name) for name in devices if registry.devices.get(name).accelerator}


def variables(options: Options, devices: Iterable[str]) -> dict[str, str]:
    """Return the environment variables that choose one of several devices for a worker."""
    values: dict[str, str] = {}
    for name in devices:
        values |= _answer(Device, registry.devices.get(name), "variables", options.index(name), os.environ)
    return values


def _answer(base: type, leaf: object, method: str, *arguments: Any) -> Any:
    """What a leaf answers. Raise UsageError if it cannot be: nothing is measured yet, so no case can fail for it."""
    try:
        return declaration.answer(base, leaf, method, *arguments)
    except WorkerError as error:
        raise UsageError(error.reason) from None


def packages() -> list[str]:
    """Return all packages that any model needs."""
    needs = (registry.models.get(name).needs for name in registry.models.names())
    return list(dict.fromkeys(itertools.chain.from_iterable(needs)))


def _cells(options: Options) -> Iterator[Cell]:
    """Yield all combinations that preset and options ask for, without duplicates."""
    combinations: dict[tuple[str, ...], None] = {}
    preset = PRESETS[options.preset]
    devices = _chosen("device", options.device or DEFAULT_DEVICE)
    cards = tuple(name for name in devices if preset.on_cards and registry.devices.get(name).accelerator)
    others = tuple(name for name in devices if name not in cards)
    for part, blocks in ((others, preset.blocks), (cards, preset.on_cards)):
        for block in blocks if part else ():
            choices = [
                part if axis == "device" else _chosen(axis, options.axis(axis) or block.get(axis) or _all(axis))
                for axis in AXES
            ]
            combinations.update(dict.fromkeys(itertools.product(*choices)))
    return (Cell(model, device, dtype, mode, stack) for model, device, dtype, mode, stack in combinations)


def _chosen(axis: str, requested: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values that are requested by name, and all others if all are."""
    by_name = [value for value in requested if value != ALL]
    return tuple(dict.fromkeys((*_all(axis), *by_name))) if ALL in requested else requested


def _all(axis: str) -> tuple[str, ...]:
    """Return all values of an axis, except stacks that must be requested by name."""
    if axis != "stack":
        return names(axis)
    return tuple(name for name in names(axis) if not registry.stacks.get(name).by_name)


def why_not(cell: Cell, facts: Facts) -> str | None:
    """Return the reason why a cell cannot run, or None. Reasons that hold on any machine come first."""
    mode, device, stack = (
        registry.modes.get(cell.mode),
        registry.devices.get(cell.device),
        registry.stacks.get(cell.stack),
    )
    return (
        _reason(mode, mode.why_not(cell, facts))
        or _reason(device, device.why_not(facts))
        or _reason(stack, stack.why_not(cell, facts))
        or facts.without(mode.openmp)
        or registry.models.get(cell.model).why_not(cell, mode.traits, facts)
    )


def _reason(leaf: Mode | Device | Stack, answer: Any, method: str = "why_not") -> str | None:
    """Return a leaf's answer, which is None or a reason. Raise UsageError if it is anything else."""
    if answer is None or isinstance(answer, str):
        return answer
    raise UsageError(f"{declaration.whose(leaf, method)} returned {answer!r}, expected None or a reason in words")


def _fixed(cell: Cell, options: Options) -> str | None:
    """Return the reason why the cell cannot have the requested size, batch, threads or OpenMP runtime, or None."""
    mode, model, preset = registry.modes.get(cell.mode), registry.models.get(cell.model), PRESETS[options.preset]
    openmp = options.placement and options.placement.openmp
    if mode.openmp and openmp and openmp != mode.openmp:
        return f"{cell.mode} runs only with openmp={mode.openmp}: --perf-placement openmp={openmp} does not apply"
    fixed_batch = mode.batch
    reason = sizes.unfit(model, sizes.size(model, options.size or preset.size))
    batch = sizes.batch(cell, options.batch, published=preset.published)
    reason = reason or _reason(mode, mode.unfit(cell, batch, options.threads), "unfit")
    if reason or fixed_batch is None:
        return reason
    if options.batch not in (None, fixed_batch):
        return f"{cell.mode} always has batch {fixed_batch}: --perf-batch {options.batch} does not apply"
    if options.threads:
        return f"{cell.mode} always uses one thread per core: --perf-placement threads={options.threads} does not apply"
    return None


def _slow(cell: Cell, options: Options, facts: Facts) -> str | None:
    """Return the reason why a dtype that was not requested by name is left out on this machine, or None."""
    if options.dtype or not precision.emulated(cell.device, cell.dtype, facts.cpu_flags):
        return None
    return (
        f"this CPU only emulates {cell.dtype}, which is slower than fp32: --dtype {cell.dtype} measures it all the same"
    )


def case_of(
    cell: Cell, unmet: str | None, options: Options, facts: Facts, missing: dict[str, str | None]
) -> NetworkCase | LeftOut:
    """Return the case of a cell, or the cell with the reason to leave it out. `unmet`: why it cannot have a knob.

    `missing` caches why each data set is not available, so that a plan looks for each only once.
    """
    reason = why_not(cell, facts) or unmet or _fixed(cell, options) or _slow(cell, options, facts)
    if reason is not None:
        return LeftOut(cell, reason)
    preset, model = PRESETS[options.preset], registry.models.get(cell.model)
    data = _data(model, options)
    if data not in missing:
        missing[data] = _missing(data, options)
    if (absent := missing[data]) is not None:
        return LeftOut(cell, absent)
    batch = sizes.batch(cell, options.batch, published=preset.published)
    size = sizes.size(model, options.size or preset.size)
    axes = (cell.model, cell.device, cell.dtype, cell.mode, cell.stack)
    case = NetworkCase(*axes, batch, size, model.version, data, knobs.named(cell, options))
    _answer(Mode, registry.modes.get(cell.mode), "processes", case)
    return case


def _data(model: Model, options: Options) -> str:
    """Return the data set of a model, or the real one that takes its place with `--perf-data`."""
    try:
        registry.tasks.get(model.task)
        dataset = registry.datasets.get(model.data)
    except UsageError as error:
        raise UsageError(f"the model '{model.name}': {error}") from None
    return (options.data and dataset.real) or model.data


def _missing(data: str, options: Options) -> str | None:
    """Return the reason why a data set is not available, or None."""
    dataset = registry.datasets.get(data)
    answer = dataset.find(str(options.data) if options.data else None)
    if isinstance(answer, tuple) and sorted(map(type, answer), key=str) == PATH_OR_REASON:
        return answer[1]
    raise UsageError(
        f"{declaration.whose(dataset, 'find')} returned {answer!r}, expected the path and None, or None and the reason"
    )


def _check_model(model: Model) -> None:
    """Raise UsageError for a name in a model's declaration that nothing has: what it names would never happen."""
    owner = f"the model '{model.name}'{declaration.place(model.build)}"
    if model.optimizer not in optimizers.RATES:
        raise UsageError(f"{owner}: {registry.unknown('optimizer', model.optimizer, optimizers.RATES)}")
    stacks = names("stack")
    kinds = {TRAINING, INFERENCE, *filter(None, GRAPHS), *names("mode"), *DTYPES}
    allowed: Mapping[str, Collection[str]] = {
        "why_nots": [*kinds, *(f"{kind} on {stack}" for kind in kinds for stack in stacks)],
        "published": DTYPES,
        **dict.fromkeys(("tuned", "tuned_training", "scripts", "operators"), stacks),
    }
    for attribute, known in allowed.items():
        for name in getattr(model, attribute):
            if name not in known:
                hint = registry.nearest(name, known)
                raise UsageError(f"{owner}: {attribute} has '{name}', which names nothing here{hint}")


def make(options: Options, facts: Facts, *, may_be_empty: bool = False) -> Plan:
    """Make the plan. A name on the command line that ends up in no case is an error."""
    missing: dict[str, str | None] = {}
    for name in dict.fromkeys(cell.model for cell in _cells(options)):
        _check_model(registry.models.get(name))
    variants = [variant for plain in _cells(options) for variant in knobs.variants(plain, options, facts)]
    planned = [case_of(cell, unmet, options, facts, missing) for cell, unmet in variants]
    cases = [planned_cell for planned_cell in planned if isinstance(planned_cell, NetworkCase)]
    left_out = [planned_cell for planned_cell in planned if isinstance(planned_cell, LeftOut)]
    _refuse_values_without_a_case(options, cases, left_out)
    _refuse_knobs_without_a_case(options, cases, left_out)
    launches = options.launches or PRESETS[options.preset].launches
    plan = Plan(tuple(cases), tuple(left_out), launches, facts, options.preset)
    if plan.why_empty and not may_be_empty:
        raise UsageError(plan.why_empty)
    return plan


def _refuse_values_without_a_case(options: Options, cases: list[NetworkCase], left_out: list[LeftOut]) -> None:
    """Raise UsageError if a value asked for by name is in no case."""
    named_axes = [axis for axis in AXES if options.axis(axis) and ALL not in (options.axis(axis) or ())]
    for axis in named_axes:
        present = {getattr(case, axis) for case in cases}
        for value in options.axis(axis) or ():
            if value not in present:
                reason = _reasons(left for left in left_out if getattr(left.cell, axis) == value)
                request = " ".join(f"--{name} {','.join(options.axis(name) or ())}" for name in named_axes)
                raise UsageError(f"{request}: {value} cannot run here: {reason}")


def _refuse_knobs_without_a_case(options: Options, cases: list[NetworkCase], left_out: list[LeftOut]) -> None:
    """Raise UsageError if a setting asked for by name is in no case, not even as a default."""
    requested = [(name, value) for name, values in knobs.requested(options).items() for value in values]
    for name, value in requested:
        for case in cases:
            knob, settings = knobs.of(case).get(name), dict(case.knobs)
            if knob and settings.get(name, knob.default(registry.models.get(case.model), settings)) == value:
                break
        else:
            reason = _reasons(left for left in left_out if left.cell.knob(name) in (value, None))
            raise UsageError(f"{knobs.option(name, value)}: {reason}")
    for name in options.ablate:
        if not any(dict(case.knobs).get(name) for case in cases):
            left = (left for left in left_out if left.cell.knob(name))
            raise UsageError(f"--perf-ablate {name}: {_reasons(left, 'no case has it')}")


def _reasons(left_out: Iterable[LeftOut], none: str = "no cell of the preset has it") -> str:
    """Say why cells were left out that had what was asked for, or that there were none."""
    reasons = dict.fromkeys(left.reason for left in left_out)
    return "; ".join(list(reasons)[:REASONS]) or none
