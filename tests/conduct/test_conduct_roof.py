"""A worker measures the peak rates of a machine once. They are stored under a hash of all that they depend on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conduct_play import StandIn

from ipexperf.bench.api import Settings
from ipexperf.case import Case
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.roof import Roofs
from ipexperf.errors import WorkerError
from ipexperf.result import Launch

CASE = Case("tiny", "cpu", "fp32", "infer", "stock", 8, 8)
ENVIRONMENT: dict[str, Any] = {
    "machine_key": "box-2c",
    "software": {"torch": "2.8.0"},
    "variables": {"OMP_WAIT_POLICY": "PASSIVE", "TORCHINDUCTOR_CACHE_DIR": "now"},
}
TOLD: dict[str, Any] = {
    "version": 1,
    "peaks": {"fp32": {"rate": 1e11, "how": "a product"}},
    "missing": {},
}
WORK = {"work": {"items": 8, "flops": 8e9}}
DONE = Launch(0, "ok", metrics={"throughput": 50.0}, fingerprint={"beside": WORK})


class Measuring(StandIn):
    """Stands where a worker would measure: counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.fails: WorkerError | None = None

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        self.asked.append({"do": do, **request})
        if self.fails is not None:
            raise self.fails
        return {"peaks": TOLD}


@pytest.fixture
def worker() -> Measuring:
    return Measuring()


@pytest.fixture
def conditions(worker: Measuring) -> Conditions:
    """Conditions under which that worker is started."""
    return Conditions(Settings(threads=2), start=worker.start)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def roofs(tmp_path: Path, said: list[str]) -> Roofs:
    return Roofs(tmp_path, said.append)


def test_peaks_are_measured_once_for_all_cases_and_runs(
    roofs: Roofs, worker: Measuring, tmp_path: Path, said: list[str], conditions: Conditions
) -> None:
    """As long as machine, torch, threads and placement are the same."""
    found = roofs.with_shares([DONE], CASE, conditions, ENVIRONMENT)[0]
    assert found.metrics["flop_rate"] == pytest.approx(5e10)
    assert found.metrics["of_roof"] == pytest.approx(0.5)
    roofs.with_shares([DONE], replace(CASE, model="other", dtype="bf16"), conditions, ENVIRONMENT)
    Roofs(tmp_path, said.append).with_shares([DONE], CASE, conditions, ENVIRONMENT)
    assert [(request["do"], request["device"]) for request in worker.asked] == [("peaks", "cpu")]
    assert said == []


def test_after_the_budget_only_stored_peaks_are_used(
    roofs: Roofs, worker: Measuring, tmp_path: Path, said: list[str], conditions: Conditions
) -> None:
    """Measuring them takes ten seconds, and reading them none. A case has its rates either way."""
    [without] = Roofs(tmp_path, said.append).with_shares([DONE], CASE, conditions, ENVIRONMENT, measure=False)
    assert "of_roof" not in without.metrics
    assert without.metrics["flop_rate"] == pytest.approx(5e10)
    reason = "measuring the machine's peak rates: the budget (--perf-budget) was spent already"
    assert (without.notes, worker.asked) == ((f"has no roof: {reason}",), [])
    roofs.with_shares([DONE], CASE, conditions, ENVIRONMENT)
    [kept] = Roofs(tmp_path, said.append).with_shares([DONE], CASE, conditions, ENVIRONMENT, measure=False)
    assert kept.metrics["of_roof"] == pytest.approx(0.5)
    assert len(worker.asked) == 1


@pytest.mark.parametrize(
    ("other", "settings"),
    [
        ({"machine_key": "box-4c"}, Settings(threads=2)),
        ({"software": {"torch": "2.13.0"}}, Settings(threads=2)),
        ({"variables": {**ENVIRONMENT["variables"], "OMP_PROC_BIND": "close"}}, Settings(threads=2)),
        ({}, Settings(threads=1)),
        ({}, Settings(threads=2, placement={"cores": [0]})),
    ],
    ids=["machine", "torch", "OpenMP", "threads", "placement"],
)
def test_what_peaks_depend_on_makes_others(
    roofs: Roofs, worker: Measuring, other: dict[str, Any], settings: Settings, conditions: Conditions
) -> None:
    roofs.with_shares([DONE], CASE, conditions, ENVIRONMENT)
    roofs.with_shares([DONE], CASE, replace(conditions, settings=settings), {**ENVIRONMENT, **other})
    assert len(worker.asked) == 2


def test_a_variable_that_limits_instructions_does_not_lower_the_peak(
    roofs: Roofs,
    worker: Measuring,
    conditions: Conditions,
) -> None:
    """The share of the roof is to show its effect. A temporary folder in a variable is no other machine either."""
    roofs.with_shares([DONE], CASE, conditions, ENVIRONMENT)
    limits = {"ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "TORCHINDUCTOR_CACHE_DIR": "later"}
    limited = {**ENVIRONMENT, "variables": {**ENVIRONMENT["variables"], **limits}}
    roofs.with_shares([DONE], CASE, conditions, limited)
    assert len(worker.asked) == 1
