"""The benchmark of reliability in small, as a gate: a few kills and some inputs: none may fail. CI tries more."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.long, pytest.mark.process]

DISKS = {"history that has runs": (3, 0), "merge": (3, 0), "temporary files of a run": (0, 8)}
"""What lies on four bad disks, how many of them must be refused, and how many tests pass there.

Two are full, the second one under the history in the middle of the run. Without room for temporary files, a run has
them elsewhere.
"""


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=600, cwd=ROOT)


def test_the_benchmark_in_small_finds_nothing() -> None:
    """All of its parts in one process: each would import again what the runs need.

    Nothing is lost by kills, no input ends in a traceback, a bad disk is refused in a sentence and costs nothing, and a
    loop takes no more and leaves nothing.
    """
    counts = ("--kills", "5", "--together", "1", "--inputs", "60", "--disks", "2", "--soak", "0.05", "--jobs", "1")
    done = python("benchmarks/reliability", *counts, *(f"--disk={thing}" for thing in DISKS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all well after" in done.stdout
    assert done.stdout.count("| flat |") == 9
    tables = [table for table in done.stdout.split("\n\n") if "what lies on the disk" not in table]
    rows = [line for table in tables for line in table.splitlines() if line.startswith("| **all** |")]
    assert [row.split(" | ")[1] for row in rows] == ["5", "1", "56"]
    if "may not mount" in done.stdout:
        pytest.skip("its part with disks needs root that may mount")
    for thing, (least, passed) in DISKS.items():
        [row] = [line for line in done.stdout.splitlines() if line.startswith(f"| {thing} |")]
        trials, ended_well, refused, tests = map(int, row.split(" | ")[1:5])
        assert (trials, ended_well + refused, tests) == (4, 4, passed)
        assert refused >= least
