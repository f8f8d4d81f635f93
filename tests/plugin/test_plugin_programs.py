"""Programs that tests measure: each number that they tell is a case of the run."""

import sys
from xml.etree import ElementTree as ET

import pytest
from plugin_suite import Suite

pytestmark = pytest.mark.process

BENCH = """
import json, os, random, sys
open("ran", "a").write("x")
slow, seed = float(os.environ.get("SLOW", "1")), random.Random(os.getpid())
told = {f"kernel/{n}": 2 ** n * seed.gauss(1, 0.002) * (slow if n < 2 else 1) for n in range(6)}
exec(os.environ.get("BAD", ""))
json.dump({"lower": told, "higher": {"rate": 100 / slow * seed.gauss(1, 0.002)}}, open(sys.argv[1], "w"))
"""
TESTS = """
import sys
import pytest
pytestmark = pytest.mark.perf(gate=["peak_memory"])
def test_bench(perf_program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    perf_program(sys.executable, "bench.py", "{out}", metrics=["lower:json:lower.*", "higher:json:higher.*"])
def test_other(perf_program):
    perf_program(sys.executable, "-c", "pass")
"""
WORSE = ["higher.rate", "lower.kernel/0", "lower.kernel/1"]
METRICS = ("--metrics", "lower:json:lower.*", "--metrics", "higher:json:higher.*")
OUTCOMES = """SELECT json_extract(c.params, '$.number'), v.outcome, s.higher_is_better FROM verdict v
JOIN series s ON s.id = v.series_id JOIN "case" c ON c.id = s.case_id
WHERE s.metric = 'step_time' AND v.run_id = (SELECT MAX(id) FROM run) ORDER BY 1"""


@pytest.fixture
def programs(suite: Suite) -> Suite:
    (suite.path / "test_suite.py").write_text(TESTS)
    (suite.path / "bench.py").write_text(BENCH)
    return suite


def told(programs: Suite, outcome: str) -> list[str]:
    return [name for name, found, _ in programs.query(OUTCOMES) if found == outcome]


def accept(programs: Suite) -> None:
    programs.raw("--perf-launches=3").assert_outcomes(passed=2)
    assert programs.command("baseline", "accept", "last", "--reason", "first").ret == 0


def test_each_number_is_judged_by_its_own_baseline(programs: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks worse is measured again after the other tests. More of some numbers is better."""
    accept(programs)
    assert (programs.path / "ran").read_text() == "xxxx"  # once for the caches
    assert ("higher.rate", "no_baseline", 1) in programs.query(OUTCOMES)
    monkeypatch.setenv("SLOW", "3")
    result = programs.raw("--perf-launches=3", "--junitxml=junit.xml")
    result.assert_outcomes(passed=1, failed=1)
    assert told(programs, "regressed") == WORSE
    result.stdout.fnmatch_lines(["REGRESSED: *", "* 3.0 times worse: *", "reproduce *test_suite.py::test_bench"])
    assert f"ran  {sys.executable} -c pass" in result.stdout.str()
    properties = {x.get("name"): x.get("value") for x in ET.parse(programs.path / "junit.xml").iter("property")}  # noqa: S314 - our own
    assert (properties["higher.rate: verdict"], properties["lower.kernel/4: verdict"]) == ("regressed", "inconclusive")
    assert programs.command("gate", "last").ret == 1


def test_beside_another_arm_it_runs_in_turns_as_ab_runs_it(programs: Suite) -> None:
    """The series are the same."""
    result = programs.raw("--perf-against=SLOW=0.5", "--perf-max-pairs=4", "-k", "bench")
    result.assert_outcomes(failed=1, deselected=1)
    assert told(programs, "regressed") == WORSE
    result.stdout.fnmatch_lines(["8 numbers beside SLOW=*: 3 worse*"])
    cases = len(programs.query('SELECT id FROM "case"'))
    words = ("--max-pairs=4", "--program", *METRICS, "--", sys.executable, "bench.py", "{out}")
    assert programs.command("ab", "--a", "SLOW=0.5", *words).ret == 0
    assert len(programs.query('SELECT id FROM "case"')) == cases
    programs.raw("--perf-against=", "--perf-max-pairs=4", "-k", "bench").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("sys.exit('no such kernel')", "it ended with 1: no such kernel"),
        ("told['kernel/0'] = float('nan')", "in run 1 lower.kernel/0 is nan, not above 0"),
    ],
)
def test_what_is_wrong_with_a_program_fails_its_test_alone(
    programs: Suite, bad: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence with its name; and what was not well is recorded as failed."""
    accept(programs)
    monkeypatch.setenv("BAD", bad)
    for words, arm in ((("--perf-launches=2",), ""), (("--perf-against=BAD=", "--perf-max-pairs=2"), "this run: ")):
        result = programs.raw(*words)
        result.assert_outcomes(passed=1, failed=1)
        assert f"bench.py {{out}}: {arm}{sentence}" in " ".join(result.stdout.str().split())
        assert told(programs, "failed") == ["lower.kernel/0" if "nan" in bad else ""]
    monkeypatch.setenv("BAD", "del told['kernel/0']")  # which says nothing of other numbers
    result = programs.raw("--perf-launches=2")
    result.assert_outcomes(passed=2)
    assert "NOT IN THIS RUN (1): " in result.stdout.str()


def test_nothing_runs_while_tests_are_collected_or_beside_xdist(programs: Suite) -> None:
    programs.raw("--collect-only", "-q")
    result = programs.raw("-n1")
    result.assert_outcomes(failed=2)
    assert "run ipexperf with -n 0" in result.stdout.str()
    assert not (programs.path / "ran").exists()
    programs.raw("--perf-launches=1", "--perf-without=record").assert_outcomes(passed=2)
    assert not (programs.path / "ipexperf.db").exists()
