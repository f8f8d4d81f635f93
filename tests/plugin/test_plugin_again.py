"""A case that looks slower is measured again at the end of the run, in the same test, and only then reported."""

import re
import xml.etree.ElementTree as ET

import pytest
from plugin_suite import CELL, Suite

JUDGED = """
from ipexperf.judge import screen
from ipexperf.ratio import Ratio
from ipexperf.verdict import BaselineEvidence, Verdict

LOOKS = []
EVIDENCE = BaselineEvidence(
    **dict.fromkeys(("run", "commit", "started_at", "accepted_at", "accepted_by", "reason"), "first"),
    step_time=0.001,
    sessions=5,
    between_sessions_known=True,
)
NUMBERS = {{"ratio": Ratio(1.2, 1.1, 1.3), "p_value": 0.004}}


def judge(measurement, baseline, policy):
    # What there is after each round is judged as well: another look is one at other launches.
    told = {said}
    said = told.get(measurement.case.model) or told.get(measurement.case.dtype) or ["ok"]
    look = int(measurement.launches[0].index > 0)
    if (measurement.case.id, look) not in LOOKS:
        LOOKS.append((measurement.case.id, look))
        print("looked at", measurement.case.model)
    outcome = said[min(look, len(said) - 1)]
    return Verdict(outcome, "so it is", **NUMBERS, policy=policy.label, evidence=EVIDENCE)


screen.judge = judge
"""


def judged(suite: Suite, **said: list[str]) -> None:
    """Lets the judge say this of a model, or of a dtype, at its first look, its second, ..."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(JUDGED.format(said=said))


def looks(result: pytest.RunResult) -> list[str]:
    return re.findall(r"looked at (\w+)", result.stdout.str())


def test_what_is_slow_twice_fails_once(suite: Suite) -> None:
    """After the other case, in twice as many fresh processes; pytest counts one test; its block has all launches."""
    suite.without_workers()
    judged(suite, tiny=["regressed", "regressed"])
    result = suite.run("tiny,other", "-s", "--junitxml=junit.xml")
    result.assert_outcomes(passed=1, failed=1)
    assert looks(result) == ["tiny", "other", "tiny"]
    assert [model for model, _ in suite.launches()] == ["other", "tiny", "tiny", "tiny"]
    assert "measured twice in this run: +20.0 % at first" in " ".join(result.outlines)
    suites = ET.parse(suite.path / "junit.xml").getroot()  # noqa: S314 - written just now
    assert sorted(len(one) > 0 and one.find("failure") is not None for one in suites.iter("testcase")) == [False, True]


def test_what_looks_slower_of_a_group_is_measured_again_in_rounds_of_its_own(suite: Suite) -> None:
    """Two of three cases: they meet once more after all cases, and the third one's launches are not repeated."""
    suite.without_workers()
    judged(suite, bf16=["regressed", "regressed"], fp16=["regressed", "ok"])
    three = (*CELL[:2], "--dtype", "fp32,bf16,fp16", *CELL[4:])
    result = suite.run("tiny,other", "-k", "tiny or fp32", "--perf-preset", "preflight", cell=three)
    result.assert_outcomes(passed=3, failed=1, deselected=2)
    told = result.stdout.str()
    rounds = re.findall(r"(\w+) fake infer 1x1 none: (round \d of \d, \d cases?)", told)
    assert rounds == [
        ("tiny", "round 1 of 1, 3 cases"),
        ("other", "round 1 of 1, 1 case"),
        ("tiny", "round 1 of 2, 2 cases"),
        ("tiny", "round 2 of 2, 2 cases"),
    ]
    assert told.count("it looks slower, and is measured again after the other cases") == 2
    launches = suite.query(
        "SELECT c.model, c.dtype, count(*) FROM launch l JOIN 'case' c ON c.id = l.case_id GROUP BY c.id"
    )
    assert sorted(launches) == [("other", "fp32", 1), ("tiny", "bf16", 3), ("tiny", "fp16", 3), ("tiny", "fp32", 1)]
    seats = suite.query("SELECT s.launch FROM seat s JOIN round r ON r.id = s.round_id ORDER BY r.id, s.launch")
    assert [launch for (launch,) in seats] == [0, 0, 0, 1, 1, 2, 2]
    found = suite.query("SELECT outcome, count(*) FROM verdict GROUP BY outcome ORDER BY outcome")
    assert found == [("inconclusive", 1), ("ok", 2), ("regressed", 1)]


