"""Speed-ups of dtypes, stacks, devices and settings from recorded runs: ratios of cases that differ in nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipexperf.bench import registry
from ipexperf.case import Case, NetworkCase, networks
from ipexperf.history.records import CASE, Recorded
from ipexperf.history.rounds import Paired
from ipexperf.judge import ratios
from ipexperf.judge.environment import conditions_differ, incomparable
from ipexperf.judge.policy import Policy
from ipexperf.judge.rounds import RoundsEstimate
from ipexperf.proof import structure
from ipexperf.ratio import SINGLE, Ratio
from ipexperf.result import METRICS

BASES = {"dtype": "fp32", "stack": "stock", "device": "cpu"}
"""The base value of each axis, with which the other values are compared."""
KINDS: dict[str, tuple[str, ...]] = {
    "dtype": ("dtype",),
    "stack": ("stack",),
    "device": ("device",),
    "both": ("stack", "dtype"),
    "settings": ("settings",),
}
"""`both` is the ratio in the vendor's tables: their software in low precision over stock PyTorch in fp32. `settings` is
a case with settings of its own, such as packed weights, over the same case without any."""
LATENCIES = ("p50", "p99")
"""Further metrics that are compared in modes whose samples are requests."""
APART = "from two runs: no interval includes differences between sessions"


@dataclass(frozen=True, slots=True)
class Speedup:
    """The speed of a case relative to its base. Above 1 is faster, for latencies too."""

    kind: str
    over: str
    case_id: str
    base_id: str
    model: str
    device: str
    dtype: str
    mode: str
    stack: str
    batch: int
    metric: str
    unit: str
    base: float
    value: float
    speedup: Ratio | None
    """None if they were measured apart in other environments; the note says what differs."""
    seen: bool
    paired: bool
    """Whether the cases shared rounds. If so the interval is over rounds, else over launches."""
    rounds: int
    accuracy_metric: str | None
    base_accuracy: float | None
    accuracy: float | None
    machine_key: str
    run_uid: str
    base_run_uid: str
    note: str


@dataclass(frozen=True, slots=True)
class _Pair:
    kind: str
    base: Recorded
    fast: Recorded
    metric: str
    estimate: RoundsEstimate | None
    """The ratio from shared rounds, if there are any."""
    why_not: str = ""
    """Why they have no ratio."""


def speedups(
    cases: Sequence[Recorded],
    kinds: Sequence[str] = tuple(KINDS),
    paired: Mapping[tuple[str, str], Paired] | None = None,
) -> list[Speedup]:
    """Return every pair of cases that differ in nothing but the given axis, of one run if possible.

    `paired` has the rounds of the runs: cases that took turns are compared by their turns.
    """
    newest: dict[Case, list[Recorded]] = defaultdict(list)
    for recorded in sorted(cases, key=lambda recorded: (recorded.started_at, recorded.run_uid), reverse=True):
        newest[recorded.case].append(recorded)
    requests = {name for name in registry.modes.names() if registry.modes.get(name).requests}
    pairs = [
        pair
        for case in sorted(networks(newest), key=lambda case: (case.id, case.uid))
        for kind in kinds
        if (base := _base(case, KINDS[kind])) is not None
        for metric in ("throughput", *(LATENCIES if case.mode in requests else ()))
        for pair in _pairs(kind, case, base, metric, newest, paired or {})
    ]
    order = list(KINDS)
    pairs.sort(key=lambda pair: (order.index(pair.kind), pair.fast.case.id, pair.fast.machine_key))
    # Only ratios over launches share an alarm rate.
    family = sum(pair.estimate is None for pair in pairs)
    return [_speedup(pair, family) for pair in pairs]


def _base(case: NetworkCase, axes: Sequence[str]) -> NetworkCase | None:
    """Return the base case, or None if the case itself lacks a part of what is compared."""
    if axes == KINDS["settings"]:
        return case.without_settings() if case.settings else None
    if any(getattr(case, axis) == BASES[axis] for axis in axes):
        return None
    plain: dict[str, Any] = {axis: BASES[axis] for axis in axes}
    return replace(case, **plain)


def _pairs(
    kind: str,
    case: Case,
    base: Case,
    metric: str,
    newest: Mapping[Case, Sequence[Recorded]],
    paired: Mapping[tuple[str, str], Paired],
) -> Iterator[_Pair]:
    """Return the newest sound pair of each machine that has a ratio, from one run if possible, else one without."""
    fast, plain = (
        [recorded for recorded in newest.get(side, ()) if not recorded.unsound(metric)] for side in (case, base)
    )
    for machine in dict.fromkeys(recorded.machine_key for recorded in fast):
        # An accelerator is part of the machine_key, so a base on the CPU has another key.
        matching = [
            (candidate, other)
            for candidate in fast
            for other in plain
            if candidate.machine_key == machine and (kind == "device" or other.machine_key == machine)
        ]
        matching.sort(key=lambda pair: pair[0].run_uid != pair[1].run_uid)
        pairs = (_pair(kind, *sides, metric, paired) for sides in matching)
        if first := next(pairs, None):
            yield first if not first.why_not else next((other for other in pairs if not other.why_not), first)


def _pair(kind: str, fast: Recorded, base: Recorded, metric: str, paired: Mapping[tuple[str, str], Paired]) -> _Pair:
    estimate = _estimate(fast, base, metric, paired)
    why_not = "" if estimate else conditions_differ(base.environment, fast.environment, same_case=False)
    return _Pair(kind, base, fast, metric, estimate, why_not)


def _estimate(
    fast: Recorded, base: Recorded, metric: str, paired: Mapping[tuple[str, str], Paired]
) -> RoundsEstimate | None:
    """Return the ratio from rounds. Rounds compare step times, not latencies of single requests."""
    pair = paired.get((fast.run_uid, fast.machine_key))
    if pair is None or metric in LATENCIES or (base.run_uid, base.machine_key) != (fast.run_uid, fast.machine_key):
        return None
    return pair.between(base.case, fast.case)


def _ratio(pair: _Pair, family: int) -> Ratio | None:
    """Return the speed-up: the base's time over the case's, or the case's throughput over the base's."""
    if pair.why_not:
        return None
    if pair.estimate is not None:
        return pair.estimate.ratio(inverted=True)
    first, second = pair.base.values[pair.metric], pair.fast.values[pair.metric]
    sides = (first, second) if METRICS[pair.metric].higher_is_better else (second, first)
    return ratios.compare(*sides, Policy(), family)


def _speedup(pair: _Pair, family: int) -> Speedup:
    metric = METRICS[pair.metric]
    ratio = _ratio(pair, family)
    case, base = pair.fast.case, pair.base.case
    axes = KINDS[pair.kind]
    score, other = pair.fast.accuracy, pair.base.accuracy
    return Speedup(
        kind=pair.kind,
        over=" over ".join(" ".join(_words(side, axis) for axis in axes) for side in (case, base)),
        case_id=case.id,
        base_id=base.id,
        **{name: getattr(case, name) for name in CASE},
        metric=metric.name,
        unit=metric.unit,
        base=_median(pair.base, metric.name),
        value=_median(pair.fast, metric.name),
        speedup=ratio,
        seen=ratio is not None and ratio.differs,
        paired=pair.estimate is not None,
        rounds=pair.estimate.rounds if pair.estimate else 0,
        accuracy_metric=score[0] if score else None,
        base_accuracy=other[1] if score and other and other[0] == score[0] else None,
        accuracy=score[1] if score else None,
        machine_key=pair.fast.machine_key,
        run_uid=pair.fast.run_uid,
        base_run_uid=pair.base.run_uid,
        note="; ".join(_notes(pair, ratio)),
    )


def _words(case: Case, axis: str) -> str:
    if axis == "settings":
        return " ".join(f"{name}={value}" for name, value in case.settings) or "without"
    return str(getattr(case, axis))


def _median(recorded: Recorded, metric: str) -> float:
    median = recorded.medians[metric]
    assert median is not None  # noqa: S101 - the case is sound
    return median


def _notes(pair: _Pair, ratio: Ratio | None) -> Iterator[str]:
    """Notes on how far the number can be trusted, or why there is none."""
    if ratio is None:
        yield pair.why_not
        return
    if pair.fast.run_uid != pair.base.run_uid:
        yield APART
        if work := structure.other_work(pair.base.fingerprint, pair.fast.fingerprint):
            yield work
    if pair.kind != "device" and (fields := incomparable(pair.base.environment, pair.fast.environment)):
        yield f"other hardware: {', '.join(fields)}"
    if any(launch.document.get("emulated") for launch in pair.fast.counted):
        yield f"this CPU emulates {pair.fast.case.axes['dtype']}"
    if ratio.lo is None:
        yield SINGLE
