"""The share of the roof: in the table, in `show`, in JUnit and in the history, and nowhere where it is not known."""

import json
import re

import pytest
from plugin_suite import LookedAt

pytestmark = pytest.mark.process

ID = "tiny-fake-fp32-looked_at-plain"
WORK = {"items": 1, "step_flops": 10**6}


@pytest.fixture
def roofed(looked: LookedAt, monkeypatch: pytest.MonkeyPatch) -> LookedAt:
    monkeypatch.setenv("FAKE_WORK", json.dumps(WORK))
    return looked


def test_the_share_of_the_roof_is_told_everywhere(roofed: LookedAt) -> None:
    """A column of the table, a line of `show`, properties of JUnit, series of the history."""
    result = roofed.run({})
    result.assert_outcomes(passed=1)
    header = next(line for line in result.outlines if line.startswith("case "))
    row = next(line for line in result.outlines if line.startswith(f"{ID} "))
    assert header.split()[:5] == ["case", "batch", "step", "items/s", "roof"]
    assert re.search(r" \d+ % +acc ", row), row
    assert "roof: share of the highest rate that was measured here in this dtype" in result.stdout.str()
    shown = roofed.told("show", "last", ID)
    assert "\n  did " in shown
    assert "of the roof of 1.00 TFLOP/s" in shown
    found = roofed.suite.properties()
    assert 0 < float(found["of_roof"]) == pytest.approx(float(found["flop_rate"]) / 1e12, rel=1e-4)
    assert ID in roofed.told("trend", "--metric", "of_roof")


def test_peak_rates_that_were_measured_again_make_no_other_environment(
    roofed: LookedAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are numbers of a moment: environments are by content, and series by machine."""
    paths = []
    for folder, peak in (("one", "1e12"), ("two", "2e12")):
        monkeypatch.setenv("FAKE_PEAK", peak)
        roofed.run({}, f"--perf-cache={folder}")
        paths.append(next((roofed.suite.path / folder / "peaks").glob("*.json")))
    assert paths[0].name == paths[1].name
    assert paths[0].read_text() != paths[1].read_text()
    assert roofed.suite.query("SELECT count(*) FROM environment") == [(1,)]
    assert roofed.suite.query("SELECT count(*) FROM series WHERE metric = 'of_roof'") == [(1,)]
    assert roofed.suite.query("SELECT count(*) FROM run") == [(2,)]


def test_without_a_roof_there_is_no_column_and_no_share(roofed: LookedAt) -> None:
    result = roofed.run({}, "--perf-without=roof")
    result.assert_outcomes(passed=1)
    assert " roof " not in next(line for line in result.outlines if line.startswith("case "))
    assert roofed.suite.query("SELECT count(*) FROM series WHERE metric IN ('of_roof', 'flop_rate')") == [(0,)]


def test_peak_rates_that_cannot_be_measured_cost_no_case(roofed: LookedAt, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate is there, and the run says why it is a share of nothing."""
    monkeypatch.setenv("FAKE_PEAKS", "none")
    result = roofed.run({})
    result.assert_outcomes(passed=1)
    assert "there is no roof: measuring the peak rates of fake: RuntimeError: no peak today" in result.stdout.str()
    assert "with no roof" in roofed.told("show", "last", "--full")
