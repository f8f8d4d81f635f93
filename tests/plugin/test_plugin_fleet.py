"""A run on several hosts, which are processes of this one: planned, judged and recorded here."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lease_holder import Holder
from plugin_suite import SHORT
from test_plugin_usage import refused

if TYPE_CHECKING:
    import subprocess

    from plugin_suite import Suite

MODELS = Path(__file__).parents[1] / "fakes" / "fleet_models.py"
LOAD = f"--perf-load={MODELS.with_name('any_machine.py')},{MODELS}"
PATIENCE = 60


@pytest.fixture
def mark(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a model says that it began."""
    path = suite.path / "mark"
    monkeypatch.setenv("FLEET_MARK", str(path))
    return path


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened() and time.monotonic() < until:
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.05)
    assert happened()


def metas(suite: Suite) -> list[dict[str, object]]:
    return [json.loads(text) for (text,) in suite.query("SELECT meta FROM run ORDER BY id")]


def journals(suite: Suite, host: str) -> list[Path]:
    return list((suite.path / ".ipexperf" / "fleet" / "local" / host / ".ipexperf" / "fleet" / "runs").glob("*"))


def test_each_host_measures_the_matrix_in_a_run_of_its_own(suite: Suite) -> None:
    result = suite.run("tiny,other", LOAD, "--perf-fleet=local:a,b", "-v")
    assert result.ret == 0
    result.assert_outcomes(passed=4)
    names = [
        f"test_it[[]{model}-fake-fp32-spin-plain@{host}[]] PASSED*" for host in "ab" for model in ("tiny", "other")
    ]
    result.stdout.fnmatch_lines_random([f"*{name}" for name in names])
    result.stdout.fnmatch_lines(["host a", "host b"])
    assert suite.statuses() == ["finished", "finished"]
    assert sorted(suite.launches()) == [("other", "ok"), ("other", "ok"), ("tiny", "ok"), ("tiny", "ok")]
    assert sorted(host for meta in metas(suite) for host in meta["fleet"]["hosts"]) == ["a", "b"]  # type: ignore[index]
    assert journals(suite, "a") == journals(suite, "b") == []


def test_equal_hosts_share_one_run_and_each_case_stays_on_its_host(suite: Suite) -> None:
    for _ in range(2):
        result = suite.run("tiny,other", LOAD, "--perf-fleet=local:a,b,c", "--perf-spread=share")
        assert result.ret == 0
        result.assert_outcomes(passed=2)
    first, second = metas(suite)
    assert first["fleet"]["hosts"] == second["fleet"]["hosts"]  # type: ignore[index]
    assert sorted(first["fleet"]["hosts"]) == ["a", "b", "c"]  # type: ignore[index]
    notes = [json.loads(doc) for (doc,) in suite.query("SELECT doc FROM launch")]
    assert all(any("measured on" in note for note in one["notes"]) for one in notes)


def test_an_equal_host_takes_the_group_of_one_that_died(suite: Suite, mark: Path) -> None:
    result = suite.run("fatal", LOAD, "--perf-fleet=local:a,b", "--perf-spread=share")
    assert mark.exists()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*the host ? was lost: its process ended with status -9*measures it*"])
    assert suite.launches() == [("fatal", "ok")]
    assert suite.statuses() == ["finished"]


def test_a_host_that_died_fails_its_cases_and_no_other(
    suite: Suite, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_FATAL", "always")
    result = suite.run("tiny,fatal,other", LOAD, "--perf-fleet=local:a")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*crashed: the host a was lost: its process ended with status -9*"])
    assert [outcome for _, outcome in suite.launches()].count("ok") == 1
    assert suite.statuses() == ["finished"]


def cut_off(suite: Suite, mark: Path, gone: Callable[[int], bool], *more: str, short: tuple[str, ...] = SHORT) -> str:
    """Kill a run while its host measures, and let the host finish its group. Returns the name of the run."""
    process = suite.start("patient,tiny", LOAD, "--perf-fleet=local:a", *more, short=short)
    wait_for(mark.exists, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    Path(f"{mark}.go").touch()
    assert any(gone(int(mark.read_text())) for _ in range(8)), "the host ends by itself"
    (journal,) = journals(suite, "a")
    return journal.stem.partition("+")[0]


def test_what_a_host_measured_without_its_controller_is_taken_over(
    suite: Suite, mark: Path, gone: Callable[[int], bool]
) -> None:
    run = cut_off(suite, mark, gone)
    began = mark.stat().st_mtime_ns
    result = suite.run("patient,tiny", LOAD, "--perf-fleet=local:a", f"--perf-resume={run}")
    assert result.ret == 0
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"*a: 1 group of run {run}, complete and measured by this code, kept here*"])
    assert mark.stat().st_mtime_ns == began, "it was not measured again"
    assert sorted(suite.launches()) == [("patient", "ok"), ("tiny", "ok")]
    assert journals(suite, "a") == []


