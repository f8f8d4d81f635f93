"""A run as a whole has one alarm rate for all of its cases. Also: ratios of pairs, and differences of environments."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_records import ENVIRONMENT, environment

from ipexperf.judge.environment import differences
from ipexperf.judge.policy import Policy
from ipexperf.judge.ratios import combine
from ipexperf.judge.run import benjamini_hochberg, settle
from ipexperf.ratio import Ratio
from ipexperf.verdict import BaselineEvidence, PairsEvidence, Verdict

POLICY = Policy()
KNOWN = BaselineEvidence(between_sessions_known=True)
OK = Verdict("ok", "fine", ratio=Ratio(1.0, 0.99, 1.01), p_value=0.9, evidence=KNOWN)
SLOW = Verdict("regressed", "20 % slower", ratio=Ratio(1.2, 1.15, 1.25), p_value=1e-4, evidence=KNOWN)
WEAK = replace(SLOW, outcome="inconclusive", p_value=0.004)
"""A case that looks slower, though not beyond its share of the alarm rate."""


def test_benjamini_hochberg_gives_the_textbook_example() -> None:
    p_values = [0.01, 0.04, 0.03, 0.005, 0.5]
    assert benjamini_hochberg(p_values, 0.05) == [True, True, True, True, False]
    assert benjamini_hochberg(p_values, 0.03) == [True, False, False, True, False]
    assert benjamini_hochberg([], 0.05) == []


@pytest.mark.parametrize(
    ("busy", "doubtful", "why"),
    [(0, 0, ""), (2, 0, ""), (1, 1, ""), (3, 0, "3 measured on a busy machine"), (0, 3, "3 inconclusive"),
     (1, 2, "2 inconclusive, 1 measured on a busy machine")],
)  # fmt: skip
def test_a_run_of_which_most_could_not_be_told_says_so_and_fails_nothing(busy: int, doubtful: int, why: str) -> None:
    """Also those that move nothing else, such as functions in pairs."""
    contended = Verdict("invalid", "machine contended", contended=True)
    cases = {str(at): x for at, x in enumerate([*[contended] * busy, *[WEAK] * doubtful, *[OK] * 4][:4])}
    for run in (settle(cases, POLICY), settle({}, POLICY, cases)):
        assert (run.untold, run.spoilt, run.fails) == (bool(why), busy > 2, False)
        assert run.line.startswith(f"COULD NOT TELL 3 of 4: {why}" if why else "")
        assert ("COULD NOT TELL" in run.line) == bool(why)


@given(st.integers(0, 400), st.integers(1, 50))
def test_the_alarm_rate_of_a_run_does_not_depend_on_its_number_of_cases(cases: int, more: int) -> None:
    share = POLICY.shared(cases)
    assert 0 < share.alpha <= POLICY.alpha
    assert cases * share.alpha <= POLICY.false_discovery_rate + 1e-12
    assert POLICY.shared(cases + more).alpha <= share.alpha
    assert share.again_alpha / share.alpha == pytest.approx(POLICY.again_alpha / POLICY.alpha)


def test_one_weakly_slower_case_among_two_hundred_is_chance() -> None:
    run = settle({"weak": WEAK, **{str(x): OK for x in range(200)}}, POLICY)
    assert (run.line, run.slower, run.fails) == ("", (), False)


def test_many_weakly_slower_cases_are_reported_in_one_line() -> None:
    """None is beyond its own share of the alarm rate, so no test fails and neither does the run."""
    weak = {f"weak {x}": WEAK for x in range(20)}
    run = settle({**weak, **{str(x): OK for x in range(180)}}, POLICY)
    assert run.slower == tuple(weak)
    assert run.line == (
        "20 of 200 stable cases are slower than chance allows over all of them, "
        "though none exceeds its own share of the alarm rate"
    )
    assert run.fails is False
    assert run.verdicts == {**weak, **{str(x): OK for x in range(180)}}


def test_weakly_slower_cases_beside_live_baselines_are_counted_too() -> None:
    """They show nothing of the platform, so no case shows whether it moved. Both were still tested."""
    live = replace(WEAK, evidence=PairsEvidence("baseline", lock="1" * 64))
    run = settle({"a": live, "b": replace(OK, evidence=live.evidence)}, POLICY)
    assert run.line.startswith("1 of 2 stable cases is slower than chance allows")


@pytest.mark.parametrize("facts", [None, BaselineEvidence(between_sessions_known=False)])
def test_cases_with_assumed_noise_say_nothing_about_the_run(facts: BaselineEvidence | None) -> None:
    """Then the run says no more than its cases do."""
    run = settle({str(x): replace(WEAK, evidence=facts) for x in range(6)}, POLICY)
    assert (run.slower, run.fails, {x.outcome for x in run.verdicts.values()}) == ((), False, {"inconclusive"})
    assert run.line == "COULD NOT TELL 6 of 6: 6 inconclusive"


@pytest.mark.parametrize("facts", [None, BaselineEvidence(between_sessions_known=False)])
def test_only_cases_with_known_noise_show_a_shift_of_the_platform(facts: BaselineEvidence | None) -> None:
    """Cases whose noise is assumed neither make a shift nor hide one, however many there are."""
    open_questions = {f"new {x}": replace(WEAK, evidence=facts, ratio=Ratio(1.5)) for x in range(20)}
    still = settle({**open_questions, **{str(x): OK for x in range(5)}}, POLICY)
    assert (still.line, still.fails) == ("COULD NOT TELL 20 of 25: 20 inconclusive", False)
    unmoved = {f"new {x}": replace(WEAK, evidence=facts, ratio=Ratio(1.0)) for x in range(20)}
    moved = settle({**unmoved, **{str(x): WEAK for x in range(5)}}, POLICY)
    assert moved.fails
    assert "; platform shift: the median of 5 stable cases is 20.0 % slower than its baseline (5 " in moved.line


def test_a_shift_of_the_platform_is_one_line() -> None:
    """Cases that moved with it are no findings. One that moved further is."""
    facts = replace(KNOWN, differences=("torch: 2.8.0 -> 2.9.0",))
    moved = {str(x): replace(SLOW, evidence=facts) for x in range(6)}
    run = settle({**moved, "far": replace(SLOW, ratio=Ratio(3.0, 2.8, 3.2), evidence=facts)}, POLICY.for_run())
    assert {run.verdicts[str(x)].outcome for x in range(6)} == {"platform_shift"}
    assert {run.verdicts[str(x)].policy for x in range(6)} == {POLICY.for_run().label}
    assert run.verdicts["far"].outcome == "regressed"
    assert run.line == (
        "platform shift: the median of 7 stable cases is 20.0 % slower than its baseline (6 cases moved with it); "
        "changed for all: torch: 2.8.0 -> 2.9.0"
    )


@pytest.mark.parametrize(("weak", "fails"), [(5, True), (4, False)])
def test_a_run_fails_if_its_median_case_is_surely_slower_though_no_case_is_alone(weak: int, fails: bool) -> None:  # noqa: FBT001
    """All tests passed. The shift of the median case is one alarm."""
    vague = replace(WEAK, p_value=0.3)
    cases = {str(x): WEAK if x < weak else vague for x in range(10)}
    run = settle(cases, POLICY)
    assert not any(x.fails for x in cases.values())
    assert run.fails is fails
    assert [x.outcome for x in run.verdicts.values()].count("platform_shift") == weak
    assert f"({weak} cases moved with it)" in run.line
    assert run.slower == ()


def test_a_weakly_slower_case_that_moved_further_than_the_platform_is_reported() -> None:
    far = replace(WEAK, ratio=Ratio(3.0, 2.0, 4.0))
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
    fast = Verdict("improved", "", ratio=Ratio(0.8, 0.75, 0.85), p_value=1.0, evidence=KNOWN)
    run = settle({"slow": SLOW, **{str(x): fast for x in range(6)}}, POLICY)
    assert run.verdicts["0"].outcome == "platform_shift"
    assert run.verdicts["slow"].outcome == "regressed"
    assert "20.0 % faster" in run.line
    assert not settle({str(x): fast for x in range(6)}, POLICY).fails
    mixed = {f"weak {x}": WEAK for x in range(3)} | {str(x): replace(fast, ratio=Ratio(0.5)) for x in range(3)}
    assert "is 22.5 % faster" in settle(mixed, POLICY).line
    assert not settle(mixed, POLICY).fails


def test_p_values_of_pairs_are_combined_wherever_the_pairs_stopped() -> None:
    """Together they show slower cases that none shows alone. A case that is ok is not named."""
    pairs = replace(WEAK, evidence=PairsEvidence("stack=stock"))
    within = replace(pairs, outcome="ok", ratio=Ratio(1.03, 1.02, 1.04))
    assert settle({"a": pairs, "b": pairs}, POLICY).slower == ("a", "b")
    assert settle({"a": within, "b": within}, POLICY).slower == ()
    unlikely = {"a": pairs, **{str(x): replace(within, p_value=1.0) for x in range(40)}}
    assert settle(unlikely, POLICY).slower == ()


def test_pairs_are_the_replicates() -> None:
    found = combine([0.01, 0.02, 0.03])
    # t(0.975, 2) = 4.3027, standard error 0.01 / sqrt(3)
    assert found.value == pytest.approx(math.exp(0.02))
    assert found.lo == pytest.approx(math.exp(0.02 - 4.3027 * 0.01 / math.sqrt(3)), rel=1e-5)
    assert found.hi == pytest.approx(math.exp(0.02 + 4.3027 * 0.01 / math.sqrt(3)), rel=1e-5)
    assert combine([0.1]) == Ratio(math.exp(0.1))


def test_differences_of_environments_are_described_in_words() -> None:
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


def test_a_fact_that_only_one_environment_has_is_no_difference() -> None:
    """It was recorded before ipexperf looked at it. A part of a fact that both have is one."""
    new = environment(hardware={"nice": 10}, software={"at_start": {"sitecustomize": "0a1b2c3d"}})
    assert differences(ENVIRONMENT, new) == differences(new, ENVIRONMENT) == []
    old = environment(hardware={"nice": 0}, software={"at_start": {}})
    assert differences(old, new) == ["at_start.sitecustomize: unset -> 0a1b2c3d", "nice: 0 -> 10"]


def test_several_instances_differ_by_name() -> None:
    """Each instance has its own placement."""
    one, other = ({"cores": [core], "threads": threads} for core, threads in ((0, 1), (1, 2)))
    alone, before, after = ({**ENVIRONMENT, "placement": placed} for placed in (one, [one, one], [one, other]))
    assert differences(before, before) == []
    assert differences(before, after) == ["instance 1.cores: [0] -> [1]", "instance 1.threads: 1 -> 2"]
    assert differences(alone, after)[:2] == ["cores: [0] -> unset", "instance 0.cores: unset -> [0]"]
    assert differences(ENVIRONMENT, ENVIRONMENT) == []
