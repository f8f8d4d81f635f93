"""What becomes of a case: a passed or a failed test, a record, a JUnit entry and a benchmark, whatever happens."""

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from plugin_suite import SHORT, Suite

ID = "{}-fake-fp32-spin-plain"


def junit(suite: Suite) -> dict[str, tuple[dict[str, str], str | None]]:
    """Each test case's properties and its failure's text."""
    found = {}
    for element in ET.parse(suite.path / "junit.xml").getroot().iter("testcase"):  # noqa: S314 - our own file
        failure = element.find("failure")
        properties = {x.get("name", ""): x.get("value", "") for x in element.iter("property")}
        found[element.get("name", "")] = (properties, None if failure is None else failure.text)
    return found


LIAR = """
from ipexperf.bench import registry
from ipexperf.bench.api import Mode

spin = registry.modes.get("spin")


class Lying(type(spin)):
    name = "lying"

    def open(self, bench):
        session = super().open(bench)
        session.sample = lambda synchronise, count, block: ["many"]
        return session


registry.modes.add("lying", Lying())
"""


def test_a_reply_that_is_none_is_a_crash_that_is_recorded(suite: Suite) -> None:
    """A mode of the user's own that tells text as samples: the case fails in one sentence, beside its others."""
    (suite.path / "liar.py").write_text(LIAR)
    cell = ("--device", "fake", "--dtype", "fp32", "--mode", "spin,lying", "--stack", "plain")
    result = suite.run("tiny", "--perf-load=liar.py", cell=cell)
    result.assert_outcomes(passed=1, failed=1)
    assert "its reply to sample is malformed" in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
    assert sorted(suite.launches()) == [("tiny", "crashed"), ("tiny", "ok")]
    assert suite.statuses() == ["finished"]


