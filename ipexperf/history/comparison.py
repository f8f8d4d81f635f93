"""Compare two runs, case by case. This gives no verdicts: a verdict needs a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipexperf.case import Case
from ipexperf.history.query import known_metric
from ipexperf.history.records import Recorded, RunDetail, RunRecord, of_case
from ipexperf.judge import ratios
from ipexperf.judge.environment import changed_case, conditions_differ, differences, incomparable
from ipexperf.judge.policy import Policy
from ipexperf.proof import structure
from ipexperf.ratio import SINGLE, Ratio
from ipexperf.result import PRIMARY, Metric


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """One case of two runs. `ratio` is the value of the second run over that of the first, with its interval.

    `change` is `better`, `worse`, `different` (if neither direction is good) or `not seen`. It is empty if there is no
    ratio; `note` then says why. `differences` lists differences of this case's environment that the run lacks.
    """

    case_id: str
    case_uid: str
    model: str | None
    device: str
    dtype: str | None
    mode: str | None
    stack: str | None
    batch: int | None
    metric: str
    unit: str
    higher_is_better: bool | None
    first: float | None
    second: float | None
    first_n: int
    second_n: int
    ratio: Ratio | None
    change: str
    first_outcome: str | None
    second_outcome: str | None
    accuracy_metric: str | None
    first_accuracy: float | None
    second_accuracy: float | None
    note: str
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs, the differences between their environments, and every case of either."""

    first: RunRecord
    second: RunRecord
    differences: tuple[str, ...]
    cases: tuple[ComparedCase, ...]


def compare(first: RunDetail, second: RunDetail, metric: str = PRIMARY) -> RunComparison:
    """Compare every case of the second run with the same case of the first."""
    unit = known_metric(metric)
    common = tuple(between(first.environment, second.environment))
    pairs = _pairs(first.cases, second.cases)
    # Every pair gets its share of the alarm rate, shown or not: leaving unsound ones out must not relax the others.
    family = sum(old is not None and new is not None and old.case == new.case for old, new in pairs)
    return RunComparison(
        first.run, second.run, common, tuple(_compared(old, new, unit, family, common) for old, new in pairs)
    )


def change(ratio: Ratio, metric: Metric) -> str:
    """Return the direction of a ratio if its interval excludes 1."""
    if not ratio.differs:
        return "not seen"
    if metric.higher_is_better is None:
        return "different"
    return "better" if (ratio.value > 1) == metric.higher_is_better else "worse"


def _pairs(first: Sequence[Recorded], second: Sequence[Recorded]) -> list[tuple[Recorded | None, Recorded | None]]:
    """Pair the same case of both runs, then the rest by name."""
    old, new = ({recorded.case: recorded for recorded in side} for side in (first, second))
    pairs: list[tuple[Recorded | None, Recorded | None]] = [
        (old.pop(case), new.pop(case)) for case in [*old] if case in new
    ]
    for case in [*new]:
        alike = next((other for other in old if other.id == case.id), None)
        if alike is not None:
            pairs.append((old.pop(alike), new.pop(case)))
    pairs += [(recorded, None) for recorded in old.values()] + [(None, recorded) for recorded in new.values()]
    return sorted(pairs, key=lambda pair: (_either(pair).id, _either(pair).uid))


def _either(pair: tuple[Recorded | None, Recorded | None]) -> Case:
    recorded = pair[1] or pair[0]
    assert recorded is not None  # noqa: S101 - a pair has at least one side
    return recorded.case


def _compared(
    old: Recorded | None, new: Recorded | None, metric: Metric, family: int, common: Sequence[str]
) -> ComparedCase:
    case = _either((old, new))
    note = _why_not(old, new, metric.name)
    ratio = None
    if not note and old is not None and new is not None:
        ratio = ratios.compare(old.values[metric.name], new.values[metric.name], Policy(), family)
        note = "; ".join(_cautions(old, new, ratio))
    accuracies = [side.accuracy if side else None for side in (old, new)]
    named = next((score[0] for score in accuracies if score), None)
    sides = [score[1] if score and score[0] == named else None for score in accuracies]
    return ComparedCase(
        **of_case(case),
        metric=metric.name,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        first=old.medians.get(metric.name) if old else None,
        second=new.medians.get(metric.name) if new else None,
        first_n=len(old.values.get(metric.name, ())) if old else 0,
        second_n=len(new.values.get(metric.name, ())) if new else 0,
        ratio=ratio,
        change=change(ratio, metric) if ratio else "",
        first_outcome=old.outcome if old else None,
        second_outcome=new.outcome if new else None,
        accuracy_metric=named,
        first_accuracy=sides[0],
        second_accuracy=sides[1],
        note=note,
        differences=tuple(line for line in between(old.environment, new.environment) if line not in common)
        if old and new
        else (),
    )


def _cautions(old: Recorded, new: Recorded, ratio: Ratio) -> Iterator[str]:
    """What to know of a ratio before believing it."""
    if fields := incomparable(old.environment, new.environment):
        yield f"other hardware: {', '.join(fields)}"
    if work := structure.other_work(old.fingerprint, new.fingerprint):
        yield work
    if ratio.lo is None:
        yield SINGLE


def _why_not(old: Recorded | None, new: Recorded | None, metric: str) -> str:
    if old is not None and new is not None and old.case != new.case:
        return f"not the same work: {', '.join(changed_case(old.case, new.case))}"
    sides = [
        (name, side.unsound(metric) if side else "is not in the run")
        for name, side in (("first", old), ("second", new))
    ]
    if old is None or new is None or any(why for _, why in sides):
        return "; ".join(f"the {name} {why}" for name, why in sides if why)
    return conditions_differ(old.environment, new.environment, same_case=True)


def between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """List the differences between two environments, those of the source last."""
    lines = differences(old, new)
    keys = [side.get("machine_key") for side in (old, new)]
    if keys[0] != keys[1]:
        lines.insert(0, f"machine_key: {keys[0]} -> {keys[1]}")
    sources = [side.get("git") or {} for side in (old, new)]
    commits = [str(git.get("commit") or "unknown") for git in sources]
    changes = [str(git.get("changes") or "unknown") if git.get("dirty") else "none" for git in sources]
    return [
        *lines,
        *([f"commit: {commits[0]} -> {commits[1]}"] if commits[0] != commits[1] else []),
        *([f"uncommitted changes: {changes[0]} -> {changes[1]}"] if changes[0] != changes[1] else []),
    ]
