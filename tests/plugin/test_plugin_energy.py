"""`--perf-gate energy`: a case whose steps use more joules fails its test, though it is as quick as ever."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plugin_suite import Suite

METERED = Path(__file__).parents[1] / "fakes" / "metered.py"
ID = "metered-fake-fp32-spin-plain"
UNKNOWN = "energy is unknown: "


@pytest.fixture(autouse=True)
def _loaded(suite: Suite) -> None:
    """The fake device has a counter, where its model has steps that use something."""
    suite.load = (f"--perf-load={suite.fake},{METERED}",)


def using(joules: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_JOULES", str(joules))


def in_pairs(suite: Suite) -> pytest.RunResult:
    """The case beside itself with steps of one joule, judged by its energy alone."""
    words = ("--perf-against=FAKE_JOULES=1", "--perf-max-pairs=8", "--perf-gate=energy")
    cell = ("--model", "metered", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
    return suite.raw(*suite.load, *cell, *words)


def of_launches(suite: Suite, what: str) -> list[object]:
    """This part of the document of every launch."""
    rows = suite.query(f"SELECT json_extract(doc, '$.{what}') FROM launch ORDER BY rowid")  # noqa: S608 - our own words
    return [value for (value,) in rows]


def test_a_fifth_more_energy_fails_the_test_and_is_named(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    using(1.2, monkeypatch)
    result = in_pairs(suite)
    result.assert_outcomes(failed=1)
    told = re.sub(r"\s+", " ", result.stdout.str())
    assert "energy: 20.0% more than the other arm" in told
    assert f"WORSE energy (1): {ID}+against:FAKE_JOULES=1 +20.0 % (1.00 J -> 1.20 J)" in told


def test_less_energy_passes(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    using(0.8, monkeypatch)
    in_pairs(suite).assert_outcomes(passed=1)
    sql = "SELECT v.outcome FROM verdict v JOIN series s ON s.id = v.series_id WHERE s.metric = 'energy'"
    assert suite.query(sql) == [("improved",)]


def test_the_joules_of_a_step_are_recorded_and_shown(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to ask for them."""
    using(0.25, monkeypatch)
    suite.run("metered").assert_outcomes(passed=1)
    assert of_launches(suite, "metrics.energy") == [0.25]
    [case] = json.loads(suite.command("show", "last", "--json").stdout.str())["cases"]
    assert (case["metrics"]["energy"]["median"], case["metrics"]["energy"]["unit"]) == (0.25, "J")
    assert "0.25" in suite.command("trend", "--model", "metered", "--metric", "energy").stdout.str()


def test_a_counter_that_cannot_be_trusted_tells_no_energy_and_not_0(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands still, or runs backwards. Who asked for energy is told why there is none."""
    using(0.0, monkeypatch)
    suite.run("metered", "--perf-gate", "step_time,energy").assert_outcomes(passed=1)
    assert of_launches(suite, "metrics.energy") == [None]
    [notes] = of_launches(suite, "notes")
    assert f"{UNKNOWN}its counter stood still, ran backwards or could not be read in a turn" in str(notes)


def test_turns_are_as_long_as_a_slow_counter_needs_if_energy_is_judged(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten updates of 20 ms, where a turn is a tenth of that otherwise. Nobody else pays for it."""
    using(0.25, monkeypatch)
    monkeypatch.setenv("FAKE_UPDATE", "0.02")
    suite.run("metered", "--perf-gate", "step_time").assert_outcomes(passed=1)
    suite.run("metered", "--perf-gate", "step_time,energy").assert_outcomes(passed=1)
    assert of_launches(suite, "metrics.energy") == [None, 0.25]
    assert UNKNOWN not in str(of_launches(suite, "notes"))


def test_who_asks_for_energy_where_nothing_counts_it_is_told_so(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKE_JOULES", raising=False)
    for gate in ("step_time", "step_time,energy"):
        suite.run("tiny", "--perf-gate", gate).assert_outcomes(passed=1)
    assert of_launches(suite, "metrics.energy") == [None, None]
    silent, told = of_launches(suite, "notes")
    assert UNKNOWN not in str(silent)
    assert f"{UNKNOWN}no counter: fake has none" in str(told)
