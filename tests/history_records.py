"""Measurements made by hand, for the tests of the history."""

from typing import Any

from ipexperf.case import NetworkCase
from ipexperf.history import History
from ipexperf.ratio import Ratio
from ipexperf.result import Check, Launch, Measurement, Role, RoundRecord, Sample, SeatRecord
from ipexperf.verdict import Verdict

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


def make_case(model: str = "resnet50", **changes: Any) -> NetworkCase:
    axes = {"device": "cpu", "dtype": "bf16", "mode": "infer", "stack": "ipex", "batch": 16, "size": 224}
    return NetworkCase(model=model, **(axes | changes))


def make_launch(index: int, step: float, contended: str = "", **metrics: float) -> Launch:
    samples = tuple(Sample(wall=step + 0.0001 * (n - 2), cpu=step * 2, delay=0.0) for n in range(5))
    return Launch(
        index=index,
        outcome="ok",
        samples=samples,
        block=1,
        metrics={"step_time": step, "throughput": 16 / step, **metrics},
        proof=(Check("dtype", ok=True, found="bf16", expected="bf16"),),
        gate={"load": 0.25},
        contended=contended,
    )


def make_measurement(
    case: NetworkCase | None = None, steps: tuple[float, ...] = (0.010, 0.011, 0.013), **changes: Any
) -> Measurement:
    values: dict[str, Any] = {
        "case": case or make_case(),
        "launches": tuple(make_launch(index, step) for index, step in enumerate(steps)),
        "environment": ENVIRONMENT,
        "started_at": "2026-05-04T12:00:00+02:00",
        "finished_at": "2026-05-04T10:01:00Z",
    }
    return Measurement(**(values | changes))


def make_round(*arms: SeatRecord, number: int = 1, day: int = 4, **changes: Any) -> RoundRecord:
    """A round of these arms; without any, of the usual case beside the same in fp32, which takes twice as long."""
    seats = arms or (make_seat(make_case(dtype="fp32"), 0.02), make_seat(make_case(), 0.01))
    values: dict[str, Any] = {
        "uid": f"{day:02d}{number:030x}",
        "group": "resnet50 cpu infer 16x224",
        "number": number,
        "schedule": "together",
        "seats": seats,
        "started_at": f"2026-05-{day:02d}T10:{number:02d}:00.000000+00:00",
        "seconds": 12.5,
        "turns": len(seats[0].times[0]),
        "dropped": 1,
    }
    return RoundRecord(**(values | changes))


def make_seat(case: NetworkCase, step: float, role: Role = "case", launch: int | None = 0) -> SeatRecord:
    """An arm of one process, whose turns differ a little."""
    times = tuple(step * (1 + 0.001 * turn) for turn in range(8))
    return SeatRecord(case, role, (times,), launch if role == "case" else None)


def captured(digest: str | None, flops: int = 1) -> dict[str, Any]:
    """A fingerprint."""
    return {
        "version": 1,
        "digest": digest,
        "structure": {"flops": flops},
        "times": {},
        "unstable": [] if digest else ["operators"],
        "missing": {},
        "unparsed": [],
        "seconds": 0.5,
    }


OK = Verdict(outcome="ok", reason="within the noise", ratio=Ratio(1.01, 0.98, 1.04), p_value=0.4, mde=0.03, policy="v1")
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
        arms = (make_seat(case, 0.01), make_seat(case, 0.01, "twin"))
        history.record_round(uid, make_round(*arms, day=number + 1))
