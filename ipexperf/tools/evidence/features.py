"""The rows of the feature table: what a machine can be shown to run. All come from the registries and tables.

A new mode, stack, dtype, knob or model is a new row without a list to remember.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ipexperf.bench import precision, registry
from ipexperf.bench.api import Cell, Knob
from ipexperf.bench.evidence import instructions
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.machine.placement import ALLOCATORS, OPENMP
from ipexperf.case import AXES, Case
from ipexperf.dtypes import DTYPES, Instructions
from ipexperf.plan import knobs, placement

Kind = Literal["instructions", "failure", "mode", "knob", "condition", "model"]
NUMBER = "a number"
"""The value in the row of a knob that takes any number."""
DECODER, LINEAR = "evidence_decoder", "evidence_linear"
"""Models that serve only as evidence, of decoders and of linear layers (`networks`)."""
PROVOKED: Mapping[str, tuple[str, ...] | None] = {
    "out_of_memory": None,
    "crashed": None,
    "device_lost": ("cuda",),
}
"""The outcomes that `networks` provokes, and the devices where that is safe. None: all devices."""


@dataclass(frozen=True, slots=True)
class Row:
    """A feature: its kind, and the values that name it, such as mode, dtype and stack."""

    kind: Kind
    subject: tuple[tuple[str, str], ...]

    def of(self, name: str) -> str:
        """Return one of the values that name it, or an empty text."""
        return dict(self.subject).get(name, "")

    def __str__(self) -> str:
        of = self.of
        return {
            "instructions": f"{of('instructions')} for {of('dtype')}",
            "failure": f"a launch that ends with {of('outcome')}",
            "mode": f"{of('mode')} {of('dtype')} {of('stack')}",
            "knob": f"{of('knob')}={of('value')} on {of('stack')}",
            "condition": f"{of('setting')} {of('name')}{'=' if of('value') else ''}{of('value')}",
            "model": f"model {of('model')}",
        }[self.kind]


def every(device: str) -> list[Row]:
    """Return all rows of a device, in the order of tables."""
    return [
        *_instructions(device),
        *_failures(device),
        *_modes(),
        *_knobs(),
        *_conditions(device),
        *_models(),
    ]


def _row(kind: Kind, **subject: str) -> Row:
    return Row(kind, tuple(subject.items()))


def _instructions(device: str) -> Iterator[Row]:
    if device == "cpu":
        for dtype, properties in DTYPES.items():
            for means in properties.instructions:
                yield _row("instructions", dtype=dtype, instructions=means.called)


def _failures(device: str) -> Iterator[Row]:
    for outcome in PROVOKED:
        if outcome != "device_lost" or registry.devices.get(device).accelerator:
            yield _row("failure", outcome=outcome)


def _modes() -> Iterator[Row]:
    for mode in registry.modes.names():
        for dtype in DTYPES:
            for stack in registry.stacks.names():
                yield _row("mode", mode=mode, dtype=dtype, stack=stack)


def _knobs() -> Iterator[Row]:
    """Yield the values of knobs on each stack that has them. A mode's knob has rows on every stack.

    The default of a stack's knob is no row: a stack may ignore it, as in int8.
    """
    for stack in registry.stacks.names():
        modes = [registry.modes.get(name) for name in registry.modes.names()]
        pairs = [(knob, value) for knob in registry.stacks.get(stack).knobs for value in values(knob)[1:] or (NUMBER,)]
        pairs += [(knob, value) for mode in modes for knob in mode.knobs for value in values(knob)]
        for name, value in dict.fromkeys((knob.name, value) for knob, value in pairs):
            yield _row("knob", knob=name, value=value, stack=stack)


def values(knob: Knob) -> tuple[str, ...]:
    """Return the values of a knob that have rows."""
    return knob.values if len(knob.values) > 1 else (NUMBER,)


def _conditions(device: str) -> Iterator[Row]:
    """Yield placements of workers, on devices that share the host's cores and memory."""
    if not registry.devices.get(device).hosted:
        return
    for name, allowed in (
        ("cores", ("",)),
        ("node", ("",)),
        ("openmp", tuple(OPENMP)),
        ("allocator", tuple(ALLOCATORS)),
        ("launcher", tuple(placement.LAUNCHERS)),
    ):
        for value in allowed:
            yield _row("condition", setting=placement.KNOB, name=name, value=value)


