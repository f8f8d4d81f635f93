"""`ipexperf lease`: any command gets a device to itself, and what it says and how it ends is its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cli_answers
import pytest
from lease_holder import Holder

from ipexperf import cli

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "ipexperf.cli", "lease"]


def lease(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60)


def test_the_command_has_the_device_to_itself() -> None:
    """With its own arguments, dashes and all, and its own output."""
    with subprocess.Popen(
        [*COMMAND, "--", "sh", "-c", "echo began; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        with Holder("cpu") as other:
            assert f"(process {process.pid}: " in other.refused()
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert lease("--", "echo", "--device", "a", "--", "b").stdout == "--device a -- b\n"


@pytest.mark.parametrize(("end", "status"), [("exit 3", 3), ("kill -15 $$", 143)])
def test_the_exit_status_is_that_of_the_command(end: str, status: int) -> None:
    assert lease("--", "sh", "-c", end).returncode == status


def test_an_interrupted_wait_ends_at_once() -> None:
    with Holder("cpu") as other:
        other.held()
        process = subprocess.Popen([*COMMAND, "--", "echo", "never"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")


@pytest.mark.parametrize(
    ("runner", "number"),
    [("lease", "KILL"), ("lease", "TERM"), ("lease", "INT"), ("lease", "HUP"), ("prove", "TERM")],
)
def test_a_command_and_its_children_end_with_what_runs_them(
    tmp_path: Path, gone: Callable[[int], bool], runner: str, number: str
) -> None:
    """The kernel gives a lease away when its holder dies, so what the holder started must not go on to measure.

    The command itself ends the holder, so the signal may come while the holder still starts it.
    """
    path = tmp_path / "pids"
    script = f"sleep 1000 & echo $$ $! > {path}; kill -{number} $PPID; wait"
    done = subprocess.run([*COMMAND[:-1], runner, "--", "sh", "-c", script], check=False, timeout=60)
    assert done.returncode == {"KILL": -signal.SIGKILL}.get(number, 128 + signal.Signals[f"SIG{number}"])
    assert all(gone(int(pid)) for pid in path.read_text().split())


def test_cards_are_leased_by_their_number(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZE_AFFINITY_MASK", raising=False)
    with Holder("xpu-1", "shared:cpu") as other:
        other.held()
        words = ("lease", "--perf-lease", "fail", "--device")
        assert cli.main([*words, "xpu:0", "--", "true"]) == 0
        assert "xpu-1 is not free" in cli_answers.refused(capsys, *words, "xpu:1", "--", "true")
    assert os.environ.get("IPEXPERF_LEASED", "") == ""
