"""The software of a lock as an arm on the hosts of a fleet: each makes its environment, and compares with it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from test_plugin_environment import places
from test_plugin_fleet import LOAD
from test_plugin_live import accepted, accepted_once, accepted_with_pip, lock_of, pythons, run
from test_plugin_usage import refused

if TYPE_CHECKING:
    from plugin_suite import Suite

pytestmark = pytest.mark.long

__all__ = ["accepted", "accepted_once", "accepted_with_pip", "pythons"]  # fixtures

FLEET = (LOAD, "--perf-fleet=local:a,b", "--perf-db=fleet.db")
SHORTEST = ("--perf-max-pairs=2",)
OF_HOSTS = [f".ipexperf/fleet/local/{host}/.ipexperf/environments" for host in "ab"]


def evidence(suite: Suite) -> list[tuple[str, str, str]]:
    """Outcome, arm and lock of each verdict of the fleet."""
    query = "SELECT v.outcome, v.reason FROM verdict v JOIN series s ON s.id = v.series_id WHERE s.metric = 'step_time'"
    rows = [(outcome, json.loads(reason)["baseline"] or {}) for outcome, reason in suite.query(query, "fleet.db")]
    return [(outcome, one.get("against", ""), one.get("lock", "")) for outcome, one in rows]


def test_each_host_makes_the_environment_of_an_arm_once_and_compares_with_it(
    accepted: Suite, pythons: dict[str, str]
) -> None:
    """No index has its package, and no host its wheel: that is sent. The series of the case goes on."""
    accepted.short_pairs()
    lock = lock_of(accepted)
    result = run(accepted, pythons["1.1"], f"--perf-against=lock:{lock}", *FLEET, *SHORTEST)
    for host in "ab":
        result.stdout.fnmatch_lines_random([f"*{host}: environment *: 1 packages from the store*"])
    assert places(accepted) == OF_HOSTS
    assert [one[1:] for one in evidence(accepted)] == [(f"lock:{lock}", lock.stem)] * 2
    assert accepted.query('SELECT count(*) FROM "case"', "fleet.db") == [(1,)]
    roles = accepted.query("SELECT DISTINCT role FROM seat ORDER BY role", "fleet.db")
    assert roles == [("against",), ("case",)]
    out = result.stdout.str()
    assert out.count(f"judged live against the lock {lock.stem} (old): 1 case; pace: 1.0 -> 1.1") == 2
    again = run(accepted, pythons["1.0"], "--perf-against=baseline OMP_NUM_THREADS=1", *FLEET, *SHORTEST)
    assert "making an environment" not in again.stdout.str()
    assert evidence(accepted)[-1][1] == f"baseline:{lock.stem} OMP_NUM_THREADS=1"


def test_a_baseline_is_judged_live_on_hosts_and_its_stored_numbers_watch_them(
    accepted: Suite, pythons: dict[str, str]
) -> None:
    """Nobody must ask for it: where software differs from that of its baseline, that is run again, as on this host."""
    accepted.short_pairs()
    result = run(accepted, pythons["1.1"], *FLEET, "--perf-spread=share")
    result.assert_outcomes(failed=1)
    assert places(accepted) == OF_HOSTS
    digest = lock_of(accepted).stem
    assert evidence(accepted) == [("regressed", f"baseline:{digest}", digest)]
    [(reason,)] = accepted.query("SELECT reason FROM verdict LIMIT 1", "fleet.db")
    assert json.loads(reason)["baseline"]["machine"]["ratio"] > 0


def test_cases_of_a_group_that_are_judged_otherwise_are_each_measured_once_by_its_host(
    accepted: Suite, pythons: dict[str, str]
) -> None:
    """One beside the software of its baseline, and one that has no baseline in rounds of its own."""
    accepted.short_pairs()
    one = ("--perf-fleet=local:a", "--perf-db=fleet.db", LOAD, "--perf-dtype=fp32,bf16", *SHORTEST)
    outcomes = run(accepted, pythons["1.1"], *one).parseoutcomes()
    assert outcomes.get("passed", 0) + outcomes.get("failed", 0) == 2  # two pairs may suffice to see that 1.1 is slower
    launches = 'SELECT c.dtype, count(*) FROM launch l JOIN "case" c ON c.id = l.case_id GROUP BY c.dtype ORDER BY 1'
    assert accepted.query(launches, "fleet.db") == [("bf16", 2), ("fp32", 2)]
    assert [lock for _, _, lock in evidence(accepted) if lock] == [lock_of(accepted).stem]


def test_the_same_software_costs_hosts_no_pair(accepted: Suite, pythons: dict[str, str]) -> None:
    result = run(accepted, pythons["1.0"], *FLEET)
    result.assert_outcomes(passed=2)
    said = "judged by stored numbers: 1 case: its software and source are its baseline's as far as was seen"
    assert result.stdout.str().count(said) == 2
    assert places(accepted) == []


def test_collecting_makes_no_environment_on_hosts(accepted: Suite, pythons: dict[str, str]) -> None:
    for asked in ((), ("--perf-against=baseline",)):
        result = run(accepted, pythons["1.1"], *asked, *FLEET, "--collect-only")
        assert result.ret == 0
        result.stdout.fnmatch_lines(["*2*tests collected*"])
    assert places(accepted) == []


def test_a_host_that_cannot_make_the_environment_of_an_arm_takes_no_part(
    accepted: Suite, pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that was asked for; else its stored numbers judge, and the reason is said."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    shutil.rmtree(accepted.path / ".ipexperf" / "store")
    refused(
        run(accepted, pythons["1.1"], "--perf-against=baseline", *FLEET), "host a: --perf-against: pace 1.0 came from"
    )
    result = run(accepted, pythons["1.2"], *FLEET)
    assert result.stdout.str().count("judged by stored numbers: 1 case: its lock") == 2
