"""The output of `ipexperf selftest` and `doctor`: how often the judge was wrong here, and what it can detect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.judge.selftest import CONFIDENCE, SizeRates, Trial, TrialRate, TrialSummary
from ipexperf.judge.sequential import SURE, reach
from ipexperf.outcomes import has_numbers
from ipexperf.report.units import percent, plural, seconds

HEADER = ("size", "trials", "caught", "missed", "within tolerance", "inconclusive", "pairs", "time")


def lines(summary: TrialSummary, spread: float | None, left_out: Mapping[str, int]) -> list[str]:
    """All lines."""
    texts = [_alarms(summary), *_rate_lines(summary.rows), *_measured(summary.measured)]
    texts += [f"failed: {_named(trial)}: {trial.outcome}: {trial.reason}" for trial in summary.failed]
    if summary.cut:
        texts.append(f"cut short by the budget, and not counted: {plural(summary.cut, 'trial')}")
    if spread is not None:
        texts.append(f"pairs of one trial spread by {spread:.1%} (log standard deviation)")
    texts.append(f"spent: {plural(summary.pairs, 'pair')}, {seconds(summary.seconds)}")
    for reason, count in sorted(left_out.items()):
        texts.append(f"left out {plural(count, 'time')}: {reason}")
    return texts


def detectable(trial: Trial, policy: PairPolicy) -> list[str]:
    """The lines of `doctor`: the result of an A/A, and the smallest slowdown that this machine can detect."""
    rows = [f"A/A of {trial.case.id}: {trial.outcome}: {trial.reason}"]
    smallest = reach(trial.log_ratios, policy)
    if smallest is None or not has_numbers(trial.outcome):
        return [*rows, "the smallest slowdown that this machine can show is unknown"]
    rows.append(f"pairs spread by {smallest.spread:.1%}, and by no more than {smallest.at_most:.1%} with {SURE:.0%}")
    effects = ", ".join(f"{effect:.1%} after {pairs}" for pairs, effect in smallest.effects)
    rows.append(f"slowdowns that pairs would show in 4 of 5 comparisons: {effects}")
    if trial.outcome in ("regressed", "improved"):
        rows.append("equal software was called different: do not trust a gate here, and see `ipexperf selftest`")
    else:
        pairs = plural(policy.max_pairs, "pair")
        rows.append(
            f"the smallest slowdown that this machine can honestly gate on: {smallest.smallest:.1%} (in {pairs})"
        )
    judged_by = Policy()
    rows.append(
        f"against a stored baseline: no case is called ok "
        f"until {judged_by.known_sessions} accepted sessions show how this machine varies"
    )
    return rows


def rate_text(rate: TrialRate) -> str:
    """A rate in words: '1 of 40 (95 % interval 0.1 % to 13.2 %)'."""
    if not rate.of:
        return "none was judged"
    return f"{rate.count} of {rate.of} ({CONFIDENCE:.0%} interval {rate.lo:.1%} to {rate.hi:.1%})"


def _alarms(summary: TrialSummary) -> str:
    if not summary.slower.of:
        return "false alarms: no A/A was judged"
    more = f"called improved: {summary.faster.count}; inconclusive: {summary.undecided}"
    return f"false alarms, A/A called regressed: {rate_text(summary.slower)}; {more}"


def _rate_lines(rows: Sequence[SizeRates]) -> list[str]:
    if not rows:
        return []
    cells = [
        (
            percent(1 + row.size),
            *map(str, (row.trials, row.caught, row.missed, row.within, row.inconclusive, row.pairs)),
            seconds(row.seconds),
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(HEADER, *cells, strict=True)]
    table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (HEADER, *cells)]
    return ["slow-downs of known size:", *(f"  {line}" for line in table)]


def _measured(trials: Sequence[Trial]) -> list[str]:
    """Injections of unknown size: what was measured. None of them counts as missed."""
    rows = []
    for trial in trials:
        size = percent(trial.ratio) if trial.ratio is not None else "not measured"
        rows.append(f"  {_named(trial)}: {size}, {trial.outcome}, {plural(trial.pairs, 'pair')}")
    return ["slow-downs of unknown size, as measured:", *rows] if rows else []


def _named(trial: Trial) -> str:
    return f"{trial.case.id}, {trial.injection}"
