"""One run for the golden files: a case of every outcome."""

import math
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ipexperf.case import NetworkCase
from ipexperf.plan import groups
from ipexperf.ratio import Ratio
from ipexperf.report.summary import Summary
from ipexperf.report.table import summary_lines
from ipexperf.result import Check, Launch, Measurement, RoundRecord, SeatRecord
from ipexperf.verdict import BaselineEvidence, Level, Verdict

GOLDEN = Path(__file__).parent / "golden"
AT = "2026-03-04T05:06:07+00:00"
PLAIN = NetworkCase("resnet50", "cpu", "fp32", "infer", "stock", 8, 224)
FAST = replace(PLAIN, dtype="bf16", mode="infer_jit", stack="ipex")
LONG = replace(FAST, model="mobilenet_v3_large_with_a_long_name")
EVIDENCE = BaselineEvidence(
    step_time=0.0101,
    sessions=5,
    run="0190",
    commit="abcdef0123456789",
    started_at="2026-02-01T00:00:00+00:00",
    accepted_at="2026-02-02T00:00:00+00:00",
    accepted_by="ada",
    reason="first numbers of the new machine",
    expires="2026-03-01",
    expired=True,
    differences=["torch: 2.8.0 -> 2.9.0"],
)
SLOW = Verdict(
    "regressed",
    "THE BASELINE EXPIRED on 2026-03-01: accept a new one",
    level=Level(0.0101, 0.0203),
    ratio=Ratio(2.01, 1.902, 2.124),
    p_value=1.2e-5,
    mde=0.12,
    policy="screen-1@0123456789ab",
    evidence=EVIDENCE,
)


def measurement(case: NetworkCase, step: float, **metrics: float) -> Measurement:
    values = {"step_time": step, "throughput": case.batch / step, "p90": step * 1.1, **metrics}
    launches = tuple(Launch(i, "ok", metrics={**values, "step_time": step * (1 + i / 100)}) for i in range(3))
    return Measurement(case, launches, {}, AT, AT)


def together(
    cases: Iterable[Measurement], *, twin: float | None = None, count: int = 3, noise: float = 0.01, dropped: int = 0
) -> list[RoundRecord]:
    """Rounds of these cases with the measured steps. A twin takes its reference's steps times a factor."""
    chance = random.Random(1)  # noqa: S311 - noise, no secret
    steps = {one.case: one.median("step_time") or 0.0 for one in cases}
    plainest = groups.reference(list(steps))

    def turns(step: float) -> tuple[tuple[float, ...], ...]:
        return (tuple(step * math.exp(chance.gauss(0, noise)) for _ in range(8)),)

    rounds = []
    for number in range(count):
        seats = [SeatRecord(case, "case", turns(step), number) for case, step in steps.items()]
        if twin is not None:
            seats.append(SeatRecord(plainest, "twin", turns(steps[plainest] * twin)))
        name = groups.name(plainest)
        rounds.append(RoundRecord(f"{name} {number}", name, number, "together", tuple(seats), AT, 9.0, 8, dropped))
    return rounds


def summary(
    measurements: Sequence[Measurement],
    verdicts: Mapping[str, Verdict] | None = None,
    rounds: Sequence[RoundRecord] = (),
    **told: Any,
) -> Summary:
    """The record of a run, in which a case without a verdict has no baseline."""
    none = {one.case.uid: Verdict("no_baseline", "") for one in measurements}
    return replace(Summary.of(measurements, {**none, **(verdicts or {})}, rounds), **told)


def told(
    measurements: Sequence[Measurement],
    verdicts: Mapping[str, Verdict] | None = None,
    rounds: Sequence[RoundRecord] = (),
    **told: Any,
) -> list[str]:
    """What the terminal shows of a run."""
    return summary_lines(summary(measurements, verdicts, rounds, **told))


def out_of_budget(case: NetworkCase) -> Measurement:
    return Measurement(case, (), {}, AT, AT, cut="the budget (--perf-budget) was spent already")


def unproven() -> Measurement:
    check = Check("dtype", ok=False, found="fp32 kernels", expected="bf16 kernels")
    launch = Launch(0, "ok", metrics={"step_time": 0.005, "throughput": 1600.0}, proof=(check,))
    return Measurement(FAST, (launch, replace(launch, index=1, contended="steal 12 %")), {}, AT, AT)


def crashed() -> Measurement:
    log = "\n".join(f"line {number}" for number in range(20)) + "\nRuntimeError: no kernel image\n"
    bad = Launch(1, "crashed", "the worker died of signal 11", log=log)
    return Measurement(FAST, (Launch(0, "ok", metrics={"step_time": 0.005}), bad), {}, AT, AT)


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("IPEXPERF_GOLDEN") and not path.exists():
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")
