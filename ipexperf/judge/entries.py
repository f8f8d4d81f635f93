"""Read the cases of a baseline file strictly, so that errors are found before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain, pairwise
from typing import Any

from ipexperf.case import AXES, Case
from ipexperf.judge import yardstick
from ipexperf.judge.baseline import CaseBaseline, Session, slot
from ipexperf.judge.environment import FINDINGS
from ipexperf.result import METRICS, PRIMARY, RELATIVE


def cases(entries: list[Any], environments: dict[str, Any]) -> tuple[CaseBaseline, ...]:
    """Read every case of a file. Duplicates, as after a bad merge, are refused: the next accept would lose one."""
    found = sorted((_case(entry, environments) for entry in entries), key=lambda x: slot(x.case))
    for one, other in pairwise(found):
        if slot(one.case) == slot(other.case):
            raise ValueError(f"{one.case.id} with batch {one.case.batch} is there twice")
    return tuple(found)


def _case(entry: dict[str, Any], environments: dict[str, Any]) -> CaseBaseline:
    sessions = tuple(
        Session(
            run=str(session["run"]),
            started_at=str(session["started_at"]),
            commit=str(session["commit"]),
            launches=tuple(float(value) for value in session["launches"]),
            metrics=_numbers(entry["id"], session["metrics"]),
        )
        for session in entry["sessions"]
    )
    if not sessions or not all(x.launches and all(0 < t < math.inf for t in x.launches) for x in sessions):
        raise ValueError(f"{entry['id']} needs sessions with launches above 0 s")
    environment = _environment(entry["id"], environments[entry["environment"]])
    if yardstick.content(environment) and not all(x.metrics.get(PRIMARY, 0) > 0 for x in sessions):
        raise ValueError(f"{entry['id']} has units of a yardstick, and needs its seconds beside them")
    return CaseBaseline(
        case=_work(entry["id"], entry["case"]),
        sessions=sessions,
        accuracy=_numbers(entry["id"], entry["accuracy"]),
        reason=str(entry["reason"]),
        accepted_by=str(entry["accepted_by"]),
        accepted_at=str(entry["accepted_at"]),
        expires=None if entry["expires"] is None else str(entry["expires"]),
        environment=environment,
        fingerprint=None if entry.get("fingerprint") is None else str(entry["fingerprint"]),
    )


def _environment(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """The environment, in sections as they are compared. Instances have a placement each."""
    for section in FINDINGS:
        told = found.get(section, {})
        parts = told if section == "placement" and isinstance(told, list) else [told]
        if not all(isinstance(part, dict) for part in parts):
            raise ValueError(f"{name} was measured in an environment whose {section} is no section of names")
    return dict(found)


def _work(name: str, document: dict[str, Any]) -> Case:
    """The case. Types are checked here, because a wrong one would break the run later, far from the file."""
    case = Case.from_json(document)
    texts = (*(getattr(case, axis) for axis in AXES), case.data, *chain(*case.knobs))
    counts = (case.batch, case.size, case.version)
    if not all(isinstance(x, str) for x in texts) or not all(type(x) is int for x in counts):
        raise ValueError(f"{name} needs whole numbers as batch, size and version, and texts as all else")
    return case


def _numbers(name: str, found: Mapping[str, Any]) -> dict[str, float]:
    """Metrics by name. NaN, which Python's JSON accepts, is refused: it would switch off checks."""
    numbers = {metric: float(value) for metric, value in found.items()}
    for metric, value in numbers.items():
        negative = value < 0 and metric in METRICS and METRICS[metric].unit == "s"
        if not math.isfinite(value) or negative or (value <= 0 and metric in (PRIMARY, RELATIVE)):
            raise ValueError(f"{name} has {value:g} as its {metric}")
    return numbers
