"""A run as a whole: many questions, one alarm rate; and pairs that took turns; and what differs between machines."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_records import ENVIRONMENT, environment

from ipexperf.judge.environment import differences
from ipexperf.judge.pairs import combine, neighbour_ratio
from ipexperf.judge.policy import Policy
from ipexperf.judge.run import benjamini_hochberg, settle
from ipexperf.result import BaselineEvidence, PairsEvidence, Verdict

POLICY = Policy()
KNOWN = BaselineEvidence(between_sessions_known=True)
OK = Verdict("ok", "fine", ratio=1.0, lo=0.99, hi=1.01, p_value=0.9, evidence=KNOWN)
SLOW = Verdict("regressed", "20 % slower", ratio=1.2, lo=1.15, hi=1.25, p_value=1e-4, evidence=KNOWN)
WEAK = replace(SLOW, outcome="inconclusive", p_value=0.004)
"""A case that looks slower, though not beyond its share of the alarm rate."""


def test_benjamini_hochberg_knows_the_textbook_example() -> None:
    p_values = [0.01, 0.04, 0.03, 0.005, 0.5]
    assert benjamini_hochberg(p_values, 0.05) == [True, True, True, True, False]
    assert benjamini_hochberg(p_values, 0.03) == [True, False, False, True, False]
    assert benjamini_hochberg([], 0.05) == []


@given(st.lists(st.floats(0, 1), min_size=1), st.floats(0.001, 0.4))
def test_benjamini_hochberg_keeps_the_smallest(p_values: list[float], rate: float) -> None:
    kept = benjamini_hochberg(p_values, rate)
    worst = max((p for p, keep in zip(p_values, kept, strict=True) if keep), default=0)
    assert all(keep or p >= worst for p, keep in zip(p_values, kept, strict=True))


def test_a_plain_regression_stays_one() -> None:
    run = settle({"a": SLOW, "b": OK, "c": Verdict("no_baseline", "")}, POLICY)
    assert (run.verdicts["a"], run.line, run.shift, run.fails) == (SLOW, "", None, True)


@pytest.mark.parametrize(
    ("busy", "share", "spoilt"), [(0, 0.5, False), (2, 0.5, False), (3, 0.5, True), (3, 1.0, False)]
)
def test_a_run_of_which_too_much_does_not_count_is_spoilt(busy: int, share: float, spoilt: bool) -> None:  # noqa: FBT001
    """Its other cases may all be fine. It says how many do not count."""
    contended = Verdict("invalid", "machine contended", contended=True)
    verdicts = {str(x): contended if x < busy else OK for x in range(4)}
    run = settle(verdicts, POLICY, contended=share)
    assert (run.spoilt, run.fails) == (spoilt, False)
    assert run.line == ("3 of 4 cases do not count, because the machine was busy" if spoilt else "")


@given(st.integers(0, 400), st.integers(1, 50))
def test_however_many_cases_share_the_alarm_rate_the_run_keeps_it(cases: int, more: int) -> None:
    share = POLICY.shared(cases)
    assert 0 < share.alpha <= POLICY.alpha
    assert cases * share.alpha <= POLICY.false_discovery_rate + 1e-12
    assert POLICY.shared(cases + more).alpha <= share.alpha
    assert replace(share, alpha=POLICY.alpha) == POLICY


def test_ten_cases_are_few_enough_for_the_rate_of_one() -> None:
    """A small run is judged by the very policy that a single case is, under the same name."""
    assert POLICY.shared(0) == POLICY.shared(1) == POLICY.shared(10) == POLICY
    assert POLICY.shared(11).label != POLICY.label
    assert POLICY.shared(200).alpha == pytest.approx(0.00025)


def test_a_failed_test_is_never_taken_back() -> None:
    """Each case was judged with its share: what it said is final, even where the run says more of it."""
    lone = settle({"a": replace(SLOW, p_value=0.004), **{str(x): OK for x in range(200)}}, POLICY)
    assert (lone.verdicts["a"].outcome, lone.fails, lone.line) == ("regressed", True, "")
    assert settle({str(x): SLOW for x in range(6)}, POLICY).fails


def test_one_weak_case_among_two_hundred_is_chance() -> None:
    run = settle({"weak": WEAK, **{str(x): OK for x in range(200)}}, POLICY)
    assert (run.line, run.slower, run.fails) == ("", (), False)


def test_many_weak_cases_are_more_than_chance_and_are_told_in_one_line() -> None:
    """No single one is beyond its share, so no test fails, and neither does the run."""
    weak = {f"weak {x}": WEAK for x in range(20)}
    run = settle({**weak, **{str(x): OK for x in range(180)}}, POLICY)
    assert run.slower == tuple(weak)
    assert run.line == (
        "20 of 200 stable cases are slower than chance allows over all of them, "
        "though none exceeds its own share of the alarm rate"
    )
    assert run.fails is False
    assert run.verdicts == {**weak, **{str(x): OK for x in range(180)}}


def test_weak_cases_beside_live_baselines_are_counted_among_themselves() -> None:
    """They say nothing of the platform, so the run has no stable case for that, and yet two that were tested."""
    live = replace(WEAK, evidence=PairsEvidence("baseline", lock="1" * 64))
    run = settle({"a": live, "b": replace(OK, evidence=live.evidence)}, POLICY)
    assert run.line.startswith("1 of 2 stable cases is slower than chance allows")
    assert run.shift is None


@pytest.mark.parametrize("facts", [None, BaselineEvidence(between_sessions_known=False)])
def test_an_assumed_noise_proves_nothing_about_the_whole(facts: BaselineEvidence | None) -> None:
    """Where no noise between sessions was seen, the run says no more than its cases do."""
    run = settle({str(x): replace(WEAK, evidence=facts) for x in range(6)}, POLICY)
    assert (run.slower, run.fails, {x.outcome for x in run.verdicts.values()}) == ((), False, {"inconclusive"})
    assert (run.line, run.shift) == ("", None)


@pytest.mark.parametrize("facts", [None, BaselineEvidence(between_sessions_known=False)])
def test_only_stable_cases_say_that_the_platform_moved(facts: BaselineEvidence | None) -> None:
    """However many there are whose noise is assumed: they neither make a shift nor hide one."""
    open_questions = {f"new {x}": replace(WEAK, evidence=facts, ratio=1.5) for x in range(20)}
    still = settle({**open_questions, **{str(x): OK for x in range(5)}}, POLICY)
    assert (still.shift, still.line, still.fails) == (None, "", False)
    unmoved = {f"new {x}": replace(WEAK, evidence=facts, ratio=1.0) for x in range(20)}
    moved = settle({**unmoved, **{str(x): WEAK for x in range(5)}}, POLICY)
    assert (moved.shift, moved.fails) == (pytest.approx(1.2), True)
    assert moved.line.startswith("platform shift: the median of 5 stable cases is 20.0% slower than its baseline (5 ")


def test_a_moved_platform_is_one_headline() -> None:
    """The cases that moved with it are no findings of their own; one that moved further is."""
    facts = replace(KNOWN, differences=("torch: 2.8.0 -> 2.9.0",))
    moved = {str(x): replace(SLOW, evidence=facts) for x in range(6)}
    run = settle({**moved, "far": replace(SLOW, ratio=3.0, lo=2.8, hi=3.2, evidence=facts)}, POLICY.for_run())
    assert {run.verdicts[str(x)].outcome for x in range(6)} == {"platform_shift"}
    assert {run.verdicts[str(x)].policy for x in range(6)} == {POLICY.for_run().label}
    assert run.verdicts["far"].outcome == "regressed"
    assert run.shift == pytest.approx(1.2)
    assert run.line == (
        "platform shift: the median of 7 stable cases is 20.0% slower than its baseline (6 cases moved with it); "
        "changed for all: torch: 2.8.0 -> 2.9.0"
    )


@pytest.mark.parametrize(("weak", "fails"), [(5, True), (4, False)])
def test_a_run_fails_where_half_of_its_cases_became_slower_though_none_did_alone(weak: int, fails: bool) -> None:  # noqa: FBT001
    """All tests passed: it is the median case that is proven to be slower, and that is one alarm."""
    vague = replace(WEAK, p_value=0.3)
    cases = {str(x): WEAK if x < weak else vague for x in range(10)}
    run = settle(cases, POLICY)
    assert not any(x.fails for x in cases.values())
    assert run.fails is fails
    assert [x.outcome for x in run.verdicts.values()].count("platform_shift") == weak
    assert f"({weak} cases moved with it)" in run.line
    assert run.slower == ()


def test_a_weak_case_that_moved_further_than_the_platform_is_told_beside_it() -> None:
    far = replace(WEAK, ratio=3.0, lo=2.0, hi=4.0)
    run = settle({"far": far, **{str(x): SLOW for x in range(6)}}, POLICY)
    assert run.verdicts["far"] == far
    assert run.slower == ("far",)
    assert run.line.endswith("; 1 of 7 stable cases is slower than chance allows over all of them, "
                             "though none exceeds its own share of the alarm rate")  # fmt: skip


def test_a_shift_that_no_case_proves_fails_nothing() -> None:
    vague = replace(WEAK, p_value=0.2)
    run = settle({str(x): vague for x in range(6)}, POLICY)
    assert (run.fails, {x.outcome for x in run.verdicts.values()}) == (False, {"inconclusive"})
    assert "no single case proves it" in run.line


def test_a_faster_platform_is_no_list_of_improvements() -> None:
    fast = Verdict("improved", "", ratio=0.8, lo=0.75, hi=0.85, p_value=1.0, evidence=KNOWN)
    run = settle({"slow": SLOW, **{str(x): fast for x in range(6)}}, POLICY)
    assert run.verdicts["0"].outcome == "platform_shift"
    assert run.verdicts["slow"].outcome == "regressed"
    assert "20.0% faster" in run.line
    assert not settle({str(x): fast for x in range(6)}, POLICY).fails
    mixed = {f"weak {x}": WEAK for x in range(3)} | {str(x): replace(fast, ratio=0.5) for x in range(3)}
    assert settle(mixed, POLICY).shift == pytest.approx(math.sqrt(1.2 * 0.5))
    assert not settle(mixed, POLICY).fails


def test_pairs_stand_beside_one_another_whenever_they_were_stopped() -> None:
    """Their p-values are of the procedure: the matrix shows some that none shows alone, and names none that is ok."""
    pairs = replace(WEAK, evidence=PairsEvidence("stack=stock"))
    within = replace(pairs, outcome="ok", ratio=1.03, lo=1.02, hi=1.04)
    assert settle({"a": pairs, "b": pairs}, POLICY).slower == ("a", "b")
    assert settle({"a": within, "b": within}, POLICY).slower == ()
    unlikely = {"a": pairs, **{str(x): replace(within, p_value=1.0) for x in range(40)}}
    assert settle(unlikely, POLICY).slower == ()


def test_a_shift_of_pairs_is_said_to_be_against_the_other_arm() -> None:
    """There is no baseline that the median case could be slower than."""
    pairs = replace(SLOW, evidence=PairsEvidence("stack=stock"))
    line = settle({str(x): pairs for x in range(5)}, POLICY).line
    assert "the median of 5 stable cases is 20.0% slower than the other arm" in line


def test_four_cases_are_no_platform() -> None:
    assert settle({str(x): SLOW for x in range(4)}, POLICY).shift is None


def test_neighbouring_turns_cancel_what_both_suffer() -> None:
    drift = [1.0, 1.1, 1.5, 1.2, 2.0]
    assert neighbour_ratio(drift, [x * 1.02 for x in drift]) == pytest.approx(math.log(1.02))


@given(st.lists(st.tuples(st.floats(1e-4, 1), st.floats(1e-4, 1)), min_size=1))
def test_swapping_the_arms_turns_the_ratio_over(turns: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in turns], [y for _, y in turns]
    assert neighbour_ratio(a, b) == pytest.approx(-neighbour_ratio(b, a))


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [1.0, 2.0])])
def test_turns_must_be_paired(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="equally many turns"):
        neighbour_ratio(a, b)


def test_pairs_are_the_replicates() -> None:
    found = combine([0.01, 0.02, 0.03])
    # t(0.975, 2) = 4.3027, standard error 0.01 / sqrt(3)
    assert found.ratio == pytest.approx(math.exp(0.02))
    assert found.lo == pytest.approx(math.exp(0.02 - 4.3027 * 0.01 / math.sqrt(3)), rel=1e-5)
    assert found.hi == pytest.approx(math.exp(0.02 + 4.3027 * 0.01 / math.sqrt(3)), rel=1e-5)
    assert found.pairs == 3


def test_one_pair_has_no_bounds() -> None:
    found = combine([0.1])
    assert (found.lo, found.hi, found.pairs) == (None, None, 1)
    with pytest.raises(ValueError, match="at least one pair"):
        combine([])


def test_differences_are_said_in_words() -> None:
    new = environment(
        variables={"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
        software={"torch": "2.9.0", "torch_build": "a\nc", "executable": "/b/python"},
        hardware={"isa": ["avx512f", "avx10"], "frequency_khz": "1000000"},
    )
    assert differences(ENVIRONMENT, {**new, "git": {"commit": "def"}}) == [
        "ONEDNN_MAX_CPU_ISA: unset -> AVX512_CORE",
        "torch: 2.8.0 -> 2.9.0",
        "torch_build: changed",
        "isa: lost amx_bf16; gained avx10",
    ]


def test_several_instances_differ_by_name() -> None:
    """Where instances stand beside one another each has a placement of its own."""
    one, other = ({"cores": [core], "threads": threads} for core, threads in ((0, 1), (1, 2)))
    alone, before, after = ({**ENVIRONMENT, "placement": placed} for placed in (one, [one, one], [one, other]))
    assert differences(before, before) == []
    assert differences(before, after) == ["instance 1.cores: [0] -> [1]", "instance 1.threads: 1 -> 2"]
    assert differences(alone, after)[:2] == ["cores: [0] -> unset", "instance 0.cores: unset -> [0]"]
    assert differences(ENVIRONMENT, ENVIRONMENT) == []
