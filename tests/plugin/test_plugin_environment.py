"""A run in the environment of a lock."""

import os
from pathlib import Path

import pytest
from plugin_suite import Suite
from test_plugin_live import CELL, SHORT, accepted, accepted_once, lock_of, pythons
from test_plugin_usage import refused

from ipexperf import lock as locks
from ipexperf.environments import make

pytestmark = pytest.mark.long

__all__ = ["accepted", "accepted_once", "pythons"]  # fixtures

NAMED = "--perf-python=baseline:old"


def run(suite: Suite, *more: str) -> pytest.RunResult:
    return suite.raw(*suite.load, *CELL, *SHORT, "--perf-against=stored", *more)


def places(suite: Suite) -> list[str]:
    """Where environments are, without their names by content."""
    found = suite.path.glob("**/environments/*/bin/python")
    return sorted(str(path.parents[2].relative_to(suite.path)) for path in found)


def of_nothing(folder: Path) -> Path:
    """The lock of an interpreter without any package."""
    inventory = make.take_inventory()
    path = folder / "nothing.txt"
    empty = locks.Lock(python=inventory.python, platform=inventory.platform)
    path.write_text(empty.text)
    return path


def test_this_host_measures_in_the_environment_of_a_lock(accepted: Suite) -> None:
    """Its interpreter is made once, and what is recorded is its software."""
    result = run(accepted, NAMED)
    result.assert_outcomes(passed=1)
    assert "1 packages from the store" in result.stdout.str()
    assert places(accepted) == [".ipexperf/environments"]
    result = run(accepted, NAMED, "--perf-db=other.db")
    result.assert_outcomes(passed=1)
    assert "making an environment" not in result.stdout.str()
    [(digest,)] = accepted.query("SELECT uid FROM lock", "other.db")
    assert digest == lock_of(accepted).stem


def test_collecting_makes_no_environment(accepted: Suite) -> None:
    """Its interpreter may have other cases than ours, so they are listed once it is there."""
    result = run(accepted, NAMED, "--collect-only", "-q")
    refused(result, "--collect-only makes nothing, and there is no environment of the lock ")
    assert places(accepted) == []
    run(accepted, NAMED).assert_outcomes(passed=1)
    listed = run(accepted, NAMED, "--collect-only", "-q")
    assert listed.ret == 0
    listed.stdout.fnmatch_lines(["*[[]paced-fake-fp32-spin-plain]"])


def test_variables_of_a_lock_that_this_host_has_otherwise_are_named(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is its packages; what is set on a host is the host's."""
    monkeypatch.setenv("OMP_DYNAMIC", "true")
    path = of_nothing(suite.path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, '# variable OMP_DYNAMIC "false"\n']))
    result = suite.run("tiny", f"--perf-python=lock:{path}")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*the lock {locks.read(path).digest} has OMP_DYNAMIC=false, and here it is true"])
    assert os.environ["OMP_DYNAMIC"] == "true"
