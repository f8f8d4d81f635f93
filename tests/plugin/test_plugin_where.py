"""The commands that a run prints find its history and its baselines, wherever these are."""

from pathlib import Path

import pytest
from plugin_suite import ROOT, Suite
from test_plugin_again import judged

from ipexperf.history import History
from ipexperf.report import rerun

ID, FAKE = "tiny-fake-fp32-spin-plain", ROOT / "tests" / "fakes" / "fake.py"


def commands(result: pytest.RunResult) -> list[str]:
    """What to look at next, as the end of a run says."""
    lines = [line.strip() for line in result.outlines]
    return [line for line in lines[lines.index("where to look next:") :] if line.startswith("ipexperf ")]


@pytest.mark.parametrize(
    ("model", "launches", "offered"),
    [("tiny", "2", {"show", "baseline"}), ("tiny", "1", {"show"}), ("segfault", "2", {"show"})],
)
def test_only_commands_that_find_numbers_are_offered_and_usual_places_are_not_named(
    suite: Suite, model: str, launches: str, offered: set[str]
) -> None:
    """A failed case is not accepted, nor is one with a single launch: these commands would be refused."""
    told = commands(suite.run(model, "--perf-launches", launches))
    assert {"show", "trend", "baseline"} & {line.split()[1] for line in told} == offered
    assert not any("--db" in line or "--baselines" in line for line in told)


def test_what_is_elsewhere_is_named_so_that_a_shell_takes_it(suite: Suite) -> None:
    """How to accept what is red stands in the block of its test alone."""
    suite.without_workers()
    judged(suite, tiny=["regressed"])
    result = suite.run("tiny", "--perf-launches", "2", "--perf-db=my history.db", "--perf-baselines=kept here")
    where = "--db 'my history.db' --baselines 'kept here'"
    said = " ".join(result.stdout.str().split())
    assert f'--case {ID} {where} --regression-ok --reason "WHY"' in said
    assert [line.split("    ")[0].replace(f" --perf-load {FAKE}", "") for line in commands(result)] == [
        f"ipexperf explain last {ID} --perf-db 'my history.db' --perf-baselines 'kept here'",
        "ipexperf show last --db 'my history.db'",
        "ipexperf trend --db 'my history.db'",
    ]


def test_what_could_not_be_told_is_not_accepted_and_the_machine_is_looked_at(suite: Suite) -> None:
    suite.busy(99)
    told = [line.split()[1] for line in commands(suite.run("tiny", "--perf-launches", "2"))]
    assert told == ["doctor", "help", "show"]
    refused = suite.command("baseline", "accept", "last", "--reason=why")
    assert refused.ret == 1
    assert "measure it again, or accept it with --contended-ok" in refused.stdout.str()


def test_a_test_is_named_as_it_is_called_in_the_folder_where_pytest_was_started(tmp_path: Path) -> None:
    """Its id begins in the folder of pytest's settings."""
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "test_it.py").touch()
    for folder, called in ((".", "tests/test_it.py"), ("tests", "test_it.py"), ("tests/unit", "../test_it.py")):
        assert rerun.here("tests/test_it.py::test_a[b::c]", tmp_path / folder) == f"{called}::test_a[b::c]"


def test_what_is_on_no_record_cannot_be_accepted(suite: Suite) -> None:
    """The last run that there is would be another."""
    suite.without_workers()
    judged(suite, tiny=["regressed"])
    said = suite.run("tiny", "--perf-launches", "2", "--perf-without=record").stdout.str()
    assert "reproduce  " in said
    assert "baseline accept" not in said


def test_a_run_that_is_not_the_last_one_is_named_by_its_uid(suite: Suite) -> None:
    """The clock of this host, or of another one that writes the same history, is wrong."""
    with History.open(suite.path / "ipexperf.db") as history:
        history.start_run({"machine_key": "m"}, {"started_at": "2099-01-01T00:00:00Z"})
    told = commands(suite.run("tiny", "--perf-launches", "2"))
    ((uid,),) = suite.query("SELECT uid FROM run WHERE started_at < '2099'")
    assert any(line.startswith(f"ipexperf show {uid[:18]} ") for line in told)
    assert told[0].startswith(f"ipexperf baseline accept {uid[:18]} ")
