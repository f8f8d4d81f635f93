"""Knobs: settings of modes and stacks. Each requested value makes a case of its own."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.knob import Knob
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import NetworkCase
from ipexperf.errors import UsageError
from ipexperf.plan import placement
from ipexperf.plan.options import Options


def of(cell: Cell | NetworkCase) -> dict[str, Knob]:
    """Return the knobs of its mode and stack, by name."""
    owners = (registry.modes.get(cell.mode), registry.stacks.get(cell.stack))
    return {knob.name: knob for owner in owners for knob in owner.knobs}


def everyone() -> dict[str, list[Knob]]:
    """Return the knobs of all modes and stacks. Several owners may have a knob of the same name."""
    by_name: dict[str, list[Knob]] = {}
    for leaves in (registry.modes, registry.stacks):
        for name in leaves.names():
            for knob in leaves.get(name).knobs:
                by_name.setdefault(knob.name, []).append(knob)
    return by_name


def requested(options: Options) -> dict[str, list[str]]:
    """Return the requested values, by knob. Several values make a sweep."""
    values_of: dict[str, list[str]] = {}
    for name, value in sorted(options.knobs):
        values_of.setdefault(name, [])
        if value not in values_of[name]:
            values_of[name].append(value)
    return values_of


def option(name: str, value: str) -> str:
    """Return the option that asks for a case with this setting."""
    return f"--perf-{name} {value}" if name == placement.KNOB else f"--perf-knobs {name}={value}"


def named(cell: Cell, options: Options) -> tuple[tuple[str, str], ...]:
    """Return the knobs of a case, including placement. A case with any of them has a series of its own."""
    wish, required_openmp = options.placement, registry.modes.get(cell.mode).openmp
    if wish is not None and required_openmp and wish.openmp == required_openmp:
        wish = dataclasses.replace(wish, openmp=None)  # the mode requires it anyway
    text = str(wish or "")
    placed = ((placement.KNOB, text),) if text else ()
    return tuple(sorted([*cell.knobs, *placed]))


def check(options: Options) -> None:
    """Refuse unknown knobs and values that no owner of the knob takes."""
    by_name = everyone()
    source = options.source("knobs")
    for name, values in requested(options).items():
        for value in values:
            _refuse_unknown(name, by_name, source)
            wrong = [knob.wrong(value) for knob in by_name[name]]
            if all(wrong):
                raise UsageError(f"{source}: {name}: {wrong[0]}")
    for name in options.ablate:
        source = options.source("ablate")
        _refuse_unknown(name, by_name, source)
        if name in requested(options):
            raise UsageError(f"{source}: {name} is set by --perf-knobs too: ablation takes it from its default")


def _refuse_unknown(name: str, by_name: Iterable[str], source: str) -> None:
    if name not in by_name:
        raise UsageError(f"{source}: {registry.unknown('knob', name, sorted(by_name))}")


def variants(cell: Cell, options: Options, facts: Facts) -> Iterator[tuple[Cell, str | None]]:
    """Yield the cell with each combination of settings, and why it cannot have it, or None."""
    wishes = requested(options)
    if not (wishes or options.ablate):
        yield cell, None
        return
    chosen = [tuple(zip(wishes, values, strict=True)) for values in itertools.product(*wishes.values())]
    for settings in chosen:
        yield turned(cell, settings, facts)
        for name in dict.fromkeys(options.ablate):
            knob = of(cell).get(name)
            if knob is None:
                yield dataclasses.replace(cell, knobs=(*settings, (name, "off"))), _without_knob(cell, name)
            else:
                ablated = knob.ablated(registry.models.get(cell.model), dict(settings))
                yield turned(cell, (*settings, (name, ablated)), facts)


def turned(cell: Cell, requested_settings: tuple[tuple[str, str], ...], facts: Facts) -> tuple[Cell, str | None]:
    """Return the cell with only the settings that differ from the defaults, so that the same work has one name."""
    knobs_of_cell, model, settings = of(cell), registry.models.get(cell.model), dict(requested_settings)
    differing = [
        (name, value)
        for name, value in requested_settings
        if name not in knobs_of_cell or value != knobs_of_cell[name].default(model, settings)
    ]
    case_cell = dataclasses.replace(cell, knobs=tuple(sorted(differing)))
    reason = None
    for name, value in requested_settings:
        reason = reason or (
            _unfit(knobs_of_cell[name], value, case_cell, facts) if name in knobs_of_cell else _without_knob(cell, name)
        )
    return case_cell, reason


def _unfit(knob: Knob, value: str, cell: Cell, facts: Facts) -> str | None:
    """Return the reason why the cell cannot have this knob beside its other ones, or None."""
    return knob.wrong(value) or registry.modes.get(cell.mode).lacks(knob) or knob.why_not(cell, value, facts)


def _without_knob(cell: Cell, name: str) -> str:
    return f"neither {cell.mode} nor {cell.stack} has a knob {name}"