def test_rounds_that_the_history_has_of_a_run_that_was_cut_off_are_those_of_the_next_one_too(
    suite: Suite, mark: Path, gone: Callable[[int], bool]
) -> None:
    """Two runs take over the same journal, as if the first had been killed once it had recorded it."""
    run = cut_off(suite, mark, gone, "--dtype=fp32,bf16")
    (journal,) = journals(suite, "a")
    kept = journal.read_bytes()
    for _ in range(2):
        journal.write_bytes(kept)
        result = suite.run("patient", LOAD, "--perf-fleet=local:a", "--dtype=fp32,bf16", f"--perf-resume={run}")
        assert result.ret == 0
        result.stdout.fnmatch_lines([f"*a: 1 group of run {run}, complete and measured by this code, kept here*"])
    rounds = suite.query("SELECT run_id, count(*) FROM round GROUP BY 1")
    assert [count for _, count in rounds] == [1, 1]


def test_ctrl_c_ends_the_hosts_and_keeps_what_they_had(suite: Suite, mark: Path, gone: Callable[[int], bool]) -> None:
    process = suite.start("tiny,patient", LOAD, "--perf-fleet=local:a")
    wait_for(mark.exists, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2, output
    assert gone(int(mark.read_text()))
    assert suite.launches() == [("tiny", "ok")]
    assert suite.statuses() == ["interrupted"]
    assert "Traceback" not in output


def seen(suite: Suite, *hosts: str) -> list[dict[str, object]]:
    """What `ipexperf fleet hosts` says of these hosts."""
    result = suite.command("fleet", "hosts", f"local:{','.join(hosts)}", "--json")
    assert result.ret == 0, result.errlines
    rows: list[dict[str, object]] = json.loads(result.stdout.str())
    return rows


def test_somebody_who_looks_sees_what_a_host_measures(suite: Suite, mark: Path) -> None:
    """Before it does, while it does, and how busy it was when the run is over."""
    # Also starts the server that later commands are forked from, which measures something: nobody may hold the lease.
    assert [one["state"] for one in seen(suite, "a", "b")] == ["free", "free"]
    process = suite.start("patient,tiny", LOAD, "--perf-fleet=local:a")
    wait_for(mark.exists, process)
    first, second = seen(suite, "a", "b")
    assert (first["state"], second["state"]) == ("measuring", "free")
    doing = first["doing"]
    assert isinstance(doing, dict)
    assert doing["group"].startswith("patient")
    assert (doing["round"], doing["rounds"], doing["queue"]) == (1, 1, 1)
    Path(f"{mark}.go").touch()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    (over,) = seen(suite, "a")
    assert (over["state"], over["doing"], over["keeps"]) == ("free", None, [])
    assert isinstance(over["busy"], float)
    assert over["busy"] > 0


def test_a_host_that_may_not_wait_for_its_devices_refuses_its_groups(suite: Suite) -> None:
    """Its cases fail with the true reason: nothing crashed."""
    with Holder("cpu") as other:
        other.held()
        result = suite.run("tiny,other", LOAD, "--perf-fleet=local:a", "--perf-lease=fail")
    assert result.ret == 1
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*refused: by the host a: the CPU is not free: *"])
    assert "crashed" not in result.stdout.str()
    assert sorted(suite.launches()) == [("other", "refused"), ("tiny", "refused")]
    assert suite.statuses() == ["finished"]


def test_a_host_that_cannot_take_part_is_left_out_and_fails_the_run(suite: Suite) -> None:
    folder = suite.path / ".ipexperf" / "fleet" / "local" / "b" / ".ipexperf" / "fleet"
    folder.mkdir(parents=True)
    (folder / "runs").write_text("where a folder should be")
    result = suite.run("tiny", LOAD, "--perf-fleet=local:a,b")
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["HOST b TOOK NO PART: *nothing can be kept there*"])
    assert suite.statuses() == ["finished"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--perf-hosts=device=xpu",), "--perf-hosts needs a fleet"),
        (("--perf-spread=share",), "--perf-spread needs a fleet"),
        (("--perf-resume=x",), "--perf-resume needs a fleet"),
        (("--perf-fleet=local:",), "expected names of hosts"),
        (("--perf-fleet=local:a,a",), "two hosts of the fleet are called a"),
        (("--perf-fleet=local:a", "--perf-hosts=devise=cpu"), "did you mean device?"),
        (("--perf-fleet=local:a", "--perf-hosts=device=xpu"), "none of the 1 hosts matches"),
        (("--perf-fleet=local:a", "--perf-resume=../x"), "is no run of a fleet"),
        (("--perf-fleet=local:a", "--perf-load=not.there"), "not.there"),
        (("--perf-fleet=local:a", "--perf-python=/not/there"), "/not/there"),
    ],
)
def test_what_cannot_be_is_one_sentence(suite: Suite, arguments: tuple[str, ...], reason: str) -> None:
    refused(suite.run("tiny", *arguments), reason)
    assert not (suite.path / "ipexperf.db").exists()
