"""A stranger's repository: ipexperf is installed there, and nothing of the checkout is. Needs torch."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from plugin_suite import CONFTEST, ROOT, SHORT

pytestmark = pytest.mark.process

NETS = ROOT / "tests" / "fakes" / "mynets.py"
STOCK = (
    *("--perf-device", "cpu", "--perf-dtype", "fp32", "--perf-mode", "infer_jit", "--perf-stack", "stock"),
    *SHORT,
)
PATIENCE = 300
TEST = """
import pytest


@pytest.mark.perf(own=True)
def test_all(perf):
    perf()


@pytest.mark.perf(models=["mynets:pair"])
def test_pair(perf):
    perf()
"""

needs_torch = pytest.mark.torch


@pytest.fixture
def stranger(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with networks and a test, and ipexperf as pip installs it: a package and its entry points."""
    for name in list(os.environ):
        if name.startswith("IPEXPERF_"):
            monkeypatch.delenv(name)
    site = pytester.mkdir("site")
    (site / "ipexperf").symlink_to(ROOT / "ipexperf")
    about = site / "ipexperf-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ipexperf\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[pytest11]\nipexperf = ipexperf.plugin\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    repository = pytester.mkdir("repository")
    shutil.copy(NETS, repository / "mynets.py")
    (repository / "test_mine.py").write_text(TEST)
    (repository / "conftest.py").write_text(CONFTEST)
    monkeypatch.chdir(repository)
    return pytester


def run(stranger: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    command = (sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", *arguments)
    return stranger.run(*command, timeout=PATIENCE)


@needs_torch
def test_a_suite_in_another_repository_measures_its_networks(stranger: pytest.Pytester) -> None:
    """Named by module and callable, found in the folder that pytest was started in, proven and recorded there."""
    # One case of two tests would be measured twice, which a run refuses to record.
    result = run(stranger, "--perf-model", "mynets:mapped,mynets:pair", *STOCK, "-k", "mapped or test_pair")
    result.assert_outcomes(passed=2, deselected=1)
    text = result.stdout.str()
    assert "test_mine.py" in text
    assert "mynets.mapped-cpu-fp32-infer_jit-stock" in text
    here = Path.cwd()
    assert (here / "ipexperf.db").exists()
    assert not list(ROOT.glob("mynets*"))


@needs_torch
def test_each_bad_network_fails_with_its_sentence(stranger: pytest.Pytester) -> None:
    """Every one is a test of its own that fails; the rest goes on, and none shows a traceback."""
    bad = {
        "branching": "1 times it reads its inputs' values",
        "silent": "the network answers with nothing, and a tensor was expected",
        "bare": "mynets.bare has no parameters",
        "nothing": "mynets.nothing is built as nothing",
        "small@3x9x9": "does not take its inputs, 32x3x9x9 float32: RuntimeError: mat1 and mat2 shapes",
    }
    result = run(
        stranger, "--perf-model", ",".join(f"mynets:{name}" for name in ("small", *bad)), *STOCK, "-k", "not test_pair"
    )
    result.assert_outcomes(passed=1, failed=len(bad), deselected=1)
    text = " ".join(result.stdout.str().replace("\n", " ").split())
    for told in bad.values():
        assert told in text
    assert "Traceback" not in text


@needs_torch
@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("mynets:", "--perf-model: 'mynets:' is not a network: expected module:callable"),
        ("nets.py:small", "'nets.py:small': there is no file nets.py"),
        ("hf:nobody/nothing", "'hf:nobody/nothing' is not in the local cache, and nothing is downloaded here"),
    ],
)
def test_what_is_not_there_ends_before_anything_is_measured(stranger: pytest.Pytester, model: str, told: str) -> None:
    """Exit code 4 and one sentence."""
    result = run(stranger, "--perf-model", model, *STOCK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {told}" in result.stderr.str()
    assert not Path("ipexperf.db").exists()


@needs_torch
def test_networks_are_named_by_the_ini_file_too(stranger: pytest.Pytester) -> None:
    """What is always measured is written down once."""
    Path("pytest.ini").write_text("[pytest]\nipexperf_model = mynets:small\nipexperf_mode = infer\n")
    result = run(stranger, "--collect-only", "-q", "--perf-dtype", "fp32", "--perf-stack", "stock")
    assert "test_mine.py::test_all[mynets.small-cpu-fp32-infer-stock]" in result.stdout.str()


@needs_torch
def test_nothing_of_a_named_network_is_imported_while_tests_are_collected(stranger: pytest.Pytester) -> None:
    """The plan knows it by its name alone."""
    Path("mynets.py").write_text("raise SystemExit('this was imported')\n")
    result = run(stranger, "--collect-only", "-q", "--perf-model", "mynets:small", *STOCK)
    assert "test_all[mynets.small-cpu-fp32-infer_jit-stock]" in result.stdout.str()
