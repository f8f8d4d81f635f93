"""A migration between the fake stacks that was never measured: its plan, its launches and its rounds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.plan.options import Options
from ipexperf.report.speeds import Speeds
from ipexperf.result import Check, Launch, Measurement, RoundRecord, SeatRecord
from ipexperf.tools.experiments import judged
from ipexperf.tools.migrate import findings
from ipexperf.tools.migrate import plan as migration
from ipexperf.tools.migrate.findings import Finding, Findings
from ipexperf.tools.migrate.plan import MigrationPlan, StackSide

AT = "2026-11-24T12:00:00.000+00:00"
HERE = Facts("/env/bin/python", {})
WHERE = {"machine_key": "fake-2c", "hardware": {"cpu": "a fake", "cores": 2}, "software": {"torch": "2.8.0"}}
MODES = ("spin", "streamed", "teach", "whirl")


def options(**more: Any) -> Options:
    """The options for the model `tiny` on the fake device."""
    return Options(**{"model": ("tiny",), "device": ("fake",), "dtype": ("fp32",), "mode": MODES, **more})


def plan(old: Facts = HERE, new: Facts = HERE, **more: Any) -> MigrationPlan:
    """The plan from `old` to `new`."""
    return migration.make(StackSide("old", old, options(**more)), StackSide("new", new, options(**more)))


def seconds(case: Case) -> float:
    """The step times: 10 ms on the old stack, 20 ms on the new one, and 5 ms in its best mode."""
    return 0.005 if case.mode == "whirl" else 0.02 if case.stack == "new" else 0.01


def measured(case: Case, step: float, *, checked: bool = True, **more: Any) -> Measurement:
    """Three launches of a case, with or without a check of its accuracy."""
    metrics = {
        "step_time": step,
        "mean_step": step,
        "throughput": 1 / step,
        **({"accuracy": 0.98} if checked else {}),
        "peak_memory": 2.0**20,
        "import_time": 1.0,
        "prepare_time": 0.5,
        **more,
    }
    proof = (Check("dtype", ok=True, found="fp32", expected="fp32"),)
    accuracy = (Check("learned", ok=True, found="0.98", expected="0.5"),) if "accuracy" in metrics else ()
    one = Launch(0, "ok", metrics=metrics, proof=proof, accuracy=accuracy)
    return Measurement(case, tuple(replace(one, index=index) for index in range(3)), WHERE, AT, AT)


def rounds(cases: Mapping[Case, float], name: str, noise: float = 0.002) -> list[RoundRecord]:
    """Three rounds in which the cases take these seconds a step."""
    chance = random.Random(1)  # noqa: S311 - noise, no secret

    def turns(step: float) -> tuple[tuple[float, ...], ...]:
        return (tuple(step * math.exp(chance.gauss(0, noise)) for _ in range(8)),)

    return [
        RoundRecord(
            f"{name} {number}",
            name,
            number,
            "together",
            tuple(SeatRecord(case, "case", turns(step), number) for case, step in cases.items()),
            AT,
            9.0,
            8,
        )
        for number in range(3)
    ]


def findings_of(
    of: MigrationPlan,
    seconds: Callable[[Case], float] = seconds,
    changed: Mapping[Case, Measurement | None] = MappingProxyType({}),
    noise: float = 0.002,
) -> Findings:
    """The findings where each case takes so many seconds. `changed` has other measurements, or None for no round."""
    measurements = {case: measured(case, seconds(case)) for case in of.cases} | dict(changed)
    there = {case: one for case, one in measurements.items() if one is not None}
    records = [
        record
        for contest in of.contests
        for record in rounds(
            {case: seconds(case) for case in contest.cases if case in there and not there[case].failure},
            contest.name,
            noise,
        )
    ]
    verdicts = {case.uid: judged(one) for case, one in there.items()}
    return findings.find(of, Speeds.of(there.values(), verdicts, records))


def row(of: Findings, mode: str, update: str = "") -> Finding:
    """The row of a mode, with this kind of update."""
    return next(
        one for one in of.rows if one.row.case.mode == mode and dict(one.row.case.knobs).get("update", "") == update
    )
