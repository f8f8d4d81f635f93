"""The matrix: presets and axes times registries, each cell a case or left out with its reason."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ipexperf.bench import registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell
from ipexperf.case import AXES, DTYPES, Case
from ipexperf.errors import UsageError
from ipexperf.plan.options import Options

ALL = "all"
REASONS = 3
"""So many reasons are told where a wish cannot be met: each stack may have its own."""
CIFAR = "cifar10"


@dataclass(frozen=True, slots=True)
class Preset:
    """Blocks of axes whose cells are joined, and how often each case is launched."""

    blocks: tuple[Mapping[str, tuple[str, ...]], ...]
    launches: int


PRESETS: dict[str, Preset] = {
    # Minutes on a laptop: low-precision training is there only where the hardware makes it quick.
    "quick": Preset(
        (
            {"model": ("resnet18",), "dtype": ("fp32", "bf16"), "mode": ("infer_jit",), "stack": ("ipex", "stock")},
            {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("infer",), "stack": ("stock",)},
            {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("train",), "stack": ("ipex", "stock")},
            {"model": ("resnet18",), "dtype": ("bf16",), "mode": ("train",), "stack": ("ipex",)},
        ),
        launches=2,
    ),
    "nightly": Preset(
        (
            {"dtype": ("fp32", "bf16"), "model": ("resnet18", "resnet50")},
            {"dtype": ("fp16",), "model": ("resnet50",), "mode": ("infer", "infer_jit")},
        ),
        launches=5,
    ),
    "full": Preset(({},), launches=5),
}
DEFAULT_DEVICE = ("cpu",)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A cell that is not run, and why."""

    cell: Cell
    reason: str

    @property
    def id(self) -> str:
        return "-".join(getattr(self.cell, axis) for axis in AXES)


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run, what won't, and how often."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]
    launches: int

    @property
    def reasons(self) -> dict[str, int]:
        """How many cells were left out for each reason."""
        return dict(Counter(left.reason for left in self.left_out))


def names(axis: str) -> tuple[str, ...]:
    """Every value that an axis can have."""
    if axis == "dtype":
        return DTYPES
    known: dict[str, registry.Registry[object]] = {
        "model": registry.models,  # type: ignore[dict-item]
        "device": registry.devices,  # type: ignore[dict-item]
        "mode": registry.modes,  # type: ignore[dict-item]
        "stack": registry.stacks,  # type: ignore[dict-item]
    }
    return known[axis].names()


def check_names(options: Options) -> None:
    """Refuses a name that no registry has, with the nearest one that exists."""
    for axis in AXES:
        for value in options.axis(axis) or ():
            if value != ALL and value not in names(axis):
                source = options.sources.get(axis, f"--{axis}")
                raise UsageError(f"{source}: {registry.unknown(axis, value, names(axis))}")


def accelerators(options: Options) -> tuple[str, ...]:
    """The devices other than the CPU that must be looked for."""
    asked = options.device or DEFAULT_DEVICE
    return tuple(name for name in names("device") if name != "cpu" and (name in asked or ALL in asked))


def _cells(options: Options) -> Iterator[Cell]:
    seen = set()
    for block in PRESETS[options.preset].blocks:
        choices = []
        for axis in AXES:
            asked = options.axis(axis)
            if asked is None:
                asked = DEFAULT_DEVICE if axis == "device" else block.get(axis, (ALL,))
            choices.append(names(axis) if ALL in asked else asked)
        for values in itertools.product(*choices):
            cell = Cell(**dict(zip(AXES, values, strict=True)))
            if cell not in seen:
                seen.add(cell)
                yield cell


def why_not(cell: Cell, facts: Facts) -> str | None:
    """The first reason for which a cell can't run: what can never be comes before what is missing here."""
    return (
        registry.modes.get(cell.mode).why_not(cell, facts)
        or registry.devices.get(cell.device).why_not(facts)
        or registry.stacks.get(cell.stack).why_not(cell, facts)
        or registry.models.get(cell.model).why_not(cell, facts)
    )


def make(options: Options, facts: Facts) -> Plan:
    """Cases and left-out cells; a name that the user spelled out and that no case has is an error."""
    cases: list[Case] = []
    left_out: list[LeftOut] = []
    missing: dict[str, str | None] = {}
    for cell in _cells(options):
        reason = why_not(cell, facts)
        if reason is None:
            model = registry.models.get(cell.model)
            data = CIFAR if options.data and model.data == "digits" else model.data
            if data not in missing:
                _, missing[data] = registry.datasets.get(data).find(str(options.data) if options.data else None)
            reason = missing[data]
            if reason is None:
                batch = options.batch or model.batch(registry.modes.get(cell.mode))
                axes = {axis: getattr(cell, axis) for axis in AXES}
                cases.append(Case(**axes, batch=batch, size=model.size, version=model.version, data=data))
                continue
        left_out.append(LeftOut(cell, reason))
    _refuse_what_was_named(options, cases, left_out)
    return Plan(tuple(cases), tuple(left_out), options.launches or PRESETS[options.preset].launches)


def _refuse_what_was_named(options: Options, cases: list[Case], left_out: list[LeftOut]) -> None:
    """Every value that was asked for by name must be in a case: there is no silent way round a wish."""
    named = [axis for axis in AXES if options.axis(axis) and ALL not in (options.axis(axis) or ())]
    for axis in named:
        for value in options.axis(axis) or ():
            if not any(getattr(case, axis) == value for case in cases):
                reasons = dict.fromkeys(left.reason for left in left_out if getattr(left.cell, axis) == value)
                reason = "; ".join(list(reasons)[:REASONS]) or "no cell of the preset has it"
                wish = " ".join(f"--{name} {','.join(options.axis(name) or ())}" for name in named)
                raise UsageError(f"{wish}: {value} cannot run here: {reason}")
    if not cases and left_out:
        raise UsageError(f"nothing in preset {options.preset} can run here: {left_out[0].reason}")
