"""`--perf-against`: cases in pairs with another arm; what the pairs decide is the test's outcome, everywhere."""

import json
import re

import pytest
from plugin_suite import Suite
from test_plugin_usage import refused

ID = "tiny-fake-fp32-spin-plain"
CELL = ("--model", "tiny", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
RAN = """
honest = together.play


def captured(implementation):
    row = {{"primitive": "convolution", "implementation": implementation, "calls": 17}}
    return {{
        "version": 1, "digest": implementation, "structure": {{"primitives": [row]}}, "times": {{}},
        "unstable": [], "missing": {{}}, "unparsed": [], "seconds": 0.1,
    }}


def looked_at(side):
    ran = captured("brg:avx2" if side.arm.name else "{own}")
    return dataclasses.replace(side, launch=dataclasses.replace(side.launch, fingerprint=ran))


def play(*given):
    played = honest(*given)
    return dataclasses.replace(played, results=tuple(map(looked_at, played.results)))


together.play = play
"""
TOLD = """
import dataclasses
import math
import random

from ipexperf.compare import together
from ipexperf.compare.round import Round, ArmResult
from ipexperf.result import Check, Launch, Sample

CHANCE = random.Random(1)
ENVIRONMENT = {{"machine_key": "fake-1c", "hardware": {{}}, "software": {{}}, "variables": {{}}}}


def side(arm):
    other = arm.name != ""  # what the case is compared with has a name
    time = 1.0 if other else {slower} * math.exp(CHANCE.gauss(0, {spread}))
    checks = (Check("dtype", ok={wrong!r} != ("a" if other else "b"), found="this", expected="that"),)
    samples = (Sample(time, time, 0.0),)
    launch = Launch(arm.index, "ok", samples=samples, metrics={{"step_time": time}}, proof=checks)
    return ArmResult(arm, launch, ENVIRONMENT, ((time,),))


def play(arms, effort, chance, say):
    say(f"a round of {{len(arms)}} arms")
    return Round(tuple(map(side, arms)), "together", "2026-11-22T12:00:00.000+00:00", turns=1)


together.play = play
"""


def told(suite: Suite, slower: float, spread: float = 0.002, wrong: str = "") -> None:
    """Lets rounds be without workers: what becomes of them is looked at."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(TOLD.format(slower=slower, spread=spread, wrong=wrong))


def against(suite: Suite, *more: str, arm: str = "OMP_NUM_THREADS=1") -> pytest.RunResult:
    return suite.raw(*suite.load, *CELL, f"--perf-against={arm}", "--junitxml=junit.xml", *more)


def test_real_workers_are_measured_in_pairs_and_recorded(suite: Suite) -> None:
    """An A/A of two pairs: nothing is claimed, the launches are those of the case, in a series of its own.

    By a tolerance that no chance reaches: a step is some 80 us beside other work here.
    """
    result = against(suite, "--perf-max-pairs", "2", "--perf-tolerance", "90%", arm="")
    result.assert_outcomes(passed=1)
    assert suite.launches() == [("tiny", "ok")] * 2
    assert suite.statuses() == ["finished"]
    found = suite.properties()
    assert found["knob_against"] == "itself"
    assert found["verdict"] in ("inconclusive", "ok")
    assert found["reason"].endswith("both arms are the same (A/A)")
    assert found["accuracy"] == "1"
    assert found["policy"].startswith("pairs-2@")
    asked = "SELECT DISTINCT json_extract(params, '$.knobs.against') FROM launch JOIN 'case' ON \"case\".id = case_id"
    assert suite.query(asked) == [("itself",)]
    assert suite.query("SELECT number FROM round ORDER BY id") == [(1,), (2,)]


def test_a_proven_slowdown_fails_its_test_with_a_readable_block(suite: Suite) -> None:
    """The block, the table, JUnit and the database say the same; the policy is kept with all its constants."""
    told(suite, 1.2)
    result = against(suite)
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    out = result.stdout.str()
    assert re.search(r"^REGRESSED: [\d.]+ % slower: 1.00 -> 1.\d\d s \(.*; 4 pairs\)$", out, re.MULTILINE)
    assert f"  case        {ID}+against:OMP_NUM_THREADS=1 (batch 1)" in out
    assert "  against     OMP_NUM_THREADS=1" in out
    assert "  differs     OMP_NUM_THREADS: 1 -> as it is" in out
    assert "--perf-against=OMP_NUM_THREADS=1" in out
    assert "baseline accept" not in out
    assert "time vs other arm" in out
    assert "Traceback" not in out
    found = suite.properties()
    assert (found["verdict"], found["launches"]) == ("regressed", "4")
    assert 1.15 < float(found["lo"]) < float(found["ratio"]) < float(found["hi"]) < 1.25
    [(outcome, ratio, policy, reason)] = suite.query(
        "SELECT v.outcome, v.ratio, p.doc, v.reason FROM verdict v JOIN policy p ON p.id = v.policy_id"
    )
    assert (outcome, ratio) == ("regressed", pytest.approx(float(found["ratio"]), rel=1e-4))
    assert json.loads(policy)["looks"] == [4, 5, 6, 8, 10, 12, 15, 19, 24]
    assert len(json.loads(reason)["baseline"]["log_ratios"]) == 4


def test_what_the_arms_ran_is_told_in_the_block_and_in_junit(suite: Suite) -> None:
    """A slowdown with its reason: the other arm had another kernel. `show` tells it years later."""
    told(suite, 1.2)
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(RAN.format(own="jit:sse41"))
    result = against(suite)
    result.assert_outcomes(failed=1)
    out = result.stdout.str()
    line = "convolution: brg:avx2 -> jit:sse41 in 17 of 17 calls"
    assert f"    {line}" in out
    assert "STRUCTURE CHANGED (1): these run different kernels than the other arm does" in out
    found = suite.properties()
    assert (found["structure"], found["structure_change"]) == ("changed", line)
    shown = suite.command("show", "last", f"{ID}+against:OMP_NUM_THREADS=1")
    assert line in shown.stdout.str()


def test_an_inconclusive_case_says_what_it_could_see(suite: Suite) -> None:
    told(suite, 1.03, 0.2)
    result = against(suite, "--perf-inconclusive=skip", "--perf-max-pairs", "6", "-rs")
    result.assert_outcomes(skipped=1)
    found = suite.properties()
    assert found["verdict"] == "inconclusive"
    assert float(found["mde"]) > 0.1
    end = "OMP_NUM_THREADS: 1 -> as it is; there were as many pairs as were allowed: 6"
    assert re.match(rf"could not tell: .* is excluded; {end}", found["reason"])
    assert "inconclusive: " in result.stdout.str()


@pytest.mark.parametrize(
    ("wrong", "outcome", "reason"),
    [
        ("a", "failed", "error: the arm of --perf-against: dtype: found this, expected that"),
        ("b", "invalid", "proof failed: dtype: found this, expected that"),
    ],
)
def test_an_arm_that_is_not_what_its_label_says_fails(suite: Suite, wrong: str, outcome: str, reason: str) -> None:
    """A fast and wrong arm is no winner, and a wrong one to compare with is nothing to compare with."""
    told(suite, 1.0, wrong=wrong)
    against(suite).assert_outcomes(failed=1)
    found = suite.properties()
    assert (found["verdict"], found["reason"]) == (outcome, reason)


def test_an_arm_that_cannot_import_ends_the_run_before_anything_is_measured(suite: Suite) -> None:
    """Its packages are there by name, so that only an import can tell."""
    broken = suite.path / "broken.py"
    broken.write_text("import os\n\nif 'ARM' in os.environ:\n    raise ImportError('libthing.so: gone')\n")
    load = f"--perf-load={suite.fake},{broken}"
    result = suite.raw(load, *CELL, "--perf-against", "ARM=1")
    refused(result, "--perf-against: it cannot run plain on fake: ")
    assert "libthing.so: gone" in result.stderr.str()
    assert not (suite.path / "ipexperf.db").exists()


def test_cases_of_one_group_share_their_pairs(suite: Suite) -> None:
    """Both arms of both cases are in each round; what one model runs is in no round with another's."""
    told(suite, 1.2)
    cell = [word if word != "fp32" else "fp32,bf16" for word in CELL]
    result = suite.raw(*suite.load, *cell, "--perf-against=OMP_NUM_THREADS=1")
    result.assert_outcomes(failed=2)
    assert re.findall(r"a round of \d arms", result.stdout.str()) == ["a round of 4 arms"] * 4
    assert suite.launches() == [("tiny", "ok")] * 8
    models = [word if word != "tiny" else "tiny,other" for word in CELL]
    result = suite.raw(*suite.load, *models, "--perf-against=OMP_NUM_THREADS=1", "--perf-without=record")
    assert re.findall(r"a round of \d arms", result.stdout.str()) == ["a round of 2 arms"] * 8


def test_each_test_may_have_a_tolerance_of_its_own(suite: Suite) -> None:
    """Its mark comes before the option. The last verdict on a case that several tests take is the one on record."""
    text = """
        import pytest

        @pytest.mark.perf(tolerance=0.1)
        def test_patient(perf):
            perf()

        @pytest.mark.perf(tolerance=0.04)
        def test_strict(perf):
            perf()

        @pytest.mark.perf
        def test_as_the_option_says(perf):
            perf()
    """
    suite.pytester.makepyfile(test_suite=text)
    told(suite, 1.08)
    result = suite.raw(
        *suite.load, *CELL, "--perf-against=A=1", "--perf-tolerance", "4%", "--perf-alpha", "0.001", "-rpf"
    )
    result.assert_outcomes(passed=1, failed=2)
    assert f"PASSED test_suite.py::test_patient[{ID}]" in result.stdout.str()
    asked = "SELECT v.outcome, p.doc FROM verdict v JOIN policy p ON p.id = v.policy_id"
    [(outcome, document)] = suite.query(asked)
    policy = json.loads(document)
    assert (outcome, policy["tolerance"], policy["alpha"]) == ("regressed", 0.04, 0.001)
    assert suite.launches() == [("tiny", "ok")] * 4
