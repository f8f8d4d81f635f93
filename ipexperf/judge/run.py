"""Judge a run as a whole: many cases share one alarm rate."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ipexperf.judge.policy import Policy
from ipexperf.sentences import joined
from ipexperf.units import change, percent, plural
from ipexperf.verdict import Verdict

SPEED = ("ok", "improved", "regressed", "inconclusive")
"""Outcomes with a speed to compare."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The final verdict of every case, and one line on the run as a whole, which may be empty."""

    verdicts: Mapping[str, Verdict]
    line: str = ""
    shift: float | None = None
    """How many times slower the median case is, if the platform moved. The history keeps it."""
    fails: bool = False
    """Whether the run fails: a test failed, or the platform as a whole surely became slower."""
    slower: tuple[str, ...] = ()
    """Cases that are slower than chance allows over all cases, though none is by itself."""
    untold: bool = False
    """Whether more than half of its cases could not be told: inconclusive, or measured on a busy machine."""
    spoilt: bool = False
    """Whether more than half of them were measured on a busy machine."""


def benjamini_hochberg(p_values: Sequence[float], rate: float) -> list[bool]:
    """Return for each p-value whether it is significant at this false discovery rate."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    last = max((rank for rank, index in enumerate(order, 1) if p_values[index] <= rate * rank / len(order)), default=0)
    significant = set(order[:last])
    return [index in significant for index in range(len(p_values))]


def platform_shift(verdicts: Mapping[str, Verdict], policy: Policy) -> float | None:
    """The median slowdown of the stable cases, if there are enough and it is outside the tolerance."""
    ratios = list(_stable(verdicts).values())
    if len(ratios) < policy.shift_cases:
        return None
    median = math.exp(statistics.median(math.log(ratio) for ratio in ratios))
    return median if abs(math.log(median)) > math.log1p(policy.tolerance) else None


def settle(verdicts: Mapping[str, Verdict], policy: Policy, apart: Mapping[str, Verdict] | None = None) -> RunVerdict:
    """Judge the verdicts together. A failed test stays failed: it was judged with its share of the alarm rate.

    Those `apart` stay as they are, and move nothing else.
    """
    tested = _tested(verdicts)
    slower = _slower_together(tested, verdicts, policy)
    stable = _stable(verdicts)
    shift = platform_shift(verdicts, policy)
    settled = (
        {name: _shifted(verdict, shift, policy, name in slower) for name, verdict in verdicts.items()}
        if shift
        else verdicts
    )
    rest = tuple(name for name in slower if settled[name].outcome != "platform_shift")
    lines = [_headline(verdicts, settled, shift)] if shift else []
    if machine := machine_line(verdicts, policy):
        lines.append(machine)
    if rest:
        lines.append(
            f"{len(rest)} of {len(tested)} stable cases {'is' if len(rest) == 1 else 'are'} slower than chance "
            "allows over all of them, though none exceeds its own share of the alarm rate"
        )
    # The median case surely became slower if half of the cases did.
    proven = sum(name in slower or verdicts[name].alone.outcome == "regressed" for name in stable)
    moved = shift is not None and shift > 1 and 2 * proven >= len(stable)
    settled = {**settled, **(apart or {})}
    fails = moved or any(verdict.fails for verdict in settled.values())
    busy = sum(verdict.contended for verdict in settled.values())
    untold = sum(verdict.untold for verdict in settled.values())
    if most := 2 * untold > len(settled):
        kinds = ((untold - busy, "inconclusive"), (busy, "measured on a busy machine"))
        why = ", ".join(f"{count} {kind}" for count, kind in kinds if count)
        lines.insert(0, f"COULD NOT TELL {untold} of {len(settled)}: {why}")
    return RunVerdict(settled, "; ".join(lines), shift, fails, rest, most, 2 * busy > len(settled))


def _tested(verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    """The p-value of each case whose noise is known, also of those beside a live baseline.

    Cases whose noise between sessions is assumed are left out. An assumption is good enough for large slowdowns only,
    and those fail by themselves.
    """
    return {
        name: verdict.p_value
        for name, verdict in verdicts.items()
        if verdict.outcome in SPEED and verdict.p_value is not None and _testable(verdict)
    }


def _slower_together(tested: Mapping[str, float], verdicts: Mapping[str, Verdict], policy: Policy) -> list[str]:
    """The cases that are slower than the tolerance only in view of the whole matrix."""
    significant = benjamini_hochberg(list(tested.values()), policy.false_discovery_rate)
    slower = [name for name, keep in zip(tested, significant, strict=True) if keep]
    # A case surely within the tolerance is ok, even if it is surely a little slower.
    return [name for name in slower if verdicts[name].outcome not in ("regressed", "ok")]


def _testable(verdict: Verdict) -> bool:
    """Whether its p-value can be combined with those of other cases."""
    return verdict.evidence is not None and verdict.evidence.testable


def _shifted(verdict: Verdict, shift: float, policy: Policy, slower: bool) -> Verdict:  # noqa: FBT001 - one of two ways
    """Settle a case after a shift of the platform. It is a finding only if it moved further than the platform.

    What another metric decided stays: a slower machine needs no more memory.
    """
    moved = verdict.outcome == "regressed" or slower if shift > 1 else verdict.outcome == "improved"
    if verdict.ratio is None or not moved or verdict.speed is not None or verdict.worse:
        return verdict
    sign, nearest = (1, verdict.ratio.lo) if shift > 1 else (-1, verdict.ratio.hi)
    if nearest is not None and sign * math.log(nearest / shift) > math.log1p(policy.tolerance):
        return verdict
    return replace(
        verdict,
        outcome="platform_shift",
        reason=joined(f"moved with the platform, whose median case went {percent(shift)}", verdict.reason),
        policy=policy.label,
    )


def _headline(verdicts: Mapping[str, Verdict], settled: Mapping[str, Verdict], shift: float) -> str:
    moved = sum(verdict.outcome == "platform_shift" for verdict in settled.values())
    other = "the other arm" if any(verdict.pairs for verdict in verdicts.values()) else "its baseline"
    line = f"platform shift: the median of {len(_stable(verdicts))} stable cases is {change(shift)} than {other}"
    line += f" ({plural(moved, 'case')} moved with it)" if moved else " (no single case proves it)"
    common = _common_differences(verdicts)
    return line + (f"; changed for all: {', '.join(common)}" if common else "")


def _stable(verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    """The slowdown of each case whose noise is known. Cases with assumed noise prove nothing about the platform.

    Nor do those beside a live baseline: the platform is the same on both sides.
    """
    return {
        name: verdict.ratio.value
        for name, verdict in verdicts.items()
        if verdict.outcome in SPEED
        and verdict.ratio is not None
        and _testable(verdict)
        and not (verdict.pairs and verdict.pairs.lock)
    }


def machine_line(verdicts: Mapping[str, Verdict], policy: Policy) -> str:
    """Report a shift of the machine, which live baselines show: their software has other times than those stored.

    An empty text if there is none.
    """
    watched = [verdict.pairs.machine for verdict in verdicts.values() if verdict.pairs and verdict.pairs.machine]
    moved = [entry for entry in watched if entry.outcome in ("regressed", "improved")]
    if not watched or 2 * len(moved) < len(watched):
        return ""
    median = math.exp(statistics.median(math.log(entry.ratio) for entry in watched))
    if abs(math.log(median)) <= math.log1p(policy.tolerance):
        return ""
    common = [line for line in watched[0].differences if all(line in entry.differences for entry in watched)]
    changed = f"; changed since: {', '.join(common)}" if common else "; nothing that is recorded of it changed"
    cases = plural(len(watched), "live baseline")
    return (
        f"platform shift: with the same software, the median of {cases} is {change(median)} "
        f"than when it was accepted{changed}"
    )


def _common_differences(verdicts: Mapping[str, Verdict]) -> list[str]:
    each = [
        verdict.evidence.differences if verdict.evidence else ()
        for verdict in verdicts.values()
        if verdict.outcome in SPEED
    ]
    return [line for line in each[0] if all(line in other for other in each)] if each else []
