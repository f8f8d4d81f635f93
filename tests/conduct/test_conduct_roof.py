"""A worker measures the peak rates of a machine once, and each case has its rate and its share of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conduct_play import StandIn

from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.roof import Roofs, counted_work, with_share
from ipexperf.errors import WorkerError
from ipexperf.result import Launch

CASE = NetworkCase("tiny", "cpu", "fp32", "infer", "stock", 8, 8)
ENVIRONMENT: dict[str, Any] = {
    "machine_key": "box-2c",
    "software": {"torch": "2.8.0"},
    "variables": {"OMP_WAIT_POLICY": "PASSIVE", "TORCHINDUCTOR_CACHE_DIR": "now"},
}
WORK = {"work": {"items": 8, "step_flops": 8e9}}
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
        return {"peaks": {"fp32": 1e11}}


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
    assert said == ["measuring the peak rates of cpu"]


def test_peaks_that_cannot_be_measured_are_told_once_and_cost_no_case(
    roofs: Roofs, worker: Measuring, said: list[str], conditions: Conditions
) -> None:
    worker.fails = WorkerError("error", "RuntimeError: no peak today")
    for _ in range(2):
        [found] = roofs.with_shares([DONE], CASE, conditions, ENVIRONMENT)
        assert found.metrics == {"throughput": 50.0, "flop_rate": pytest.approx(5e10)}
    assert said[1:] == ["there is no roof: measuring the peak rates of cpu: RuntimeError: no peak today"]


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
    roofs: Roofs, worker: Measuring, conditions: Conditions
) -> None:
    """The share of the roof is to show its effect. A temporary folder in a variable is no other machine either."""
    roofs.with_shares([DONE], CASE, conditions, ENVIRONMENT)
    limits = {"ONEDNN_MAX_CPU_ISA": "SSE41", "TORCHINDUCTOR_CACHE_DIR": "later"}
    limited = {**ENVIRONMENT, "variables": {**ENVIRONMENT["variables"], **limits}}
    roofs.with_shares([DONE], CASE, conditions, limited)
    assert len(worker.asked) == 1


def test_the_share_follows_from_items_per_second_and_not_from_the_step_time() -> None:
    """The step time does not show the throughput of several instances or ranks. 1e11 of 2e11 operations: half."""
    launch = Launch(0, "ok", metrics={"step_time": 1.0, "throughput": 100.0})
    found = with_share(launch, WORK["work"], 2e11).metrics
    assert (found["flop_rate"], found["of_roof"]) == (pytest.approx(1e11), pytest.approx(0.5))


def test_ranks_on_cards_have_the_roof_of_all_their_cards(roofs: Roofs, conditions: Conditions) -> None:
    ranks = replace(CASE, mode="train_ddp", knobs=(("ranks", "2"),))
    [found] = roofs.with_shares([DONE], ranks, replace(conditions, accelerator=True), ENVIRONMENT)
    assert found.metrics["of_roof"] == pytest.approx(0.25)


def test_a_dtype_that_the_device_does_not_multiply_has_a_rate_and_no_share(
    roofs: Roofs, conditions: Conditions
) -> None:
    [found] = roofs.with_shares([DONE], replace(CASE, dtype="int8"), conditions, ENVIRONMENT)
    assert found.metrics["flop_rate"] == pytest.approx(5e10)
    assert "of_roof" not in found.metrics


def test_any_launch_may_have_the_counted_work() -> None:
    """Of a pair only the first launch is captured, and an old fingerprint has no count."""
    old = Launch(0, "ok", fingerprint={"digest": "abc"})
    assert counted_work([Launch(1, "ok"), old]) is None
    assert counted_work([Launch(1, "ok"), old, DONE]) == WORK["work"]
    unknown = {"work": {"items": 8, "step_flops": 0}}
    assert counted_work([replace(DONE, fingerprint={"beside": unknown})]) is None
