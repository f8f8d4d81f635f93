"""The commands that a run prints find its history and its baselines, wherever these are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_plugin_again import judged

from ipexperf.history import History

if TYPE_CHECKING:
    from plugin_suite import Suite

ID = "tiny-fake-fp32-spin-plain"


def commands(result: pytest.RunResult) -> list[str]:
    """What to look at next, as the end of a run says."""
    lines = [line.strip() for line in result.outlines]
    return [line for line in lines[lines.index("where to look next:") :] if line.startswith("ipexperf ")]


@pytest.mark.parametrize(
    ("model", "launches", "offered"),
    [("tiny", "2", {"show", "trend", "baseline"}), ("tiny", "1", {"show", "trend"}), ("segfault", "2", {"show"})],
)
def test_only_commands_that_find_numbers_are_offered_and_usual_places_are_not_named(
    suite: Suite, model: str, launches: str, offered: set[str]
) -> None:
    """A failed case is not accepted, nor is one with a single launch: these commands would be refused."""
    told = commands(suite.run(model, "--perf-launches", launches))
    assert {"show", "trend", "baseline"} & {line.split()[1] for line in told} == offered
    assert not any("--db" in line or "--baselines" in line for line in told)


def test_what_is_elsewhere_is_named_so_that_a_shell_takes_it(suite: Suite) -> None:
    """In the block of the failed test and at the end."""
    judged(suite, tiny=["regressed"])
    result = suite.run("tiny", "--perf-launches", "2", "--perf-db=my history.db", "--perf-baselines=kept here")
    where = "--db 'my history.db' --baselines 'kept here'"
    said = " ".join(result.stdout.str().split())
    assert f'--case {ID} {where} --regression-ok --reason "WHY"' in said
    assert any(line.startswith(f'ipexperf baseline accept last {where} --reason "..."') for line in commands(result))
    assert any(line.startswith("ipexperf show last --db 'my history.db'  ") for line in commands(result))


def test_what_is_on_no_record_cannot_be_accepted(suite: Suite) -> None:
    """The last run that there is would be another."""
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
    assert any(line.startswith(f"ipexperf baseline accept {uid[:18]} ") for line in told)
