"""A launch that is timed cold, what a session tells beside its samples, and which percentiles there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conduct_play
import pytest

from ipexperf.bench.api import Settings
from ipexperf.case import Case
from ipexperf.conduct import launch
from ipexperf.conduct.conditions import Conditions
from ipexperf.result import METRICS, Sample

if TYPE_CHECKING:
    from ipexperf.result import Launch

pytestmark = pytest.mark.process

COLD = str(Path(__file__).parents[1] / "fakes" / "cold.py")


def launched(fake: str, mode: str) -> Launch:
    """One launch, of which twenty samples were asked for."""
    conditions = Conditions(Settings(load=(fake, COLD)), timeout=30, samples=20, seconds=0.05)
    case = Case("tiny", "fake", "fp32", mode, "plain", 1, 1, data="none")
    return conduct_play.launch(case, 0, conditions, accuracy=True)[0]


def test_a_cold_mode_is_sampled_once_and_nothing_is_warmed_up(fake: str, asked: list[str]) -> None:
    """Whatever the options ask for: one sample of the first step of the process, without percentiles."""
    done = launched(fake, "start")
    assert (done.outcome, len(done.samples), done.block) == ("ok", 1, 1)
    assert [(check.name, check.ok) for check in done.proof] == [("dtype", True), ("cold", True)]
    assert asked.count("sample") == 1
    assert "warm" not in asked
    assert {"others", "steal", "run_delay"} <= set(done.gate)
    assert done.metrics["step_time"] == done.samples[0].wall
    assert not {"p50", "p90", "p99", "warm_time"} & set(done.metrics)
    assert done.metrics["import_time"] > 0
    # What the mode itself tells:
    assert (done.metrics["build_time"], done.metrics["first_inference"]) == (0.25, 0.5)
    assert done.notes == ("it was cold",)
    assert set(done.metrics) <= set(METRICS)


def figures(count: int, block: int = 1) -> dict[str, float]:
    samples = [Sample(float(number), 0.0, 0.0) for number in range(1, count + 1)]
    return launch.figures(samples, {"items": 1, "block": block, "peak_memory": 0})


def test_a_p99_needs_662_samples() -> None:
    """It is the sample of that rank. One sample has no percentile at all."""
    assert "p99" not in figures(661)
    assert figures(662)["p99"] == 656.0
    assert figures(1000)["p99"] == 990.0
    assert not {"p50", "p90"} & set(figures(1))
