"""A run as a whole: its cases share one alarm rate, what they say together is kept, and a budget may end it."""

import json
import math
import re
import sqlite3
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_rounds import played
from plugin_suite import CELL, Suite
from test_plugin_again import judged

from ipexperf.history import History
from ipexperf.judge import baseline as baselines
from ipexperf.judge.baseline import Baselines, CaseBaseline, Session
from ipexperf.judge.policy import Policy
from ipexperf.judge.spread import usual_noise
from ipexperf.plan.options import Options
from ipexperf.run import Run

ID = "{}-fake-fp32-spin-plain"
SIX = (*CELL[:2], "--dtype", "fp32,bf16,fp16", *CELL[4:])
"""With two models these are six cases: enough for a platform."""
ENVIRONMENT: dict[str, Any] = {"machine_key": "fake-1c", "hardware": {}, "software": {}, "variables": {}}


def settled(suite: Suite) -> dict[str, Any]:
    [(meta,)] = suite.query("SELECT meta FROM run")
    document: dict[str, Any] = json.loads(meta)["settled"]
    return document


def newest(suite: Suite) -> list[str]:
    """The outcome that is shown of each case."""
    with History.open(suite.path / "ipexperf.db", create=False) as history:
        return [recorded.outcome for recorded in history.measurements("last")]


def of_suite(suite: Suite) -> dict[str, str]:
    """What the JUnit file says of the whole suite, which a test's failure does not."""
    found = ET.parse(suite.path / "junit.xml").getroot().findall("testsuite/properties/property")  # noqa: S314 - our own
    return {element.attrib["name"]: element.attrib["value"] for element in found}


