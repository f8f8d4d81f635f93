"""`--perf-gate`: the metrics that fail a case's test when they become worse, and what a test's mark may change."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import registry
from ipexperf.errors import UsageError
from ipexperf.plan import matrix, values
from ipexperf.plan.options import Options
from ipexperf.result import METRICS, PRIMARY


@dataclass(frozen=True, slots=True)
class GateWish:
    """How the mark of a test wants its case judged. None: as the options say."""

    tolerance: float | None = None
    """The tolerance of speed, in pairs."""
    gate: tuple[str, ...] | None = None


AS_ALL = GateWish()
"""The wish of a test without a mark."""


def judgeable() -> tuple[str, ...]:
    """Return the metrics that can be judged, speed first."""
    return (PRIMARY, *(metric.name for metric in METRICS.values() if metric.gate is not None))


def by_default() -> tuple[str, ...]:
    """Return the metrics that are judged by default."""
    return (PRIMARY, *(metric.name for metric in METRICS.values() if metric.gate is not None and metric.gate.usual))


def checked(names: Iterable[str], source: str) -> tuple[str, ...]:
    """Return the metrics of these names, in the order of METRICS. Raise UsageError for one that cannot be judged."""
    requested = tuple(names)
    for name in requested:
        if name == matrix.ALL or name in judgeable():
            continue
        if name in METRICS and METRICS[name].accuracy is not None:
            raise UsageError(f"{source}: {name} is always judged: a case that is not accurate is invalid")
        if name in METRICS:
            raise UsageError(f"{source}: {name} is recorded, not judged: choose from {', '.join(judgeable())}")
        raise UsageError(f"{source}: {registry.unknown('metric', name, judgeable())}")
    return tuple(name for name in judgeable() if name in requested or matrix.ALL in requested)


def gate(options: Options) -> tuple[str, ...]:
    """Return the metrics that a run judges."""
    return by_default() if options.gate is None else checked(options.gate, options.source("gate"))


def needs_fresh(gate: Iterable[str]) -> bool:
    """Return True if every launch must be fresh, because one fresh process does not tell what a gate needs."""
    metrics = [METRICS[name] for name in gate]
    return any(metric.fresh and metric.gate is not None and not metric.gate.usual for metric in metrics)


def repeats_builds(gate: Iterable[str]) -> bool:
    """Return True if each process of a pair builds its case several times, because one build's time is too noisy."""
    return any(METRICS[name].repeated for name in gate)


def wish(mark: Mapping[str, Any], source: str) -> GateWish:
    """Parse the arguments of a test's mark that say how its case is judged."""
    names, tolerance, where = mark.get("gate"), mark.get("tolerance"), f"{source}: pytest.mark.perf"
    if names is not None and (isinstance(names, str) or not names):
        raise UsageError(f"{where}: gate: expected a list of metrics, such as ['step_time'], got {names!r}")
    try:
        fraction = None if tolerance is None else values.fraction(str(tolerance))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{where}: tolerance: {error}") from None
    return GateWish(fraction, None if names is None else checked(names, f"{where}: gate"))
