"""The error rates of the judge, with their intervals, and which trials they count."""

from __future__ import annotations

import math
from typing import Any

import pytest
from judge_records import CASE

from ipexperf.judge.selftest import Trial, rate, spread, summarise
from ipexperf.result import Outcome


def trial(outcome: Outcome, size: float | None, **more: Any) -> Trial:
    given: dict[str, Any] = {"log_ratios": (0.0,) * 4, "seconds": 10.0, **more}
    return Trial(CASE, "x", size, outcome, "", "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z", **given)


def test_an_a_a_trial_called_regressed_is_a_false_alarm() -> None:
    """`improved` is counted apart, and trials with an injected slowdown are not counted."""
    outcomes: list[tuple[Outcome, float | None]] = [
        ("ok", 0.0), ("ok", 0.0), ("regressed", 0.0), ("improved", 0.0), ("inconclusive", 0.0),
        ("regressed", 0.1), ("regressed", None),
    ]  # fmt: skip
    found = summarise([trial(*one) for one in outcomes], 0.05)
    assert (found.slower.count, found.slower.of) == (1, 5)
    assert (found.faster.count, found.undecided) == (1, 1)
    assert len(found.measured) == 1
    assert (found.pairs, found.seconds) == (28, 70.0)


@pytest.mark.parametrize(
    ("size", "outcome", "counted"),
    [
        (0.10, "regressed", (1, 0, 0, 0)),
        (0.10, "ok", (0, 1, 0, 0)),
        (0.05, "ok", (0, 1, 0, 0)),
        (0.03, "ok", (0, 0, 1, 0)),
        (0.03, "improved", (0, 1, 0, 0)),
        (0.10, "inconclusive", (0, 0, 0, 1)),
    ],
)
def test_a_slowdown_is_caught_or_missed(size: float, outcome: Outcome, counted: tuple[int, ...]) -> None:
    """Below the tolerance ok is right. At or beyond it ok is a miss. `inconclusive` is neither."""
    (row,) = summarise([trial(outcome, size)], 0.05).rows
    assert (row.caught, row.missed, row.within, row.inconclusive) == counted


def test_trials_that_failed_or_were_cut_short_are_in_no_rate() -> None:
    """They say nothing about the judge and are counted separately."""
    found = summarise([trial("inconclusive", 0.0, cut=True), trial("failed", 0.0), trial("invalid", 0.1)], 0.05)
    assert (found.slower.of, found.cut, len(found.failed), found.rows) == (0, 1, 2, ())


@pytest.mark.parametrize(
    ("found", "of", "lo", "hi"),
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (1, 20, 0.0013, 0.2487), (0, 0, 0.0, 1.0)],
)
def test_the_interval_is_that_of_the_textbook(found: int, of: int, lo: float, hi: float) -> None:
    """It is the one of Clopper and Pearson. Without trials it is 0 to 1."""
    assert (rate(found, of).lo, rate(found, of).hi) == pytest.approx((lo, hi), abs=1e-4)


def test_the_spread_is_that_within_trials() -> None:
    """The injected slowdown is no noise: two trials far apart spread no more than each of them."""
    near, far = (-0.01, 0.01), (0.99, 1.01)
    assert spread([trial("ok", 0.0, log_ratios=near), trial("regressed", None, log_ratios=far)]) == pytest.approx(
        0.01 * math.sqrt(2)
    )
    assert spread([trial("inconclusive", 0.0, log_ratios=(0.1,))]) is None
    assert spread([trial("invalid", 0.0, log_ratios=(math.nan, 0.1))]) is None
