"""A case has regressed if both of its measurements say so."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_records import QUIET, baseline, candidate, measurement

from ipexperf.judge import remeasure, screen
from ipexperf.judge.accept import accept
from ipexperf.judge.baseline import Baselines
from ipexperf.judge.policy import Policy
from ipexperf.judge.run import settle
from ipexperf.judge.spread import usual_noise
from ipexperf.outcomes import Outcome, has_numbers
from ipexperf.ratio import Ratio
from ipexperf.units import percent
from ipexperf.verdict import BaselineEvidence, Verdict

POLICY = Policy()
SLOW = Verdict("regressed", ratio=Ratio(1.2, 1.15, 1.25), policy="p", evidence=BaselineEvidence(run="a"))
OK = Verdict("ok", ratio=Ratio(1.01), policy="p", evidence=BaselineEvidence(run="b"))


def test_the_numbers_of_a_case_that_was_measured_twice_are_of_all_its_launches() -> None:
    """As the times in the table are, also where something else than speed looked worse."""
    few, many = (
        replace(OK, outcome="inconclusive", reason="two launches", ratio=Ratio(1.4)),
        replace(OK, ratio=Ratio(1.02)),
    )
    found = remeasure.settle(few, replace(OK, ratio=Ratio(0.99)), many)
    assert (found.outcome, found.ratio, found.reason) == ("ok", Ratio(1.02), OK.reason)
    once = remeasure.settle(SLOW, OK, many)
    assert once.times == 1.02
    assert once.reason == "measured twice in this run: +20.0 % at first, +1.0 % the second time"


def test_a_case_that_looks_slow_only_over_all_launches_is_inconclusive() -> None:
    found = remeasure.settle(OK, OK, SLOW)
    assert (found.outcome, found.fails) == ("inconclusive", False)
    assert found.reason == "measured twice in this run: +1.0 % at first, +1.0 % the second time"


@pytest.mark.parametrize("outcome", ["failed", "invalid"])
def test_a_case_that_fails_at_the_second_measurement_has_failed(outcome: Outcome) -> None:
    assert remeasure.settle(SLOW, replace(OK, outcome=outcome), OK).outcome == outcome
    assert remeasure.settle(SLOW, OK, replace(OK, outcome=outcome)).outcome == outcome


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_surely_slow_case_whose_run_ended_early_is_not_accepted(sessions: int) -> None:
    """It is stored as inconclusive. A young baseline accepts such a session, but not one of three times the time."""
    known = Baselines("xeon-2c", (baseline(QUIET[:sessions]),))
    for times, accepted in ((3, False), (1.06, True)):
        slow = [times * value for value in QUIET[0]]
        verdict = screen.judge(measurement(slow), known.cases[0], usual_noise([known.cases[0].log_times], POLICY))
        assert (verdict.outcome == "regressed") is not accepted
        stored = remeasure.without_second(verdict)
        offered = [candidate(slow, 9, outcome=stored.outcome, ratio=stored.times)]
        done = accept(known, offered, reason="r", by="ada", now="2026-02-01T00:00:00+00:00")
        assert bool(done.candidates) is accepted, done.refused
        anyway = accept(known, offered, reason="r", by="ada", now="2026-02-01T00:00:00+00:00", regression_ok=True)
        assert len(anyway.baselines.cases[0].sessions) == (sessions + 1 if accepted else 1)


def test_the_merged_measurement_has_all_launches_of_both() -> None:
    """The numbering goes on, so that no launch replaces another."""
    one, other = measurement([0.02, 0.03]), measurement([0.01, 0.04, 0.05])
    found = remeasure.merged(one, replace(other, cut="the budget was spent"))
    assert [launch.index for launch in found.launches] == [0, 1, 2, 3, 4]
    assert found.values("step_time") == (0.02, 0.03, 0.01, 0.04, 0.05)
    assert found.cut == "the budget was spent"


RATIOS = st.one_of(st.none(), st.floats(0.01, 100))
KNOWN = BaselineEvidence(between_sessions_known=True)


@given(RATIOS, st.sampled_from(get_args(Outcome)), RATIOS, st.sampled_from(["", "so it is"]))
def test_the_final_reason_mentions_a_first_verdict_of_regressed(
    before: float | None, outcome: Outcome, after: float | None, why: str
) -> None:
    """Whatever the second measurement and the run as a whole say."""
    first = Verdict("regressed", "it was slower", ratio=None if before is None else Ratio(before))
    second = Verdict(outcome, why, ratio=None if after is None else Ratio(after))
    found = remeasure.settle(first, second, second)
    assert found.outcome not in ("ok", "improved", "no_baseline", "not_comparable")
    told = "by an unknown share" if before is None else percent(before)
    assert told in found.reason
    assert why in found.reason
    assert ("measured twice in this run" in found.reason) is has_numbers(outcome)
    assert found.outcome in (("regressed",) if outcome == "regressed" else ("inconclusive", outcome))
    others = {str(number): replace(SLOW, p_value=1e-4, evidence=KNOWN) for number in range(6)}
    run = settle({"a": found, **others}, POLICY.for_run())
    assert run.verdicts["a"].reason.endswith(found.reason)