def _models() -> Iterator[Row]:
    """Yield the whole networks that are shipped or loaded, except a user's own targets."""
    for name in registry.models.names():
        model = registry.models.get(name)
        if not (model.operator_of or model.target or name in (DECODER, LINEAR, *map(failing, PROVOKED))):
            yield _row("model", model=name)


def means(row: Row) -> Instructions:
    """Return the instructions of a row of that kind."""
    return next(
        instructions_
        for instructions_ in DTYPES[row.of("dtype")].instructions
        if instructions_.called == row.of("instructions")
    )


def not_here(row: Row, device: str, facts: Facts) -> str:
    """Return the reason why no case of this device and processor can show the row, or an empty text."""
    if row.kind == "failure":
        devices = PROVOKED[row.of("outcome")]
        return "" if devices is None or device in devices else f"it cannot be provoked safely on {device}"
    if row.kind != "instructions":
        return ""
    needed, best = means(row), instructions.best(row.of("dtype"), facts.cpu_flags)
    if needed.flag not in facts.cpu_flags:
        return f"this CPU has no {needed.flag}"
    return "" if best == needed else f"this CPU computes {row.of('dtype')} with {best.called if best else 'others'}"


def shows(row: Row, case: Case, facts: Facts) -> bool:
    """Return True if the case shows the row, provided that its proof holds."""
    if row.kind == "instructions":
        return case.dtype == row.of("dtype") and not not_here(row, case.device, facts)
    if row.kind == "failure":
        return case.model == failing(row.of("outcome"))
    if row.kind == "mode":
        return _shows_mode(row, case)
    if row.kind == "knob":
        return _shows_knob(row, case, facts)
    if row.kind == "condition":
        return _shows_condition(row, case)
    return case.model == row.of("model")


def _shows_mode(row: Row, case: Case) -> bool:
    """Accept only knobs that choose the work: any other knob may switch off what the row is about."""
    if any(getattr(case, name) != value for name, value in row.subject):
        return False
    chosen = {knob.name for knob in registry.modes.get(case.mode).knobs if knob.choice}
    return is_whole(case) and all(name in chosen for name, _ in case.knobs)


def _shows_knob(row: Row, case: Case, facts: Facts) -> bool:
    """Return True if the case has this setting and its software applies it. A mode's setting may be the default."""
    name, value = row.of("knob"), row.of("value")
    if case.stack != row.of("stack") or not is_whole(case):
        return False
    cell = cell_of(case)
    knob, settings = knobs.of(cell).get(name), dict(case.knobs)
    if knob is None or knob.unfit(registry.modes.get(case.mode)):
        return False
    if value == NUMBER:
        return len(knob.values) <= 1 and name in settings
    of_mode = knob in registry.modes.get(case.mode).knobs
    default_counts = of_mode and (knob.choice or knob.dtypes is not None or value == knob.values[0])
    if name not in settings and not default_counts:
        return False  # a default may mean nothing to the model, such as a layout of images to a model of texts
    set_to = settings.get(name, knob.default(registry.models.get(case.model), settings))
    return set_to == value and knob.why_not(cell, value, facts) is None


def _shows_condition(row: Row, case: Case) -> bool:
    text = dict(case.knobs).get(row.of("setting"), "")
    try:
        asked_placement = placement.read(text)
    except argparse.ArgumentTypeError:
        return False
    setting = getattr(asked_placement, row.of("name"))
    return setting is not None and row.of("value") in ("", setting)


def failing(outcome: str) -> str:
    """Return the name of the model that provokes this outcome."""
    return f"provokes_{outcome}"


def is_whole(case: Case) -> bool:
    """Return False if the case is of a model that fails on purpose."""
    return case.model not in map(failing, PROVOKED)


def cell_of(case: Case) -> Cell:
    """Return the cell of a case without its placement, which is no leaf's knob."""
    return Cell(**{axis: getattr(case, axis) for axis in AXES}, knobs=case.settings)


def emulated(row: Row, device: str, facts: Facts) -> bool:
    """Return True if this processor only emulates the dtype of a row."""
    dtype = row.of("dtype")
    return bool(dtype) and precision.emulated(device, dtype, facts.cpu_flags)
