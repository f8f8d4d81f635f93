"""The mode load, run as a user runs it. Needs torch."""

import shutil

import pytest
from plugin_suite import PLUGIN, ROOT, Suite

EXAMPLES = ROOT / "docs" / "how-to" / "examples"
PATIENCE = 300
"""Workers that import torch may have to share their cores with other tests."""


@pytest.mark.torch
def test_a_cold_start_is_launched_as_often_as_asked_and_kept_in_its_phases(torch_suite: Suite) -> None:
    """Two launches are two samples; the history has a series for each phase, and none for percentiles."""
    shutil.copy(EXAMPLES / "test_tinynet.py", torch_suite.path / "test_suite.py")
    chosen = (f"--perf-load={EXAMPLES / 'tinynet.py'}", "--model", "tinynet", "--mode", "load", "--stack", "stock")
    more = ("--device", "cpu", "--dtype", "fp32", "--perf-launches", "2", "--perf-without=roof")
    torch_suite.pytester.runpytest_subprocess(*PLUGIN, *chosen, *more, timeout=PATIENCE).assert_outcomes(passed=1)
    counts = dict(torch_suite.query("SELECT s.metric, m.n FROM measurement m JOIN series s ON s.id = m.series_id"))
    phases = ("build_time", "optimise_time", "trace_time", "first_inference", "import_time", "step_time")
    assert {name: counts.get(name) for name in phases} == dict.fromkeys(phases, 2)
    assert not {"p50", "p90", "p99", "warm_time"} & set(counts)
    assert torch_suite.launches() == [("tinynet", "ok")] * 2
