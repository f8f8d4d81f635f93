"""Where ipexperf does not run, or is not installed: one sentence where something is measured, and other tests go on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[1]
LINUX_ALONE = """
import os, sys
sys.platform = {platform!r}
sys.modules |= dict.fromkeys(("fcntl", "resource", "pwd", "termios"))
for name in ("fork", "sched_getaffinity", "sched_setaffinity", "sched_getscheduler", "SCHED_OTHER", "SCHED_BATCH"):
    delattr(os, name)
"""
TESTS = {
    "test_plain.py": "def test_plain():\n    assert 1 + 1 == 2\n",
    "test_perf.py": "def test_perf(perf):\n    assert perf(sum, [1, 2]) == 3\n",
    "test_network.py": "import pytest\n\n@pytest.mark.perf\ndef test_network(perf):\n    perf()\n",
}


def run(folder: Path, start: str, *words: str) -> tuple[int, str]:
    """Run a module where Python begins with this. Returns its exit status, and all that it said."""
    for name, text in {**TESTS, "sitecustomize.py": start}.items():
        (folder / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_the_command_says_that_it_runs_on_linux_alone(tmp_path: Path, platform: str) -> None:
    status, told = run(tmp_path, LINUX_ALONE.format(platform=platform), "ipexperf.cli", "show")
    assert status == 2
    assert told.startswith("ipexperf: ipexperf runs on Linux alone")
    assert told.count("\n") == 1
    assert f"this is {platform}: use a Linux machine" in told


@pytest.mark.parametrize(
    ("words", "status"),
    [("test_plain.py", 0), ("test_perf.py", 4), ("test_network.py", 4), ("test_plain.py --perf-benchmark", 4)],
    ids=str,
)
def test_a_suite_on_macos_ends_only_where_it_measures(tmp_path: Path, words: str, status: int) -> None:
    """With one sentence; its other tests know nothing of it."""
    ended, told = run(
        tmp_path, LINUX_ALONE.format(platform="darwin"), "pytest", "-p", "ipexperf.plugin", *words.split()
    )
    assert ended == status, told
    assert "Traceback" not in told
    assert ("ERROR: ipexperf runs on Linux alone" in told) == bool(status)


def test_a_suite_whose_conftest_falls_back_needs_no_ipexperf(tmp_path: Path) -> None:
    """Three lines of the how-to. Without them the test errs."""
    absent = "import sys\nsys.modules['ipexperf'] = None\n"
    assert "fixture 'perf' not found" in run(tmp_path, absent, "pytest", "test_perf.py")[1]
    shutil.copy(ROOT / "docs" / "how-to" / "examples" / "conftest.py", tmp_path)
    status, told = run(tmp_path, absent, "pytest", "test_perf.py", "test_plain.py")
    assert status == 0, told
