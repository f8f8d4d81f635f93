"""Properties in a JUnit file: flat names and values, numbers in base units."""

from __future__ import annotations

from ipexperf.case import ProgramCase
from ipexperf.judge.sentence import sentence
from ipexperf.ratio import numbers
from ipexperf.result import METRICS, Measurement
from ipexperf.verdict import Verdict


def properties(measurement: Measurement, verdict: Verdict) -> list[tuple[str, str]]:
    """The properties of a test case. Metrics that were not measured are left out."""
    case = measurement.case
    pairs = [(name, str(value)) for name, value in case.to_json().items() if name not in ("data", "knobs")]
    pairs += [("case", case.id), ("case_uid", case.uid), *(("knob_" + name, value) for name, value in case.knobs)]
    pairs += [
        (name, _number(value))
        for name in METRICS
        if (value := measurement.median(name)) is not None and verdict.outcome != "failed"
    ]
    pairs.append(("launches", str(len(measurement.counted))))
    pairs += [
        (name, _number(value))
        for name, value in {**numbers(verdict.ratio), "p_value": verdict.p_value, "mde": verdict.mde}.items()
        if value is not None
    ]
    for other in verdict.others:
        pairs.append((f"verdict_{other.metric}", other.outcome))
        if other.ratio is not None:
            pairs.append((f"ratio_{other.metric}", _number(other.ratio.value)))
    if verdict.structure is not None:
        pairs.append(("structure", verdict.structure.outcome))
        pairs += [("structure_change", change) for change in verdict.structure.changes]
        pairs += [("structure_loss", loss) for loss in verdict.structure.losses]
    pairs += [("verdict", verdict.outcome), ("reason", sentence(verdict)), ("policy", verdict.policy)]
    of_number = f"{case.number}: " if isinstance(case, ProgramCase) and case.number else ""  # a test has many of them
    return [(of_number + name, value) for name, value in pairs]


def of_run(line: str, trouble: str, *, fails: bool) -> list[tuple[str, str]]:
    """The properties of the suite. A run can fail as a whole although `failures` is 0."""
    pairs = [("run_fails", "yes" if fails else "no"), ("run_says", line), ("run_not_recorded", trouble)]
    return [(name, value) for name, value in pairs if value]


def _number(value: float) -> str:
    return f"{value:.6g}"
