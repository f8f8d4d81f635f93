"""Measurements made by hand, for the tests of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipexperf.case import Case
from ipexperf.result import Check, Launch, Measurement, Sample, Verdict

if TYPE_CHECKING:
    from ipexperf.history import History

DAYS = ("2026-05-01", "2026-05-02", "2026-05-03", "2026-05-04")

HARDWARE: dict[str, Any] = {
    "machine_key": "xeon-8480-2s",
    "hardware": {"cpu": "Xeon 8480+"},
    "software": {"torch": None, "ipex": None},
    "variables": {},
    "git": {"commit": "a1b2c3d4e5f6", "branch": "main", "dirty": False},
}
ENVIRONMENT: dict[str, Any] = {
    **HARDWARE,
    "software": {"torch": "2.8.0+cpu", "ipex": "2.8.0+cpu"},
    "variables": {"OMP_NUM_THREADS": "56"},
}


def make_case(model: str = "resnet50", **changes: Any) -> Case:
    axes = {"device": "cpu", "dtype": "bf16", "mode": "infer", "stack": "ipex", "batch": 16, "size": 224}
    return Case(model=model, **(axes | changes))


def make_launch(index: int, step: float, **metrics: float) -> Launch:
    samples = tuple(Sample(wall=step + 0.0001 * n, cpu=step * 2, delay=0.0) for n in range(5))
    return Launch(
        index=index,
        outcome="ok",
        samples=samples,
        block=1,
        metrics={"step_time": step, "throughput": 16 / step, **metrics},
        proof=(Check("dtype", ok=True, found="bf16", expected="bf16"),),
        gate={"load": 0.25},
    )


def make_measurement(
    case: Case | None = None, steps: tuple[float, ...] = (0.010, 0.011, 0.013), **changes: Any
) -> Measurement:
    values: dict[str, Any] = {
        "case": case or make_case(),
        "launches": tuple(make_launch(index, step) for index, step in enumerate(steps)),
        "environment": ENVIRONMENT,
        "started_at": "2026-05-04T12:00:00+02:00",
        "finished_at": "2026-05-04T10:01:00Z",
    }
    return Measurement(**(values | changes))


OK = Verdict(outcome="ok", reason="within the noise", ratio=1.01, lo=0.98, hi=1.04, p_value=0.4, mde=0.03, policy="v1")
CRASHED = Launch(
    index=1, outcome="crashed", reason="signal 11 (SIGSEGV)", log="loading\nFatal Python error: Segmentation fault"
)


def four_runs(history: History) -> None:
    """A run each day; the case and the environment of the first are nobody else's."""
    for number, day in enumerate(DAYS):
        own = {**ENVIRONMENT, "machine_key": "old-machine"} if number == 0 else ENVIRONMENT
        uid = history.start_run(own, {"started_at": f"{day}T08:00:00Z"})
        case = make_case("old" if number == 0 else "resnet50")
        history.record(uid, make_measurement(case, environment=own), OK)
