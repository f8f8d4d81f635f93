"""Many cases, one alarm rate: what the verdicts of a whole run mean together."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipexperf.judge.policy import Policy
    from ipexperf.result import Verdict

SPEED = ("ok", "improved", "regressed", "inconclusive")
"""The outcomes that have a speed to compare."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The final verdict of every case, and one line on the run as a whole (empty: nothing to say)."""

    verdicts: Mapping[str, Verdict]
    line: str = ""
    shift: float | None = None
    """How many times slower the median case is, where the platform moved."""
    fails: bool = False
    """Whether the run fails: some case does, or the platform surely became slower, which is one alarm."""


def benjamini_hochberg(p_values: Sequence[float], rate: float) -> list[bool]:
    """Which p-values stay significant when only `rate` of the findings may be false."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    last = max((rank for rank, index in enumerate(order, 1) if p_values[index] <= rate * rank / len(order)), default=0)
    kept = set(order[:last])
    return [index in kept for index in range(len(p_values))]


def platform_shift(verdicts: Mapping[str, Verdict], policy: Policy) -> float | None:
    """The median slowdown of the judged cases, where they are enough and it left the tolerance either way."""
    ratios = [x.ratio for x in verdicts.values() if x.outcome in SPEED and x.ratio is not None]
    if len(ratios) < policy.shift_cases:
        return None
    median = math.exp(statistics.median(math.log(ratio) for ratio in ratios))
    return median if abs(math.log(median)) > math.log1p(policy.tolerance) else None


def settle(verdicts: Mapping[str, Verdict], policy: Policy) -> RunVerdict:
    """The verdicts once the run is known as a whole: too many questions asked, or all cases moved together."""
    tested = {name: x.p_value for name, x in verdicts.items() if x.outcome in SPEED and x.p_value is not None}
    kept = dict(zip(tested, benjamini_hochberg(list(tested.values()), policy.false_discovery_rate), strict=True))
    settled = {
        name: _doubted(x, len(tested)) if x.outcome == "regressed" and not kept.get(name, True) else x
        for name, x in verdicts.items()
    }
    doubted = sum(settled[name].outcome != x.outcome for name, x in verdicts.items())
    shift = platform_shift(settled, policy)
    if shift is None:
        line = f"{doubted} of {len(tested)} judged cases looked regressed, but no more than so many show by chance"
        line = line if doubted else ""
        return RunVerdict(settled, line, None, any(x.fails for x in settled.values()))

    proven = any(x.outcome == "regressed" for x in settled.values())
    settled = {name: _shifted(x, shift, policy) for name, x in settled.items()}
    moved = sum(x.outcome == "platform_shift" for x in settled.values())
    word = f"{shift - 1:.1%} slower" if shift > 1 else f"{1 - shift:.1%} faster"
    line = f"platform shift: the median of {_judged(verdicts)} judged cases is {word} than its baseline"
    line += f" ({moved} {'case' if moved == 1 else 'cases'} moved with it)" if moved else " (no single case proves it)"
    common = _common_differences(verdicts)
    if common:
        line += f"; changed for all: {', '.join(common)}"
    slower = shift > 1 and proven
    return RunVerdict(settled, line, shift, slower or any(x.fails for x in settled.values()))


def _doubted(verdict: Verdict, cases: int) -> Verdict:
    return replace(
        verdict,
        outcome="inconclusive",
        reason=f"looks regressed, but not beyond what {cases} cases show by chance: {verdict.reason}",
    )


def _shifted(verdict: Verdict, shift: float, policy: Policy) -> Verdict:
    """A case that moved with the platform is no finding of its own; one that moved further still is."""
    if verdict.ratio is None or (verdict.outcome, shift > 1) not in (("regressed", True), ("improved", False)):
        return verdict
    sign, nearest = (1, verdict.lo) if shift > 1 else (-1, verdict.hi)
    if nearest is not None and sign * math.log(nearest / shift) > math.log1p(policy.tolerance):
        return verdict
    return replace(
        verdict,
        outcome="platform_shift",
        reason=f"moved with the platform, whose median case went {shift - 1:+.1%}: {verdict.reason}",
    )


def _judged(verdicts: Mapping[str, Verdict]) -> int:
    return sum(x.outcome in SPEED and x.ratio is not None for x in verdicts.values())


def _common_differences(verdicts: Mapping[str, Verdict]) -> list[str]:
    each = [list((x.baseline or {}).get("differences", ())) for x in verdicts.values() if x.outcome in SPEED]
    return [line for line in each[0] if all(line in other for other in each)] if each else []
