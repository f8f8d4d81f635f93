"""`--perf-gate`: the metrics whose change for the worse fails a case's test. What a test may ask of its cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import registry
from ipexperf.errors import UsageError
from ipexperf.plan import matrix
from ipexperf.plan.options import Options
from ipexperf.result import METRICS, PRIMARY

FLAG = "--perf-gate"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the mark of a test says of how its case is judged. None: as the options say."""

    tolerance: float | None = None
    """Of speed, in pairs."""
    gate: tuple[str, ...] | None = None


AS_ALL = Wish()
"""The wish of a test that asks for nothing of its own."""


def judgeable() -> tuple[str, ...]:
    """The metrics that can be judged, speed first."""
    return (PRIMARY, *(metric.name for metric in METRICS.values() if metric.gate is not None))


def by_default() -> tuple[str, ...]:
    """The metrics that are judged where nobody says what to judge."""
    return (PRIMARY, *(metric.name for metric in METRICS.values() if metric.gate is not None and metric.gate.usual))


def checked(names: Iterable[str], source: str) -> tuple[str, ...]:
    """The metrics of these names, in the order of METRICS. Raise UsageError for one that cannot be judged."""
    wanted = tuple(names)
    for name in wanted:
        if name == matrix.ALL or name in judgeable():
            continue
        if name in METRICS and METRICS[name].accuracy is not None:
            raise UsageError(f"{source}: {name} is always judged: a case that is not accurate is invalid")
        if name in METRICS:
            raise UsageError(f"{source}: {name} is recorded, not judged: choose from {', '.join(judgeable())}")
        raise UsageError(f"{source}: {registry.unknown('metric', name, judgeable())}")
    return tuple(name for name in judgeable() if name in wanted or matrix.ALL in wanted)


def gate(options: Options) -> tuple[str, ...]:
    """The metrics that a run judges."""
    return by_default() if options.gate is None else checked(options.gate, options.sources.get("gate", FLAG))


def needs_fresh(gate: Iterable[str]) -> bool:
    """Whether every launch must be fresh: a time that only a fresh process tells needs several to be known."""
    metrics = [METRICS[name] for name in gate]
    return any(metric.fresh and metric.gate is not None and not metric.gate.usual for metric in metrics)


def repeats_builds(gate: Iterable[str]) -> bool:
    """Whether each process of a pair is to be built several times: one build's time is known too vaguely."""
    return any(METRICS[name].repeated for name in gate)


def wish(mark: Mapping[str, Any], source: str) -> Wish:
    """What the arguments of a test's mark say of how its case is judged."""
    names = mark.get("gate")
    if names is None:
        return Wish(matrix.tolerance(mark, source))
    where = f"{source}: pytest.mark.perf: gate"
    if isinstance(names, str) or not names:
        raise UsageError(f"{where}: expected a list of metrics, such as ['step_time'], got {names!r}")
    return Wish(matrix.tolerance(mark, source), checked(names, where))
