"""Real-time inference: several instances, each on a few cores, with one image at a time."""

from __future__ import annotations

from collections.abc import Sequence

from ipexperf.bench import registry
from ipexperf.bench.api import TRACED, Mode, Session, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.modes._inference import FIT, KNOBS, NumberOrFit
from ipexperf.bench.modes.infer_jit import JitSession
from ipexperf.case import Case

CORES = 4
"""Cores per instance in the vendor's published figures."""


class InstancesKnob(NumberOrFit):
    """The knobs for the number of instances and of the cores of each."""

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        return too_many(cell.knob("instances"), cell.knob("cores"), facts.cores) or super().why_not(cell, value, facts)


def sizes(instances: str | None, cores: str | None, available: int) -> tuple[int, int]:
    """Return the numbers of instances and of cores per instance: as requested, else what fits."""
    count, each = (0 if value in (None, FIT) else int(value) for value in (instances or FIT, cores or FIT))
    each = each or max(1, min(CORES, available // (count or 1)))
    return count or max(1, available // each), each


def too_many(instances: str | None, cores: str | None, available: int) -> str | None:
    """Return why this many instances cannot each have their own cores, or None."""
    count, each = sizes(instances, cores, available)
    if count * each <= available:
        return None
    return f"instances={count} with cores={each} need {count * each} cores, but only {available} may be used here"


class Realtime(Mode):
    name = "realtime"
    family = "realtime"
    kind = "real-time inference"
    graph = TRACED
    requests = True
    fresh = "an instance is bound to its cores before it imports anything"
    batch = 1
    knobs = (
        *KNOBS,
        artifact.QUANTISATION,
        InstancesKnob("instances", "workers that answer at the same time (default: as many as have their cores)"),
        InstancesKnob("cores", "cores of each instance (default: 4, or all where there are fewer)"),
    )
    artifact = "script"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        if cell.device != "cpu":
            return "realtime gives each instance cores of its own: it is for cpu"
        return too_many(cell.knob("instances"), cell.knob("cores"), facts.cores)

    def shares(self, case: Case, cores: Sequence[int]) -> list[tuple[int, ...]]:
        knobs = dict(case.knobs)
        count, each = sizes(knobs.get("instances"), knobs.get("cores"), len(cores))
        return [tuple(cores[number * each : (number + 1) * each]) for number in range(count)]

    def open(self, bench: Workbench) -> Session:
        return JitSession(bench)


registry.modes.add("realtime", Realtime())
