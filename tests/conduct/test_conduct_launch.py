"""The figures of a launch: what is made of its samples."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import loading, registry
from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.conduct import launch
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan.options import Options
from ipexperf.proof import fingerprint
from ipexperf.result import Launch, Measurement, Sample

CASE = NetworkCase("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0], 0.5, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([float(n) for n in range(1, 11)], 0.9, 9.0),
        ([float(n) for n in range(1, 12)], 0.9, 10.0),
        ([1.0, 2.0], 1.0, 2.0),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_the_percentile_is_the_nearest_rank(values: list[float], share: float, expected: float) -> None:
    """The percentile is the smallest value that the share of all values reaches."""
    assert launch.percentile(values, share) == expected


@pytest.mark.parametrize(
    ("cpu", "delay", "accelerator", "noted"),
    [(0.03, 0.0, False, True), (0.03, 0.9, False, False), (1.9, 0.0, False, False), (0.03, 0.0, True, False)],
)
def test_a_step_that_mostly_waits_has_a_note(*, cpu: float, delay: float, accelerator: bool, noted: bool) -> None:
    """Such as a network that sleeps, but not one that waits for a busy core or for an accelerator."""
    samples = [Sample(1.0, cpu, delay)] * 3
    found = launch.with_wait_note(Launch(0, "ok"), samples, Conditions(Settings(), accelerator=accelerator))
    note = "mostly waited in its steps: its process used 3 % of one core"
    assert found.notes == ((note,) if noted else ())


def test_metrics_of_samples_are_in_base_units() -> None:
    """Step and CPU time are medians of the samples. Throughput is items over the mean, in which stalls count."""
    walls = (0.010, 0.020, 0.030, 0.020, 0.020, 0.020, 0.040)
    samples = [Sample(wall, 2 * wall, 0.0) for wall in walls]
    assert launch.of_samples(samples, items=8) == pytest.approx(
        {
            "step_time": 0.020,
            "mean_step": 0.16 / 7,
            "throughput": 8 * 7 / 0.16,
            "p50": 0.020,
            "p90": 0.040,
            "cpu_time": 0.040,
        }
    )


class FakeWorker:
    """A worker that proves nothing."""

    def __init__(self, accuracy: dict[str, Any] | None = None) -> None:
        self._replies = {
            "accuracy": accuracy or {},
            "proof": {"checks": [], "metrics": {"library_memory": 5.0}, "notes": [], "emulated": False},
            "fingerprint": {"fingerprint": None, "metrics": {"step_kernels": 0.0}},
        }

    def ask(self, do: str) -> dict[str, Any]:
        return self._replies[do]

    def log(self) -> str:
        return ""


def test_a_launch_of_a_mode_without_a_check_is_not_proven() -> None:
    """A user's mode may return no check. Its numbers then do not count."""
    told: Any = FakeWorker()
    done = launch.with_proof(told, Launch(0, "ok"))
    assert [(check.name, check.ok) for check in done.proof] == [("dtype", False)]
    assert done.metrics == {"library_memory": 5.0, "step_kernels": 0.0}


@pytest.mark.parametrize("checks", [[], [{"name": "bleu", "ok": True, "found": "27", "expected": "27"}]])
def test_a_launch_of_a_mode_without_a_check_of_results_is_not_accurate(checks: list[dict[str, Any]]) -> None:
    """Metrics alone do not show that results are right."""
    told: Any = FakeWorker({"metrics": {"bleu": 27.0}, "checks": checks})
    measured = Measurement(CASE, (launch.with_accuracy(told, Launch(0, "ok")),), {}, started_at="", finished_at="")
    wrong = "accuracy failed: accuracy: found not checked, expected a check of the results by the mode"
    assert measured.invalid == ("" if checks else wrong)
    assert measured.median("bleu") == 27.0


def test_the_counts_of_a_step_are_those_of_its_fingerprint() -> None:
    """A count of 0 is recorded. One that differed between two captures is left out."""
    memory = {"allocations": 0, "allocated": 0, "peak": 0}
    seen = {"beside": {"memory": memory, "counts": {"operators": 12, "kernels": 0}}}
    assert fingerprint.metrics(seen) == {
        "step_memory": 0.0,
        "step_allocations": 0.0,
        "step_operators": 12.0,
        "step_kernels": 0.0,
    }
    assert fingerprint.metrics({"beside": {"python": {"calls": 70}}}) == {"step_python_calls": 70.0}


def figures(count: int) -> dict[str, float]:
    return launch.of_samples([Sample(float(number), 0.0, 0.0) for number in range(1, count + 1)], items=1)


def test_a_p99_needs_662_samples() -> None:
    """It is the sample of that rank. One sample has no percentile at all."""
    assert "p99" not in figures(661)
    assert figures(662)["p99"] == 656.0
    assert figures(1000)["p99"] == 990.0
    assert not {"p50", "p90"} & set(figures(1))


@pytest.mark.process
@pytest.mark.parametrize("waiting", [False, True])
def test_only_steps_that_follow_one_another_become_slower(
    *, waiting: bool, fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of a case says so, but not of requests, which may wait longer."""
    loading.load([fake])
    monkeypatch.setattr(type(registry.modes.get(CASE.mode)), "requests", waiting)
    slower = tuple(Sample(0.01 * 1.05**number, 0.01, 0.0) for number in range(20))
    launches = [replace(Launch(0, "ok", samples=slower), index=index) for index in range(3)]
    found = Conductor(Options(load=(fake,)), tmp_path, lambda _: None).measurement(CASE, launches, {}, "now")
    assert [bool(launch.notes) for launch in found.launches] == [not waiting] * 3
