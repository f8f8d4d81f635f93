"""How often a case is written: once after each of its rounds, here and on a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_plugin_fleet import LOAD, PATIENCE, mark, wait_for
from test_plugin_fleet_against import compared

if TYPE_CHECKING:
    from plugin_suite import Suite

__all__ = ["mark"]  # a fixture

COUNTING = """
from pathlib import Path

from ipexperf.history import History

honest = History.record


def record(self, run, measurement, *rest, **more):
    with Path("writes").open("a") as writes:
        writes.write(f"{measurement.case.model} {len(measurement.launches)}\\n")
    honest(self, run, measurement, *rest, **more)


History.record = record
"""


@pytest.fixture
def counted(suite: Suite) -> Suite:
    """A suite that notes each case that is written, and how many launches it had then."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(COUNTING)
    return suite


def writes(suite: Suite) -> list[str]:
    return (suite.path / "writes").read_text().splitlines()


def test_a_case_is_written_once_after_each_of_its_rounds(counted: Suite) -> None:
    counted.run("tiny", "--perf-launches=2").assert_outcomes(passed=1)
    assert writes(counted) == ["tiny 1", "tiny 2"]


def test_a_case_of_a_host_is_written_once_after_each_of_its_rounds(counted: Suite, mark: Path) -> None:
    """The group of the other one is complete when its turn comes."""
    process = counted.start("patient,tiny", LOAD, "--perf-fleet=local:a,b", "--perf-spread=share")
    wait_for(mark.exists, process)
    Path(f"{mark}.go").touch()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    assert writes(counted) == ["patient 1", "tiny 1"]


@pytest.mark.parametrize("fleet", ["", "--perf-fleet=local:a"])
def test_a_case_in_pairs_is_written_once_after_each_pair(counted: Suite, fleet: str) -> None:
    counted.short_pairs()
    compared(counted, "tiny", *filter(None, [fleet])).assert_outcomes(passed=1)
    assert writes(counted) in (["tiny 1", "tiny 2"], ["tiny 2"])  # nobody waits for a host's first pair
