"""Trials of selftests in a history: they belong to no run, and merging and pruning leave them intact."""

from __future__ import annotations

import math

from history_records import HARDWARE, OK, make_case, make_measurement

from ipexperf.history import History, pruning
from ipexperf.history.selftests import record, trials
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.selftest import Trial

POLICY = PairPolicy()
BEGIN, END = "2026-01-01T00:00:00.000000+00:00", "2026-01-01T00:01:00.000000+00:00"


def make_trial(**changes):
    given = {
        "case": make_case(knobs=(("level", "O0"),)),
        "injection": "busy10",
        "size": 0.1,
        "outcome": "regressed",
        "reason": "10.1% slower",
        "started_at": BEGIN,
        "finished_at": END,
        "seconds": 60.5,
        "log_ratios": (0.1, 0.09, 0.11, 0.1),
        "ratio": 1.105,
        "lo": 1.09,
        "hi": 1.12,
        "mde": 0.03,
    }
    return Trial(**{**given, **changes})


def keep(target, *made, session="a"):
    with History.open(target) as history:
        for trial in made:
            record(history, session, trial, HARDWARE, POLICY, "suite")


def kept(target, *asked):
    with History.open(target) as history:
        return trials(history, *asked)


def test_a_trial_is_read_as_it_was_recorded(target):
    """With its case, and also without a size or an interval."""
    unknown = make_trial(injection="avx", size=None, lo=None, hi=None, mde=None, cut=True, started_at=END)
    keep(target, make_trial(), unknown)
    assert kept(target) == [make_trial(), unknown]


def test_a_pair_without_a_ratio_is_read_as_nan(target):
    """JSON has no NaN, so it is stored as null."""
    keep(target, make_trial(outcome="invalid", log_ratios=(0.1, math.nan)))
    assert [math.isnan(value) for value in kept(target)[0].log_ratios] == [False, True]


def test_trials_are_found_by_machine_and_policy(target):
    keep(target, make_trial())
    assert len(kept(target, HARDWARE["machine_key"], POLICY)) == 1
    assert kept(target, "another-machine") == []
    assert kept(target, None, PairPolicy(tolerance=0.1)) == []


def test_trials_belong_to_no_run(target):
    """They are no measurements of the case."""
    keep(target, make_trial())
    with History.open(target) as history:
        assert history.runs() == []
        assert history.trend().empty


def test_pruning_leaves_trials_and_their_cases_and_policies(target):
    """Even if no run has the case or the policy."""
    with History.open(target) as history:
        uid = history.start_run(HARDWARE, {"started_at": "2025-01-01T00:00:00Z"})
        history.record(uid, make_measurement(), OK)
        record(history, "a", make_trial(), HARDWARE, POLICY, "suite")
        assert pruning.prune(history, "2025-06-01", delete_them=True).runs == (uid,)
        assert trials(history) == [make_trial()]
