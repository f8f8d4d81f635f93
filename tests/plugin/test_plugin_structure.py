"""What ran is held against the baseline beside the speed: a warning, or a failed test if it can only cost time."""

import json
from typing import Any

import pytest
from plugin_suite import LookedAt, Suite

pytestmark = pytest.mark.process

ID = "tiny-fake-fp32-looked_at-plain"
FUSED = {"ipex_prepack::convolution_relu_run": 17}
ALONE = {"aten::_convolution": 17, "aten::relu": 17}
MORE = {"ipex_prepack::convolution_relu_run": 18}
TOLD = "relu no longer fused: 17 relu alone (17 -> 0 fused)"


def structures(suite: Suite) -> list[str]:
    return [json.loads(told)["structure"]["outcome"] for (told,) in suite.verdicts("reason", "v.rowid")]


def accepted(looked: LookedAt, ran: dict[str, int]) -> dict[str, Any]:
    """Runs this twice and accepts it. Returns what its baseline says."""
    looked.run(ran, "--perf-launches", "2").assert_outcomes(passed=1)
    looked.told("baseline", "accept", "last", "--reason", "first light")
    (path,) = (looked.suite.path / "baselines").glob("*.json")
    (entry,) = json.loads(path.read_text())["cases"]
    return dict(entry)


def test_a_change_is_a_line_and_a_lost_optimisation_fails_unless_the_user_wants_it_otherwise(looked: LookedAt) -> None:
    """It needs no clock: the summary, the block, JUnit and `show` say what changed, and what was lost."""
    assert accepted(looked, FUSED)["fingerprint"].startswith("1:")
    same = looked.run(FUSED)
    same.assert_outcomes(passed=1)
    assert "STRUCTURE" not in same.stdout.str()

    warned = looked.run(MORE)
    warned.assert_outcomes(passed=1)
    assert "STRUCTURE CHANGED (1): these run different kernels than their baseline did" in warned.stdout.str()
    assert looked.suite.properties()["structure"] == "changed"
    failed = looked.run(MORE, "--perf-structure", "fail")
    failed.assert_outcomes(failed=1)
    assert "WHAT RAN CHANGED" in failed.stdout.str()

    warned = looked.run(ALONE, "--perf-structure", "warn")
    warned.assert_outcomes(passed=1)
    text = " ".join(warned.stdout.str().split())
    assert "OPTIMISATIONS LOST (1): these run what can only cost time" in text
    assert f" lost: a fusion lost: {TOLD}" in text
    junit = (looked.suite.path / "junit.xml").read_text()
    assert 'name="structure_loss" value="a fusion lost: relu no longer fused' in junit
    failed = looked.run(ALONE)
    failed.assert_outcomes(failed=1)
    assert failed.ret == 1
    assert "AN OPTIMISATION WAS LOST" in failed.stdout.str()
    assert f"  besides     lost: a fusion lost: {TOLD}" in failed.stdout.str()
    assert structures(looked.suite) == ["unknown", "same", *["changed"] * 4]

    shown = looked.told("show", "last", ID)
    assert "structure: changed" in shown
    assert TOLD in shown
    assert "\n  ran " in shown
    assert TOLD in looked.told("show", "last", ID, "--against", "last~5")
    assert "structure: same" in looked.told("show", "last~4", ID)


def test_a_structure_that_is_random_never_fails(looked: LookedAt) -> None:
    """It is said to be unstable, is accepted without a digest, and gates nothing."""
    assert "fingerprint" not in accepted(looked, {"random": 1})
    again = looked.run({"random": 1}, "--perf-structure", "fail")
    again.assert_outcomes(passed=1)
    assert f"STRUCTURE UNSTABLE (1): the kernels differ from step to step: {ID}" in again.stdout.str()