def test_a_measured_case_passes_and_is_told_everywhere(suite: Suite) -> None:
    """A case that ran well passes, is in SQLite, in JUnit's properties and in pytest-benchmark's JSON."""
    result = suite.run("tiny", "--junitxml=junit.xml", "--benchmark-json=bench.json")
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    assert "ipexperf" in result.stdout.str()

    assert suite.launches() == [("tiny", "ok")]
    assert suite.statuses() == ["finished"]
    rows = suite.query(
        "SELECT s.metric, s.unit, m.median, m.n, m.outcome FROM measurement m JOIN series s ON s.id = m.series_id"
    )
    metrics = {metric: (unit, median, n) for metric, unit, median, n, _ in rows}
    unit, step, n = metrics["step_time"]
    assert (unit, n) == ("s", 1)
    assert 1e-5 < step < 1
    assert metrics["accuracy"][1] == 1.0
    assert suite.query("SELECT outcome FROM verdict") == [("no_baseline",)]

    properties, failure = junit(suite)[f"test_it[{ID.format('tiny')}]"]
    assert failure is None
    assert properties["case"] == ID.format("tiny")
    assert (properties["model"], properties["device"], properties["batch"]) == ("tiny", "fake", "1")
    assert properties["verdict"] == "no_baseline"
    assert float(properties["step_time"]) == pytest.approx(step, rel=1e-4)

    [benchmark] = json.loads((suite.path / "bench.json").read_text())["benchmarks"]
    samples = benchmark["stats"]["data"]
    assert len(samples) >= int(SHORT[3])
    assert sorted(samples)[len(samples) // 2] == pytest.approx(step, rel=0.5)
    assert benchmark["extra_info"]["case"]["model"] == "tiny"
    assert benchmark["extra_info"]["step_time"] == pytest.approx(step, rel=1e-4)


SWALLOWED = """
import pytest


@pytest.mark.perf
def test_it(perf):
    try:
        perf()
    except BaseException:
        pass
"""


def test_a_failure_that_a_test_swallows_still_fails_the_run_which_says_so(suite: Suite) -> None:
    """Exit code 1 beside "1 passed" alone would be a riddle. The test may also be marked as xfail."""
    suite.pytester.makepyfile(test_suite=SWALLOWED)
    result = suite.run("wrong")
    result.assert_outcomes(passed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    out = " ".join(result.stdout.str().split())
    assert "THE RUN FAILS (1): their tests failed, but something (xfail, a try around perf(), a hook in a " in out
    assert f"reports none as failed: {ID.format('wrong')}" in out


NEVER_CALLED = """
import pytest

{fixture}
@pytest.mark.perf
def test_it(perf):
    {call}
"""


@pytest.mark.parametrize(
    ("fixture", "call"),
    [("", "pass"), ("@pytest.fixture\ndef perf(perf):\n    return lambda: None\n", "perf()")],
    ids=["the test", "a fixture of its own"],
)
def test_a_test_that_measures_nothing_fails(suite: Suite, fixture: str, call: str) -> None:
    """Who forgets the call, or hides it, would have a green test that never measures anything."""
    suite.pytester.makepyfile(test_suite=NEVER_CALLED.format(fixture=fixture, call=call))
    result = suite.run("wrong", "--junitxml=junit.xml")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    _, failure = junit(suite)[f"test_it[{ID.format('wrong')}]"]
    assert failure is not None
    assert "the test passed without calling perf(), so nothing was measured" in failure
    assert suite.launches() == []


def test_a_test_that_skips_itself_before_it_measures_is_skipped(suite: Suite) -> None:
    """It said so, and pytest shows it."""
    skipping = NEVER_CALLED.format(fixture="", call='pytest.skip("not today")')
    suite.pytester.makepyfile(test_suite=skipping)
    result = suite.run("wrong")
    result.assert_outcomes(skipped=1)
    assert result.ret == pytest.ExitCode.OK


def test_what_is_wrong_or_unproven_fails_with_a_readable_block(suite: Suite) -> None:
    """Numbers of a wrong or mislabelled computation fail the test, with what was found and no traceback."""
    result = suite.run("wrong,unproven", "--junitxml=junit.xml")
    result.assert_outcomes(failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    out = result.stdout.str()
    assert "Traceback" not in out
    assert "plugin.py" not in out
    assert "baseline accept" not in out  # it would refuse both
    told = junit(suite)
    for model, label, found in (
        ("wrong", "accuracy", "fidelity: found"),
        ("unproven", "proof", "dtype: found a dtype nobody asked for, expected fp32"),
    ):
        assert f"  case        {ID.format(model)} (batch 1)" in out
        properties, failure = told[f"test_it[{ID.format(model)}]"]
        assert properties["verdict"] == "invalid"
        assert failure is not None
        assert f"  {label}" in failure
        assert found in failure
        assert "never becomes a baseline" in failure
    assert suite.query("SELECT outcome FROM verdict") == [("invalid",), ("invalid",)]


def test_a_case_that_ends_badly_fails_and_the_next_one_runs(suite: Suite) -> None:
    """Crash, kill, memory, import and hang each fail their own test with their reason; the others are measured."""
    models = ("segfault", "killed", "eater", "import_error", "hang", "tiny")
    result = suite.run(",".join(models), "--perf-timeout", "5", "--junitxml=junit.xml")
    result.assert_outcomes(failed=5, passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert suite.launches() == [
        ("segfault", "crashed"),
        ("killed", "crashed"),
        ("eater", "out_of_memory"),
        ("import_error", "import_error"),
        ("hang", "timed_out"),
        ("tiny", "ok"),
    ]
    assert suite.statuses() == ["finished"]
    told = {name: (properties, failure or "") for name, (properties, failure) in junit(suite).items()}
    for model, reason in (
        ("segfault", "crashed: killed by SIGSEGV"),
        ("killed", "crashed: killed by SIGKILL"),
        ("eater", "out_of_memory: MemoryError"),
        ("import_error", "No module named 'a_module_that_nobody_has'"),
        ("hang", "timed_out: no reply within 5 s"),
    ):
        properties, failure = told[f"test_it[{ID.format(model)}]"]
        assert reason in failure
        assert properties["verdict"] == "failed"
        # What was not measured is left out: it is never 0.
        assert "step_time" not in properties
    assert "INTERNALERROR" not in result.stdout.str()


def test_a_launch_that_was_measured_again_is_not_given_to_pytest_benchmark(suite: Suite) -> None:
    suite.busy(1, "other processes took 50 % (limit 25 %)")
    result = suite.run("tiny", "--perf-launches", "2", "--junitxml=junit.xml", "--benchmark-json=bench.json")
    result.assert_outcomes(passed=1)
    assert "tiny-fake-fp32-spin-plain: again, other processes took 50 % (limit 25 %)" in result.stdout.str()
    properties, failure = junit(suite)[f"test_it[{ID.format('tiny')}]"]
    assert (properties["launches"], failure) == ("2", None)
    [benchmark] = json.loads((suite.path / "bench.json").read_text())["benchmarks"]
    assert benchmark["extra_info"]["launches"] == 2
    [(samples,)] = suite.query(
        "SELECT sum(length(data)) / 8 FROM samples JOIN series s ON s.id = series_id "
        "WHERE s.metric = 'step_time' AND launch > 0"
    )
    assert len(benchmark["stats"]["data"]) == samples


def test_nothing_is_written_where_nothing_is_recorded(suite: Suite) -> None:
    """With --perf-without=record a case, a noisy one too, is measured and judged, and there is no database."""
    result = suite.run("tiny,noisy_stdout", "--perf-without=record")
    result.assert_outcomes(passed=2)
    assert not list(suite.path.glob("**/*.db*"))


def test_a_regression_against_the_baseline_fails(suite: Suite) -> None:
    """Against a baseline that is a million times faster it is regressed, noisy or not; against its own it isn't."""
    suite.run("tiny", "--perf-launches", "2").assert_outcomes(passed=1)
    assert suite.command("baseline", "accept", "last", "--reason", "first", "--by", "tester").ret == 0
    [path] = (suite.path / "baselines").glob("*.json")

    suite.run("tiny", "--perf-launches", "2").assert_outcomes(passed=1)
    outcomes = [outcome for (outcome,) in suite.verdicts("outcome")]
    assert outcomes[0] == "no_baseline"
    assert outcomes[1] in ("ok", "inconclusive", "improved")

    document: dict[str, Any] = json.loads(path.read_text())
    [session] = document["cases"][0]["sessions"]
    session["launches"] = [value / 1e6 for value in session["launches"]]
    session["metrics"]["step_time"] /= 1e6
    path.write_text(json.dumps(document))
    result = suite.run("tiny", "--perf-launches", "2", "--junitxml=junit.xml")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    out = result.stdout.str()
    assert "REGRESSED: " in out
    assert "accepted by tester" in out
    assert "ipexperf baseline accept" in out
    assert "Traceback" not in out
    properties, failure = junit(suite)[f"test_it[{ID.format('tiny')}]"]
    assert properties["verdict"] == "regressed"
    assert float(properties["ratio"]) > 20
    assert failure is not None
    assert suite.verdicts("outcome", "judged_at DESC LIMIT 1") == [("regressed",)]
