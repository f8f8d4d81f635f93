"""Records for the judge's tests, as small as they can be."""

from collections.abc import Mapping, Sequence
from typing import Any

from ipexperf.case import NetworkCase
from ipexperf.judge.accept import ProposedCase
from ipexperf.judge.baseline import CaseBaseline, Session
from ipexperf.proof import fingerprint
from ipexperf.result import Check, Launch, Measurement
from ipexperf.verdict import Verdict

CASE = NetworkCase("resnet50", "cpu", "bf16", "infer_jit", "ipex", 8, 224)
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
    case: NetworkCase = CASE,
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
    case: NetworkCase = CASE,
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


CONVOLUTION = {
    "primitive": "convolution",
    "direction": "forward_inference",
    "implementation": "brgconv:avx512_core_amx",
    "types": "src:bf16 wei:bf16 dst:bf16",
    "layouts": "src:acdb wei:Acdb32a dst:acdb",
    "attributes": "attr-post-ops:eltwise_relu",
    "fused": "eltwise_relu",
    "algorithm": "convolution_direct",
    "calls": 53,
    "shapes": "0011aabb",
}
"""A row of a fingerprint's primitives."""


def operator(name: str, calls: int = 1, types: str = "float32", shapes: Any = "x", **inside: int) -> dict[str, Any]:
    return {
        "operator": name.replace(".", "::"),
        "calls": calls,
        "types": {types: calls},
        "shapes": shapes,
        "inside": {key.replace("_in_", "::"): count for key, count in (inside or {"": calls}).items()},
    }


def captured(
    times: Mapping[str, list[float]] | None = None, beside: Mapping[str, Any] | None = None, **sections: Any
) -> dict[str, Any]:
    """A fingerprint as a worker writes it down."""
    return {
        "version": 1,
        "digest": fingerprint.digest(sections),
        "structure": sections,
        "times": times or {},
        "beside": beside or {},
        "unstable": [],
        "missing": {},
        "unparsed": [],
        "seconds": 0.1,
    }


def processor(aten: str = "AVX2", onednn: str = "Intel AVX2", threads: int = 2) -> dict[str, Any]:
    return {"threads": threads, "aten": aten, "onednn": [onednn] if onednn else [], "limits": {}}


def compiled(breaks: int = 0, graphs: int = 1, frames: int = 1) -> dict[str, Any]:
    return {"graphs": graphs, "frames": frames, "breaks": {"a call of print": breaks} if breaks else {}, "calls": {}}


def nodes(**calls: int) -> list[dict[str, Any]]:
    """The nodes of a graph. `__` stands for `::`."""
    return [{"node": name.replace("__", "::"), "calls": count} for name, count in calls.items()]
