"""What a dtype, a stack or a device is worth, from recorded runs: two cases that differ in that and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ipexperf.case import Case
from ipexperf.history.comparison import SINGLE, accuracy, unsound
from ipexperf.history.records import Recorded
from ipexperf.judge import ratios
from ipexperf.judge.environment import incomparable
from ipexperf.judge.policy import Policy
from ipexperf.result import EMULATED, METRICS

if TYPE_CHECKING:
    from ipexperf.history.in_turns import Paired
    from ipexperf.judge.rounds import Estimate

BASES = {"dtype": "fp32", "stack": "stock", "device": "cpu"}
"""What every other value of an axis is held against."""
KINDS: dict[str, tuple[str, ...]] = {
    "dtype": ("dtype",),
    "stack": ("stack",),
    "device": ("device",),
    "both": ("stack", "dtype"),
}
"""`both` is what the vendor's tables show: their software in a low precision over stock PyTorch in fp32."""
LATENCIES = ("p50", "p99")
"""What the mode `realtime` is also measured by."""
APART = "from two runs: what differs between sessions is in no interval"


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times as fast a case is as its base: above 1 is faster, for latencies too, which are lower then."""

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
    speedup: float
    lo: float | None
    hi: float | None
    seen: bool
    paired: bool
    """Whether the two shared rounds: the interval is over those then, and else over launches."""
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
    estimate: Estimate | None
    """What their rounds say, where they shared any."""


def speedups(
    cases: Sequence[Recorded],
    kinds: Sequence[str] = tuple(KINDS),
    paired: Mapping[tuple[str, str], Paired] | None = None,
) -> list[Speedup]:
    """Return every pair of cases that differ in nothing but what is asked for: of one run where there is one.

    `paired` are the rounds of their runs: the ratio of two cases that took turns is that of their turns.
    """
    newest: dict[Case, list[Recorded]] = defaultdict(list)
    for one in sorted(cases, key=lambda x: (x.started_at, x.run_uid), reverse=True):
        newest[one.case].append(one)
    pairs = [
        pair
        for case in dict.fromkeys(x.case for x in sorted(cases, key=lambda x: (x.case.id, x.case.uid)))
        for kind in kinds
        if (base := _base(case, KINDS[kind])) is not None
        for metric in ("throughput", *(LATENCIES if case.mode == "realtime" else ()))
        for pair in _pairs(kind, case, base, metric, newest, paired or {})
    ]
    order = list(KINDS)
    pairs.sort(key=lambda pair: (order.index(pair.kind), pair.fast.case.id, pair.fast.machine_key))
    # Only those over launches share an alarm rate.
    family = sum(pair.estimate is None for pair in pairs)
    return [_speedup(pair, family) for pair in pairs]


def _base(case: Case, axes: Sequence[str]) -> Case | None:
    """The case as it would be without what is asked for; none where it lacks a part of that itself."""
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
    """The newest pair of each machine that is sound, of one run before one of two runs."""
    fast, plain = ([x for x in newest.get(one, ()) if not unsound(x, metric)] for one in (case, base))
    for machine in dict.fromkeys(x.machine_key for x in fast):
        # A card is part of the machine_key: there the base is on another one, or there would be none.
        matching = [
            (one, other)
            for one in fast
            for other in plain
            if one.machine_key == machine and (kind == "device" or other.machine_key == machine)
        ]
        matching.sort(key=lambda pair: pair[0].run_uid != pair[1].run_uid)
        if matching:
            first, plainest = matching[0]
            yield _Pair(kind, plainest, first, metric, _estimate(first, plainest, metric, paired))


def _estimate(fast: Recorded, base: Recorded, metric: str, paired: Mapping[tuple[str, str], Paired]) -> Estimate | None:
    """What the rounds of both say: of their steps, and so of no latency of single requests."""
    found = paired.get((fast.run_uid, fast.machine_key))
    if found is None or metric in LATENCIES or (base.run_uid, base.machine_key) != (fast.run_uid, fast.machine_key):
        return None
    return found.between(base.case, fast.case)


def _ratio(pair: _Pair, family: int) -> ratios.Ratio:
    """How many times as fast: what was gained is the base's time over the case's, or the reverse of a throughput."""
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
    told = accuracy(pair.fast)
    other = accuracy(pair.base)
    return Speedup(
        kind=pair.kind,
        over=" over ".join(" ".join(getattr(side, axis) for axis in axes) for side in (case, base)),
        case_id=case.id,
        base_id=base.id,
        **{name: getattr(case, name) for name in ("model", "device", "dtype", "mode", "stack", "batch")},
        metric=metric.name,
        unit=metric.unit,
        base=_median(pair.base, metric.name),
        value=_median(pair.fast, metric.name),
        speedup=ratio.ratio,
        lo=ratio.lo,
        hi=ratio.hi,
        seen=ratio.seen,
        paired=pair.estimate is not None,
        rounds=pair.estimate.rounds if pair.estimate else 0,
        accuracy_metric=told[0] if told else None,
        base_accuracy=other[1] if told and other and other[0] == told[0] else None,
        accuracy=told[1] if told else None,
        machine_key=pair.fast.machine_key,
        run_uid=pair.fast.run_uid,
        base_run_uid=pair.base.run_uid,
        note="; ".join(_notes(pair, ratio)),
    )


def _median(recorded: Recorded, metric: str) -> float:
    median = recorded.metrics[metric].median
    assert median is not None  # noqa: S101 - the case is sound
    return median


def _notes(pair: _Pair, ratio: ratios.Ratio) -> Iterator[str]:
    """What a reader must know before believing the number."""
    if pair.fast.run_uid != pair.base.run_uid:
        yield APART
    if pair.kind != "device" and (fields := incomparable(pair.base.environment, pair.fast.environment)):
        yield f"other hardware: {', '.join(fields)}"
    if _emulated(pair.fast):
        yield f"this CPU emulates {pair.fast.case.dtype}"
    if ratio.lo is None:
        yield SINGLE


def _emulated(recorded: Recorded) -> bool:
    return any(note.startswith(EMULATED) for launch in recorded.counted for note in launch.document.get("notes", ()))