@pytest.fixture
def run(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of twelve cases that are never launched: what each takes is made up."""
    axes: dict[str, Any] = {"device": ("fake",), "mode": ("spin",), "stack": ("plain",)}
    axes |= {"model": ("tiny", "other", "wrong", "slow"), "dtype": ("fp32", "bf16", "fp16")}
    axes |= {"launches": 2, "preset": "preflight", "without": ("roof",)}
    options = Options(**axes, load=(fake,), db=str(tmp_path / "r.db"), baselines=tmp_path / "baselines")
    played(monkeypatch, lambda _: 0.01, environment=ENVIRONMENT)
    return Run(options, tmp_path, lambda _: None)


def accept(run: Run, count: int) -> None:
    """Gives the first of the run's cases a baseline each, and one to a case that is not in the run's plan."""
    session = Session("run0", "2026-01-01T00:00:00+00:00", "", (0.01, 0.01))
    other = run.plan.cases[0].to_json() | {"batch": 99}
    cases = [*run.plan.cases[:count], type(run.plan.cases[0]).from_json(other)]
    known = [CaseBaseline(case, (session,), {}, "first", "ada", "2026-01-01", None, ENVIRONMENT) for case in cases]
    baselines.write(run.options.baselines, Baselines("fake-1c", tuple(known)))


@pytest.mark.process
def test_the_cases_that_have_a_baseline_share_the_alarm_rate(run: Run) -> None:
    """The share is known before the first verdict and kept with each. A baseline that somebody accepts meanwhile does
    not make two verdicts of one run differ in strictness."""
    accept(run, 12)
    run.open((), lambda _: False)
    first, *others = run.plan.cases
    verdicts = [run.measure(first)[1]]
    accept(run, 1)
    verdicts += [run.measure(case)[1] for case in others]
    run.finish("finished")
    launches = [math.log(0.01)] * 2
    expected = usual_noise([[launches]] * 13, Policy().shared(12))
    assert [verdict.policy for verdict in verdicts] == [expected.label] * 12
    with closing(sqlite3.connect(run.options.db)) as connection:
        [(document,)] = connection.execute("SELECT doc FROM policy").fetchall()
    assert json.loads(document) == expected.to_json()
    assert expected.alpha == pytest.approx(0.05 / 12)


def test_a_run_that_fails_as_a_whole_ends_with_1_though_no_test_failed(suite: Suite) -> None:
    """No case is beyond its share, all are together: one headline says so, and it is kept for every case."""
    suite.without_workers()
    judged(suite, tiny=["inconclusive"], other=["inconclusive"])
    result = suite.run("tiny,other", "--junitxml=junit.xml", cell=SIX)
    result.assert_outcomes(passed=6, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    out = result.stdout.str()
    headline = "platform shift: the median of 6 stable cases is 20.0 % slower than its baseline (6 cases moved with it)"
    assert out.count(headline) == 1
    assert of_suite(suite) == {"run_fails": "yes", "run_says": headline}
    assert out.index(headline) < out.index("THE RUN FAILS: no test failed") < out.index("time vs baseline")
    assert "PLATFORM SHIFT (6): moved together with the whole run" in out
    assert newest(suite) == ["platform_shift"] * 6
    whole = settled(suite)
    assert whole == {
        "line": headline,
        "shift": pytest.approx(1.2),
        "fails": True,
        "slower": [],
        "spoilt": False,
        "dossiers": {},
    }
    policies = suite.query("SELECT v.outcome, p.doc FROM verdict v JOIN policy p ON p.id = v.policy_id")
    by_outcome = {outcome: json.loads(document) for outcome, document in policies}
    assert by_outcome == {"inconclusive": Policy().to_json(), "platform_shift": Policy().for_run().to_json()}
    assert suite.statuses() == ["finished"]


def test_a_failed_test_stays_failed_when_the_platform_moved(suite: Suite) -> None:
    """Its first verdict stays beside the settled one; that the run fails needs no line of its own then."""
    suite.without_workers()
    judged(suite, tiny=["regressed"], other=["regressed"])
    result = suite.run("tiny,other", cell=SIX)
    result.assert_outcomes(failed=6)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    out = result.stdout.str()
    assert "platform shift: the median of 6 stable cases is 20.0 % slower" in out
    assert "THE RUN FAILS" not in out
    assert newest(suite) == ["platform_shift"] * 6
    assert suite.query("SELECT outcome, count(*) FROM verdict GROUP BY outcome ORDER BY outcome") == [
        ("platform_shift", 6),
        ("regressed", 6),
    ]


def test_what_only_the_whole_matrix_shows_is_told_and_fails_nothing(suite: Suite) -> None:
    """Two cases are no platform: a line names them, their verdicts stay, and pytest ends with 0."""
    suite.without_workers()
    judged(suite, tiny=["inconclusive"], other=["inconclusive"])
    result = suite.run("tiny,other")
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    out = " ".join(result.stdout.str().split())
    line = "2 of 2 stable cases are slower than chance allows over all of them, though none exceeds its own share"
    assert f"{line} of the alarm rate: {ID.format('tiny')}, {ID.format('other')}" in out
    assert newest(suite) == ["inconclusive"] * 2
    assert suite.query("SELECT count(*) FROM verdict") == [(2,)]
    kept = settled(suite)
    assert kept["line"].endswith(f"; {line} of the alarm rate")
    assert (kept["shift"], kept["fails"], len(kept["slower"])) == (None, False, 2)


def test_an_end_that_cannot_be_recorded_is_told_and_ends_with_1(suite: Suite) -> None:
    """The numbers are in the summary all the same, there is no traceback, and nobody takes the run for whole."""
    suite.run("tiny").assert_outcomes(passed=1)
    with closing(sqlite3.connect(suite.path / "ipexperf.db")) as connection:
        connection.execute(
            "CREATE TRIGGER no_end BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
    result = suite.run("tiny", "--junitxml=junit.xml")
    result.assert_outcomes(passed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = of_suite(suite)
    assert told["run_fails"] == "yes"
    assert "the disk is full" in told["run_not_recorded"]
    out = result.stdout.str()
    assert "HOW THE RUN ENDED IS NOT RECORDED: the history ipexperf.db cannot be used: the disk is full." in out
    assert "NO BASELINE (1)" in out
    assert "Traceback" not in out + result.stderr.str()
    assert suite.statuses() == ["finished", "running"]


def test_a_case_that_the_budget_left_no_time_for_is_no_failure_and_no_number(suite: Suite) -> None:
    """It is inconclusive with its reason, everywhere: in the summary, the database and JUnit; its test passes."""
    result = suite.run("tiny,other", "--perf-budget", "0.000001", "--junitxml=junit.xml")
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    out = " ".join(result.stdout.str().split())
    assert "NOT MEASURED (2): the budget (--perf-budget) was spent already: " in out
    assert re.search(rf"{ID.format('tiny')} 1( -)+ inconclusive", out)
    reason = "the budget (--perf-budget) was spent already"
    assert (
        suite.query("SELECT outcome, json_extract(reason, '$.text'), ratio FROM verdict")
        == [("inconclusive", reason, None)] * 2
    )
    assert suite.query("SELECT outcome, reason, n, median FROM measurement") == [("interrupted", reason, 0, None)] * 2
    assert suite.query("SELECT * FROM launch") == []
    text = (suite.path / "junit.xml").read_text()
    assert 'failures="0"' in text
    assert of_suite(suite) == {"run_fails": "no", "run_says": "COULD NOT TELL 2 of 2: 2 inconclusive"}
    assert text.count(f'<property name="reason" value="{reason}" />') == 2
    assert "step_time" not in text


@pytest.mark.process
def test_a_young_case_leans_on_its_neighbours(run: Run) -> None:
    """What is usual among the accepted cases of the machine is in the policy that is kept with each verdict."""
    sessions = tuple(
        Session(f"run{night}", f"2026-01-0{night + 1}T00:00:00+00:00", "", (level, level))
        for night, level in enumerate((0.01, 0.0101, 0.0102))
    )
    known = [CaseBaseline(case, sessions, {}, "", "ada", "2026-01-01", None, ENVIRONMENT) for case in run.plan.cases]
    baselines.write(run.options.baselines, Baselines("fake-1c", tuple(known)))
    run.open((), lambda _: False)
    verdicts = [run.measure(case) for case in run.plan.cases]
    run.finish("finished")
    with closing(sqlite3.connect(run.options.db)) as connection:
        asked = "SELECT doc FROM policy WHERE json_extract(doc, '$.name') = 'screen-2'"
        [(document,)] = connection.execute(asked).fetchall()
    policy = usual_noise([known[0].log_times] * 12, Policy().shared(12))
    assert 0.002 < policy.tau_prior < 0.1
    assert json.loads(document)["tau_prior"] == policy.tau_prior
    assert {found[1].policy for found in verdicts if found} == {policy.label}
