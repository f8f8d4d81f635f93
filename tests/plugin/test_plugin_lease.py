"""Two runs on one host measure one after the other."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lease_holder import Holder
from plugin_suite import CELL, PATIENCE, PLUGIN, SHORT, Suite

from ipexperf.variables import LEASES


def until_it_waits(process: subprocess.Popen[str]) -> str:
    """The output of a run up to the line that says for whom it waits."""
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if "waiting for" in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


def error(result: pytest.RunResult) -> str:
    """The one sentence with which pytest ends."""
    [line] = [line for line in result.errlines if line.startswith("ERROR: ")]
    return line.removeprefix("ERROR: ")


def test_a_run_waits_for_another_one_and_gets_its_turn_when_that_is_killed(suite: Suite) -> None:
    """The one that waits says for whom, and has measured nothing so far."""
    with suite.start("hang") as first:
        suite.pids()  # it measures
        with suite.start("tiny") as second:
            out = until_it_waits(second)
            assert re.search(rf"waiting for the CPU: \S+ has held it since .* UTC \(process {first.pid}: pytest ", out)
            assert not (suite.path / "ipexperf.db").exists() or suite.launches() == []
            first.kill()
            rest, _ = second.communicate(timeout=PATIENCE)
        first.communicate(timeout=PATIENCE)
    assert second.returncode == pytest.ExitCode.OK, rest
    assert "the CPU is free" in rest
    assert suite.launches() == [("tiny", "ok")]


def test_a_run_that_must_not_wait_ends_as_wrong_usage_or_measures_beside_another_one(suite: Suite) -> None:
    """One sentence, exit code 4, and no test has failed; or the history says that it had no lease."""
    with Holder("cpu") as other:
        other.held()
        result = suite.run("tiny", "--perf-lease", "fail")
        beside = suite.run("tiny", "--perf-lease", "off")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    line = error(result)
    assert line.startswith("the CPU is not free: ")
    assert line.endswith("wait for it (--perf-lease wait), or measure without a lease (--perf-lease off)")
    assert "failed" not in result.stdout.str()
    assert beside.ret == pytest.ExitCode.OK
    assert suite.launches() == [("tiny", "ok")]
    [(document,)] = suite.query("SELECT doc FROM launch")
    assert any("measured without a lease" in note for note in json.loads(document)["notes"])


def test_an_interrupted_wait_ends_at_once(suite: Suite) -> None:
    """As an interrupted run does, and with nothing in the history."""
    with Holder("cpu") as other:
        other.held()
        with suite.start("tiny") as process:
            until_it_waits(process)
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, rest
    assert "Traceback" not in rest
    assert suite.query("SELECT * FROM run") == []


def test_a_run_holds_the_device_until_its_end_and_no_longer(suite: Suite) -> None:
    with suite.start("hang") as process:
        suite.pids()
        with Holder("cpu") as other:
            assert f"(process {process.pid}: " in other.refused()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert suite.run("tiny", "--perf-lease", "fail").ret == pytest.ExitCode.OK
    with Holder("cpu") as other:
        other.held()


def test_what_measures_nothing_needs_no_lease(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a folder for it. What measures says in one sentence what is wrong with the folder."""
    folder = Path(os.devnull) / "below"
    monkeypatch.setenv(LEASES, str(folder))
    assert suite.run("tiny", "--collect-only").ret == pytest.ExitCode.OK
    assert suite.command("cases", *suite.load, "--model", "tiny", *CELL).ret == 0
    refused = suite.run("tiny")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert error(refused).startswith(f"no lease can be taken in {folder}: not a directory: ")
    assert suite.run("tiny", "--perf-lease", "off").ret == pytest.ExitCode.OK


def test_a_run_below_a_lease_does_not_wait_for_it(suite: Suite) -> None:
    outer = [sys.executable, "-m", "ipexperf.cli", "lease", "--"]
    inner = [sys.executable, "-m", "pytest", *PLUGIN, *suite.load, "--model", "tiny", *CELL, *SHORT]
    done = subprocess.run(
        [*outer, *inner], cwd=suite.path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
    assert "waiting" not in done.stdout
    assert suite.launches() == [("tiny", "ok")]


@pytest.mark.parametrize(
    "command",
    [("ab", "--a", "", "--b", "", "--max-pairs", "1"), ("doctor", "--max-pairs", "1")],
    ids=lambda words: words[0],
)
def test_every_command_that_measures_takes_the_lease(command: tuple[str, ...], suite: Suite) -> None:
    words = (*command, *suite.load, "--model", "tiny", *CELL, "--perf-lease", "fail")
    with Holder("cpu") as other:
        other.held()
        result = suite.command(*words)
    assert result.ret in (1, 2)  # doctor ends with 1 where something is wrong with the machine too
    said = result.stderr.str() + result.stdout.str()
    assert "the CPU is not free: " in said
    assert "Traceback" not in said
