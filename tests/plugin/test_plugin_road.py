"""The road of a user with nothing patched: a run that finds a slowdown, its verdict in the history, and the gate."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_suite import CELL, INI, PLUGIN, ROOT, SUITE

pytestmark = pytest.mark.process

ROAD = """
import os

from ipexperf.bench import registry


@registry.model("road", size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)
def road():
    pace = int(os.environ.get("PACE", "1"))

    def step():
        for _ in range(pace):
            total = sum(number * number for number in range(2_000))
        return total

    return step
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite as a user has it. Its model is as slow as the variable PACE says."""
    (tmp_path / "pytest.ini").write_text(f"{INI}ipexperf = --perf-seconds=0.01 --perf-samples=4\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "road.py").write_text(ROAD)
    return tmp_path


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", *command)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_slowdown_goes_from_pytest_to_the_gate(folder: Path, fake: str) -> None:
    """Three times as slow: the test fails with its reason, `show` has it, and the gate ends with 1."""
    cell = (f"--perf-load={fake},{folder / 'road.py'}", "--model", "road", *CELL)
    result = run(folder, "pytest", *PLUGIN, *cell, "--perf-against", "PACE=1", PACE="3")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "REGRESSED" in result.stdout
    shown = run(folder, "ipexperf.cli", "show", "last")
    assert "regressed" in shown.stdout
    gate = run(folder, "ipexperf.cli", "gate", "last")
    assert (gate.returncode, "regressed" in gate.stdout) == (1, True), gate.stderr