def outcomes(suite: Suite) -> list[str]:
    return [outcome for (outcome,) in suite.query("SELECT outcome FROM launch ORDER BY launch")]


def test_what_the_machine_disturbed_is_measured_again_after_the_others(suite: Suite) -> None:
    """A busy minute: the case is valid in the end, with one good launch, and pytest counts one test."""
    suite.busy(2)
    result = suite.run("tiny,other", "-s", "--junitxml=junit.xml")
    result.assert_outcomes(passed=2)
    told = result.stdout.str()
    said = "tiny-fake-fp32-spin-plain: the machine was busy: disturbed launches are measured again after the other"
    assert told.index(said) < told.index("other fake infer 1x1 none: round 1 of 1, 1 case")
    assert [model for model, _ in suite.launches()] == ["other", "tiny", "tiny", "tiny"]
    assert sorted(outcomes(suite)) == ["contended", "contended", "ok", "ok"]
    assert suite.query("SELECT DISTINCT outcome FROM verdict") == [("no_baseline",)]
    assert suite.query("SELECT n FROM measurement m JOIN series s ON s.id = series_id WHERE metric = 'accuracy'") == [
        (1,),
        (1,),
    ]
    suites = ET.parse(suite.path / "junit.xml").getroot()  # noqa: S314 - written just now
    assert len(list(suites.iter("testcase"))) == 2


@pytest.mark.parametrize(
    ("word", "status", "outcome"),
    [("fail", 1, "failed"), ("exit", 125, "passed")],
)
def test_a_machine_that_stays_busy_fails_nothing_unless_it_is_asked_to(
    suite: Suite, word: str, status: int, outcome: str
) -> None:
    """Four tries, two of them after the other cases; then it is invalid. A run of nothing else says so aloud."""
    suite.busy(99)
    result = suite.run("tiny", "-q", "--perf-inconclusive", word)
    result.assert_outcomes(**{outcome: 1})
    assert result.ret == status
    assert "COULD NOT TELL 1 of 1: 1 measured on a busy machine" in result.stdout.str()
    assert "  measuring 1 case" in result.errlines
    assert "again, " not in result.stdout.str()
    assert "  tiny-fake-fp32-spin-plain: again, " in result.stderr.str()
    assert outcomes(suite) == ["contended"] * 3 + ["ok"]
    assert suite.query("SELECT outcome FROM verdict") == [("invalid",)]
    assert "ipexperf: 1 case: 1 contended" in result.outlines


@pytest.mark.parametrize(("why", "outcome"), [("slow", "inconclusive"), ("disturbed", "invalid")])
def test_what_waits_to_be_measured_again_is_kept_where_the_run_ends_too_early(
    why: str, outcome: str, suite: Suite
) -> None:
    """By -x, or by SIGKILL, when nobody can write anything down any more. The launches are on record, and no number of
    them is good."""
    if why == "slow":
        judged(suite, tiny=["regressed"], wrong=["invalid"])
    else:
        suite.busy(2)
    stopped = suite.run("tiny,wrong", "-s", "-x", "--perf-db=stopped.db")
    assert stopped.ret == 1
    assert "INTERNALERROR" not in stopped.stdout.str()
    asked = 'SELECT v.outcome FROM verdict v JOIN series s ON s.id = v.series_id JOIN "case" c ON c.id = s.case_id '
    assert suite.query(f"{asked} WHERE c.model = 'tiny'", "stopped.db") == [(outcome,)]
    with suite.start("tiny,hang") as process:
        suite.pids()
        process.kill()
        process.communicate(timeout=30)
    assert {model for model, _ in suite.launches()} == {"tiny"}
    assert suite.query("SELECT outcome FROM verdict") == [(outcome,)]
    assert suite.statuses() == ["running"]
