"""A verdict in one sentence, the same wherever it is shown: terminal, markdown, JUnit, JSON, pages."""

from __future__ import annotations

from dataclasses import replace

from ipexperf.ratio import Ratio
from ipexperf.result import MEAN, METRICS, PRIMARY
from ipexperf.sentences import few, joined
from ipexperf.units import TWICE, change, from_to, plural
from ipexperf.verdict import Evidence, Level, PairsEvidence, Structure, Verdict

SAME_ARMS = "both arms are the same (A/A)"
UNEXPLAINED = "nothing that is recorded of the arms differs"
BEYOND_DOUBT = ("regressed", "improved", "platform_shift")
"""Outcomes of a change that was seen."""


def sentence(verdict: Verdict) -> str:
    """What decided and how sure that is, with the first cause, such as the line of a file that was edited.

    `4.4 times slower: 4.27 -> 19.0 ms (3.1 to 6.3 times; 4 pairs); work.py:16 'out = dict(out)'`.
    """
    known = verdict.evidence.differences if verdict.evidence and verdict.outcome != "ok" else ()
    return headline(verdict, few(known, 1, rest="more differences" if len(known) > 2 else "more difference"))


def details(verdict: Verdict) -> list[str]:
    """What else is known: a sentence on each other metric that moved by itself, what was lost, what ran otherwise."""
    decided, alone = deciding(verdict), verdict.alone
    said = {decided.metric, *([MEAN] if alone.outcome == decided.outcome else [])}
    others = [other for other in (alone, *verdict.moved) if other.metric not in said and other.outcome in BEYOND_DOUBT]
    structure = verdict.structure or Structure("same")
    moved = [of_metric(other, verdict.evidence) for other in others]
    return [*moved, *(f"lost: {loss}" for loss in structure.losses), *structure.changes]


def headline(verdict: Verdict, cause: str = "") -> str:
    """The sentence with another cause, or without."""
    decided = deciding(verdict)
    work = verdict.structure.work if verdict.structure else ""
    told = [of_metric(decided, verdict.evidence), cause, work, decided.reason, verdict.reason, *_of_pairs(verdict)]
    if verdict.outcome not in (*BEYOND_DOUBT, "inconclusive", "ok"):
        told.insert(0, verdict.reason)  # there are no numbers, or they are not what decided
    return joined(*told)


def deciding(verdict: Verdict) -> Verdict:
    """The verdict on the metric that decided: speed, or the first other one with the outcome of the case."""
    others = [other for other in verdict.others if verdict.speed and other.outcome == verdict.outcome]
    return others[0] if others else verdict.alone


def of_time(verdict: Verdict | None, *, higher: bool = False) -> str:
    """How the time changed, with the interval that decides: '+12.3 % (+4.0 to +21.0)'.

    `higher`: it is no time, but a number of which more is better, and what was judged is its inverse.
    """
    if verdict is None or verdict.ratio is None:
        return "-"
    ratio = _ratio(verdict.ratio, verdict)
    return str(ratio.inverse if higher else ratio)


def of_metric(verdict: Verdict, evidence: Evidence | None) -> str:
    """The numbers of one metric. Empty if it has none."""
    if verdict.ratio is None:
        return ""
    ratio, levels = _ratio(verdict.ratio, verdict), _levels(verdict)
    unit = METRICS[verdict.metric].unit
    time = ("slower", "faster") if verdict.metric in (PRIMARY, MEAN) else ("longer", "shorter")
    words = time if unit == "s" else ("more", "less")
    words = ("worse", "better") if verdict.level and verdict.level.unit is not None else words
    name = "" if verdict.metric == PRIMARY else f" {verdict.metric}"
    unsure = "could not tell: " if verdict.outcome == "inconclusive" else ""
    if unsure and ratio.narrow and ratio.lo and ratio.hi:
        low, high = (change(end, *words) for end in (ratio.lo, ratio.hi))
        text = f"{unsure}{low} to {high}{name}{_in_brackets(levels, _count(evidence, verdict.level))}"
        return f"{text}; more than {high} is excluded" if 1 < ratio.hi < TWICE else text
    if verdict.outcome == "ok" and ratio.hi is not None:
        text = f"at most {change(ratio.hi, *words)}" if round(ratio.hi, 3) > 1 else f"not {words[0]}"
    else:
        text = f"{unsure}{change(ratio.value, *words)}"
        ratio = ratio.inverse if 1 / ratio.value >= TWICE else ratio
    text, interval = f"{text}{name}", "" if ratio.lo is None else ratio.range
    return f"{text}{levels and f': {levels}'}{_in_brackets(interval, _count(evidence, verdict.level))}"


def _in_brackets(*texts: str) -> str:
    return f" ({'; '.join(filter(None, texts))})" if any(texts) else ""


def _ratio(ratio: Ratio, verdict: Verdict) -> Ratio:
    """The ratio with the interval that decides."""
    return replace(ratio, lo=verdict.bounds[0], hi=verdict.bounds[1]) if verdict.bounds else ratio


def _levels(verdict: Verdict) -> str:
    level = verdict.level
    unit = level.unit if level else None
    return from_to(level.before, level.now, METRICS[verdict.metric].unit if unit is None else unit) if level else ""


def _count(evidence: Evidence | None, level: Level | None) -> str:
    """What the interval is over."""
    if evidence is None:
        return ""
    if not isinstance(evidence, PairsEvidence):
        return plural(evidence.sessions, "session")
    if level and level.pairs:
        return plural(level.pairs, "pair")
    trimmed = f", {evidence.trimmed} of them trimmed" if evidence.trimmed else ""
    return f"{plural(len(evidence.log_ratios), 'pair')}{trimmed}"


def _of_pairs(verdict: Verdict) -> list[str]:
    """What else is to be known of pairs: why they ended in doubt, that both arms are the same, or took no turns."""
    pairs = verdict.pairs
    if pairs is None or verdict.ratio is None:
        return []
    alike = UNEXPLAINED if verdict.outcome in BEYOND_DOUBT else SAME_ARMS
    return [pairs.stopped if verdict.outcome == "inconclusive" else "", "" if pairs.differences else alike, pairs.apart]
