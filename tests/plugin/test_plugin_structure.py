"""What ran is held against the baseline beside the speed: a warning, or a failed test if it can only cost time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from plugin_suite import SHORT

if TYPE_CHECKING:
    from plugin_suite import Suite

pytestmark = pytest.mark.process

ID = "tiny-fake-fp32-looked_at-plain"
FUSED = {"ipex_prepack::convolution_relu_run": 17}
ALONE = {"aten::_convolution": 17, "aten::relu": 17}
MORE = {"ipex_prepack::convolution_relu_run": 18}
TOLD = "relu no longer fused: 17 relu alone (17 -> 0 fused)"


class Looked:
    """Runs one case whose structure the test chooses."""

    def __init__(self, suite: Suite) -> None:
        self.suite, self.path = suite, suite.path / "ran.json"

    def run(self, ran: dict[str, int], *arguments: str) -> pytest.RunResult:
        self.path.write_text(json.dumps(ran))
        load = (f"--perf-load={self.suite.fake},{Path(self.suite.fake).with_name('looked_at.py')}",)
        cell = ("--device", "fake", "--dtype", "fp32", "--mode", "looked_at", "--stack", "plain")
        return self.suite.raw(*load, "--model", "tiny", *cell, *SHORT, "--perf-launches", "2", *arguments)

    def told(self, *arguments: str) -> str:
        """What the command says, in a process of its own: pytester forgets what was imported here."""
        found = self.suite.command(*arguments)
        assert found.ret == 0, found.stderr.str()
        return found.stdout.str()


@pytest.fixture
def looked(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Looked:
    monkeypatch.setenv("FAKE_RAN", str(suite.path / "ran.json"))
    monkeypatch.chdir(suite.path)
    return Looked(suite)


def structures(suite: Suite) -> list[str]:
    return [json.loads(told)["structure"]["outcome"] for (told,) in suite.verdicts("reason", "v.rowid")]


def test_a_changed_structure_is_a_line_and_fails_where_it_was_asked_to(looked: Looked) -> None:
    """Accepted, the same, changed: the summary, the block, JUnit, `show` and `why` say what, and only `fail` fails."""
    looked.run(FUSED).assert_outcomes(passed=1)
    looked.told("baseline", "accept", "last", "--reason", "first light")
    (path,) = (looked.suite.path / "baselines").glob("*.json")
    (entry,) = json.loads(path.read_text())["cases"]
    assert entry["fingerprint"].startswith("1:")

    same = looked.run(FUSED)
    same.assert_outcomes(passed=1)
    assert "STRUCTURE" not in same.stdout.str()

    warned = looked.run(MORE, "--junitxml=junit.xml")
    warned.assert_outcomes(passed=1)
    assert "STRUCTURE CHANGED (1): these run different kernels than their baseline did" in warned.stdout.str()
    names = [x.get("value") for x in ET.parse("junit.xml").getroot().iter("property") if x.get("name") == "structure"]  # noqa: S314 - our own file
    assert names == ["changed"]

    failed = looked.run(MORE, "--perf-structure", "fail")
    failed.assert_outcomes(failed=1)
    assert failed.ret == 1
    told = failed.stdout.str()
    assert "WHAT RAN CHANGED" in told
    assert "what ran    changed (--perf-structure fail)" in told


def test_a_lost_optimisation_fails_unless_it_is_only_to_be_warned_of(looked: Looked) -> None:
    """It needs no clock: the summary, the block, JUnit, `show` and `why` say what was lost."""
    looked.run(FUSED).assert_outcomes(passed=1)
    looked.told("baseline", "accept", "last", "--reason", "first light")
    looked.run(FUSED).assert_outcomes(passed=1)

    warned = looked.run(ALONE, "--perf-structure", "warn", "--junitxml=junit.xml")
    warned.assert_outcomes(passed=1)
    text = " ".join(warned.stdout.str().split())
    assert "OPTIMISATIONS LOST (1): these run what can only cost time" in text
    assert f"{ID}: a fusion lost: {TOLD}" in text
    properties = [(x.get("name"), x.get("value")) for x in ET.parse("junit.xml").getroot().iter("property")]  # noqa: S314 - our own file
    assert ("structure_loss", f"a fusion lost: {TOLD}") in properties

    failed = looked.run(ALONE)
    failed.assert_outcomes(failed=1)
    assert failed.ret == 1
    told = failed.stdout.str()
    assert "AN OPTIMISATION WAS LOST" in told
    assert f"lost        a fusion lost: {TOLD}" in told
    assert structures(looked.suite) == ["unknown", "same", "changed", "changed"]

    shown = looked.told("why", "last", ID)
    assert "structure: changed" in shown
    assert TOLD in shown
    assert TOLD in looked.told("why", "last", ID, "--against", "last~3")
    assert "structure: same" in looked.told("why", "last~2", ID)
    assert f"{ID} ran " in looked.told("show", "last")


def test_a_structure_that_is_random_never_fails(looked: Looked) -> None:
    """It is said to be unstable, is accepted without a digest, and gates nothing."""
    looked.run({"random": 1}, "--perf-structure", "fail").assert_outcomes(passed=1)
    looked.told("baseline", "accept", "last", "--reason", "first light")
    (path,) = (looked.suite.path / "baselines").glob("*.json")
    assert "fingerprint" not in json.loads(path.read_text())["cases"][0]
    again = looked.run({"random": 1}, "--perf-structure", "fail")
    again.assert_outcomes(passed=1)
    assert f"STRUCTURE UNSTABLE (1): the kernels differ from step to step: {ID}" in again.stdout.str()
