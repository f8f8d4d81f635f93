"""A baseline that is run again: beside the software that it was accepted on, in the same rounds."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from plugin_suite import Suite

sys.path.append(str(Path(__file__).parents[1] / "environments"))
from small_wheels import a_wheel, an_unpacked_environment
from test_plugin_against import told
from test_plugin_usage import refused

ID = "paced-fake-fp32-spin-plain"
CELL = ("--model", "paced", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
SHORT = ("--perf-launches", "2", "--perf-samples", "5", "--perf-seconds", "0.05")


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Interpreters with a package that sets the pace: as accepted, three times as slow, and as accepted again."""
    folder = tmp_path_factory.mktemp("pythons")
    paces = {"1.0": "TIMES = 1\n", "1.1": "TIMES = 3\n", "1.2": "TIMES = 1\n"}
    return {
        version: an_unpacked_environment(folder / version, a_wheel(folder, "pace", version, {"pace.py": text}))
        for version, text in paces.items()
    }


def run(suite: Suite, python: str, *more: str) -> pytest.RunResult:
    pairs = any(word.startswith("--perf-against") for word in more)
    length = ("--perf-max-pairs", "6", *(() if pairs else SHORT))
    return suite.raw(*suite.load, *CELL, *length, f"--perf-python={python}", *more)


def command(suite: Suite, *words: str) -> None:
    assert suite.command(*words).ret == 0


@pytest.fixture(scope="module")
def accepted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keeps the folder of the first accepted suite for the others."""
    return tmp_path_factory.mktemp("accepted")


@pytest.fixture
def accepted(suite: Suite, pythons: dict[str, str], accepted_once: Path) -> Suite:
    """A suite whose case was accepted on 1.0, with its packages kept."""
    if suite.kept_in(accepted_once):
        return suite
    run(suite, pythons["1.0"]).assert_outcomes(passed=1)
    words = ("baseline", "accept", "last", "--reason", "right", "--by", "me", "--name", "old", "--keep", "all")
    command(suite, *words)
    suite.keep(accepted_once)
    return suite


def lock_of(suite: Suite) -> Path:
    [path] = (suite.path / "baselines/locks").iterdir()
    return path


def test_other_software_is_judged_in_turns_with_that_of_the_baseline(accepted: Suite, pythons: dict[str, str]) -> None:
    result = run(accepted, pythons["1.1"])
    result.assert_outcomes(failed=1)
    out = result.stdout.str()
    assert "environment " in out
    assert "1 packages from the store" in out
    digest = lock_of(accepted).stem
    assert f"judged live against the lock {digest} (old): 1 case; pace: 1.0 -> 1.1" in out
    assert f"{ID} against its baseline: pair 1 of at most 6" in out
    [(outcome, reason)] = accepted.verdicts("outcome, reason", "v.run_id DESC LIMIT 1")
    evidence = json.loads(reason)["baseline"]
    assert outcome == "regressed"
    assert (evidence["against"], evidence["lock"]) == (f"baseline:{digest}", digest)
    assert "packages.pace: 1.0 -> 1.1" in evidence["differences"]
    assert evidence["machine"]["ratio"] > 0  # of two runs, which a busy machine has made differ by more than twice
    # The series goes on: two arms that take turns are a matter of how, not of what, and the case keeps its name.
    assert len(accepted.query('SELECT uid FROM "case"')) == 1
    roles = accepted.query("SELECT DISTINCT role FROM seat ORDER BY role")
    assert roles == [("against",), ("case",)]


def test_the_same_software_costs_no_pair_and_its_numbers_watch_the_machine(
    accepted: Suite, pythons: dict[str, str]
) -> None:
    result = run(accepted, pythons["1.0"])
    result.assert_outcomes(passed=1)
    out = result.stdout.str()
    assert "judged by stored numbers: 1 case: its software and source are its baseline's as far as was seen" in out
    assert "pair 1" not in out
    assert not (accepted.path / ".ipexperf/environments").exists()


def test_stored_judges_by_numbers_alone(accepted: Suite, pythons: dict[str, str]) -> None:
    words = (*SHORT, f"--perf-python={pythons['1.2']}", "--perf-against=stored")
    result = accepted.raw(*accepted.load, *CELL, *words)
    result.assert_outcomes(passed=1)
    assert "judged" not in result.stdout.str().replace("that could be judged", "")


@pytest.mark.parametrize("arm", ["baseline:old", "lock", "run:last"])
def test_an_arm_may_name_a_lock(accepted: Suite, pythons: dict[str, str], arm: str) -> None:
    """Whatever its name, it is the lock that the test above measured against: here the rounds are made up."""
    told(accepted, 1.2)
    arm = f"lock:{lock_of(accepted)}" if arm == "lock" else arm
    result = run(accepted, pythons["1.1"], f"--perf-against={arm}")
    result.assert_outcomes(failed=1)
    assert "judged live against the lock" in result.stdout.str()


def test_a_lock_with_other_variables_is_its_software_under_them(accepted: Suite, pythons: dict[str, str]) -> None:
    result = run(accepted, pythons["1.0"], "--perf-against=baseline OMP_NUM_THREADS=1", "--perf-max-pairs=2")
    out = result.stdout.str()
    assert "pair 1 of at most 2" in out
    assert "OMP_NUM_THREADS" in accepted.verdicts("reason", "v.run_id DESC LIMIT 1")[0][0]


def test_a_variable_that_was_not_set_is_not_set_for_the_baseline(
    accepted: Suite, pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    result = run(accepted, pythons["1.0"], "--perf-max-pairs=2")
    assert "judged live against the lock" in result.stdout.str()
    [(reason,)] = accepted.verdicts("reason", "v.run_id DESC LIMIT 1")
    assert "ONEDNN_MAX_CPU_ISA: as it is -> AVX2" in json.loads(reason)["baseline"]["differences"]


def test_where_the_lock_cannot_be_made_the_numbers_judge_and_the_reason_is_said(
    accepted: Suite, pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    shutil.rmtree(accepted.path / ".ipexperf/store")
    result = run(accepted, pythons["1.1"])
    out = result.stdout.str()
    assert "judged by stored numbers: 1 case: its lock" in out
    assert "cannot be made again: " in out
    refused(run(accepted, pythons["1.1"], "--perf-against=baseline"), "--perf-against: pace 1.0 came from no index")


def test_an_edited_lock_is_refused_and_a_missing_one_leaves_the_numbers(
    accepted: Suite, pythons: dict[str, str]
) -> None:
    lock = lock_of(accepted)
    text = lock.read_text()
    lock.write_text(text.replace("pace==1.0", "pace==1.2"))
    refused(run(accepted, pythons["1.1"]), "Restore it with git")
    lock.write_text(text + "--index-url https://example.org\n")
    refused(run(accepted, pythons["1.1"]), "options and addresses are refused")
    lock.unlink()
    said = " ".join(run(accepted, pythons["1.1"]).stdout.str().split())
    assert "judged by stored numbers: 1 case: " in said
    assert "its lock, is not there" in said
