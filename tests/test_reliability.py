"""The benchmark of reliability in small, as a gate: a few kills and some inputs, of which none may fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEFT_ALONE = """
import json, os, subprocess, sys, time
sys.path[:0] = [{folder!r}, {root!r}]
import kills

alive = subprocess.Popen(["sleep", "60"], env={{**os.environ, kills.TAG: "left"}})
while not kills._tagged("left"):
    time.sleep(0.01)  # its variables show a moment after it has started
kills.ORPHANED = 0.2
first = kills.orphans("left")
alive.wait(10)
print(json.dumps([first, kills.orphans("left"), alive.returncode]))
"""
WRONG = """
import sys
sys.path[:0] = [{folder!r}, {root!r}]
import inputs

def broken(chance, lab):
    raise KeyError(chance.random())

inputs.KINDS = {{"broken": (broken, 1)}}
table = inputs.examine(5, 3, None, print)
assert table["broken"].tracebacks == 5, table
again = inputs.look("broken", 0, 3, None)
assert again in table["broken"].examples[0], again
"""
GROWS = """
import sys
sys.path[:0] = [{folder!r}, {root!r}]
import soak

looks = [soak.Look(10**8 + n * 10**6, 10 + n // 4, 1, 4, n % 3) for n in range(40)]
wrong = {{course.name for course in soak._courses(looks, 100) if course.wrong}}
assert wrong == {{"memory", "descriptors"}}, wrong
"""
LOST = """
import sys
from pathlib import Path
sys.path[:0] = [{folder!r}, {root!r}]
import good_files, kills

sys.path.append({tests!r})
import history_records

bench = object.__new__(kills.Bench)
bench.place = Path(sys.argv[1])
path = good_files.fill(bench.place)
trial = kills.Trial(0, "worker")
there = history_records.make_case().id  # what the newest run has
bench._check(trial, [there, "vgg16-fake-fp32-spin-plain"], 0)
assert trial.lost == ["vgg16-fake-fp32-spin-plain"], trial
data = bytearray(path.read_bytes())
data[8192:12288] = bytes(4096)
path.write_bytes(data)
damaged = kills.Trial(0, "worker")
bench._check(damaged, [], 0)
assert damaged.damaged, damaged
assert not damaged.well and not trial.well
"""

pytestmark = pytest.mark.process

DISKS = {"history that has runs": (3, 2), "merge": (3, 0), "temporary files of a run": (0, 8)}
"""What lies on four bad disks, how many of them must be refused, and how many tests pass there.

Two are full. The second one under the history is so in the middle of the run, which is kept elsewhere. Without room for
temporary files, a run has them elsewhere.
"""


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=600, cwd=ROOT)


def filled(script: str) -> str:
    return script.format(
        folder=str(ROOT / "benchmarks" / "reliability"), root=str(ROOT), tests=str(ROOT / "tests" / "history")
    )


def test_the_benchmark_in_small_finds_nothing() -> None:
    """All of its parts in one process: each would import again what the runs need.

    Nothing is lost by kills, no input ends in a traceback, a bad disk is refused in a sentence and costs nothing, and a
    loop takes no more and leaves nothing.
    """
    counts = ("--kills", "5", "--together", "1", "--inputs", "300", "--disks", "2", "--soak", "0.05", "--jobs", "1")
    done = python("benchmarks/reliability", *counts, *(f"--disk={thing}" for thing in DISKS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all well after" in done.stdout
    assert done.stdout.count("| flat |") == 9
    tables = [table for table in done.stdout.split("\n\n") if "what lies on the disk" not in table]
    rows = [line for table in tables for line in table.splitlines() if line.startswith("| **all** |")]
    assert [row.split(" | ")[1] for row in rows] == ["5", "1", "296"]
    if "may not mount" in done.stdout:
        pytest.skip("its part with disks needs root that may mount")
    for thing, (least, passed) in DISKS.items():
        [row] = [line for line in done.stdout.splitlines() if line.startswith(f"| {thing} |")]
        trials, ended_well, refused, tests = map(int, row.split(" | ")[1:5])
        assert (trials, ended_well + refused, tests) == (4, 4, passed)
        assert refused >= least


@pytest.mark.server
def test_a_killed_database_server_loses_nothing() -> None:
    """Its runs go on, and the next one delivers them."""
    alone = ("--together", "0", "--inputs", "0", "--disks", "0", "--soak", "0", "--jobs", "1")
    done = python("benchmarks/reliability", "--kills", "2", "--victim", "database server", *alone)
    if "PostgreSQL is not installed" in done.stderr:
        pytest.skip("no PostgreSQL server is installed here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| database server, SIGKILL") >= 1


def test_what_grows_is_seen() -> None:
    """So that the flat lines of the benchmark are no blindness."""
    done = python("-c", filled(GROWS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_input_that_ends_in_a_traceback_is_counted_and_can_be_made_again() -> None:
    done = python("-c", filled(WRONG))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_process_that_outlives_its_run_is_counted_and_killed() -> None:
    """So that the zeros of the benchmark are no blindness."""
    done = python("-c", filled(LEFT_ALONE))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [1, 0, -9]


def test_a_case_that_is_missing_and_a_page_that_is_damaged_are_seen(tmp_path: Path) -> None:
    done = python("-c", filled(LOST), str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
