"""Records for the judge's tests, as small as they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipexperf.case import Case
from ipexperf.judge.accept import ProposedCase
from ipexperf.judge.baseline import CaseBaseline, Session
from ipexperf.result import Check, Launch, Measurement, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CASE = Case("resnet50", "cpu", "bf16", "infer_jit", "ipex", 8, 224)
ENVIRONMENT: dict[str, Any] = {
    "machine_key": "xeon-2c",
    "hardware": {"cpu": "Xeon", "threads": 2, "cores": 2, "isa": ["amx_bf16", "avx512f"], "frequency_khz": "2000000"},
    "software": {"torch": "2.8.0", "ipex": "2.8.0", "torch_build": "a\nb", "executable": "/a/python"},
    "variables": {"OMP_WAIT_POLICY": "PASSIVE"},
    "git": {"commit": "abc"},
}
QUIET = ((0.0100, 0.0101, 0.0099), (0.0101, 0.0100, 0.0102), (0.0099, 0.0100, 0.0100))
"""Three sessions with 1 % of noise."""


def environment(**sections: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {**value, **sections.get(name, {})} if isinstance(value, dict) else value
        for name, value in ENVIRONMENT.items()
    }


def measurement(
    values: Sequence[float],
    *,
    case: Case = CASE,
    where: Mapping[str, Any] = ENVIRONMENT,
    proof: tuple[Check, ...] = (),
    contended: str = "",
    started_at: str = "2026-03-04T05:06:07+00:00",
    **metrics: float,
) -> Measurement:
    launches = tuple(
        Launch(index, "ok", metrics={"step_time": value, **metrics}, proof=proof, contended=contended)
        for index, value in enumerate(values)
    )
    return Measurement(case, launches, where, started_at, started_at)


def baseline(
    sessions: Sequence[Sequence[float]] = QUIET,
    *,
    case: Case = CASE,
    where: Mapping[str, Any] = ENVIRONMENT,
    accuracy: Mapping[str, float] | None = None,
    expires: str | None = None,
    answers: Mapping[str, Any] | None = None,
) -> CaseBaseline:
    kept = tuple(
        Session(f"run{index}", f"2026-01-{index + 1:02d}T00:00:00+00:00", "abcdef", tuple(launches))
        for index, launches in enumerate(sessions)
    )
    return CaseBaseline(case, kept, accuracy or {}, "first light", "ada", "2026-01-09", expires, where, answers=answers)


def ends(verdict: Verdict) -> tuple[float, float]:
    """The interval of a verdict that has one."""
    assert verdict.ratio is not None
    assert verdict.ratio.lo is not None
    assert verdict.ratio.hi is not None
    return verdict.ratio.lo, verdict.ratio.hi


def candidate(values: Sequence[float], number: int = 1, **changes: Any) -> ProposedCase:
    given: dict[str, Any] = {
        "case": CASE,
        "metrics": {"step_time": tuple(values), "accuracy": (0.9,) * len(values)},
        "outcome": "no_baseline",
        "ratio": None,
        "environment": ENVIRONMENT,
        "run": f"run{number}",
        "started_at": f"2026-01-{number:02d}T00:00:00+00:00",
        "commit": "abcdef",
    }
    return ProposedCase(**{**given, **changes})
