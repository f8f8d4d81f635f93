"""A session against a stored baseline: the order of outcomes, and that no verdict claims more than the data shows."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_records import CASE, ENVIRONMENT, QUIET, baseline, ends, environment, measurement

from ipexperf.case import NetworkCase
from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import accuracy_change, decide, judge, on_changed_host
from ipexperf.judge.sentence import sentence
from ipexperf.judge.spread import centre, compare, usual_noise
from ipexperf.result import Check, Measurement

POLICY = Policy()
WEAKER = {"regressed": ["inconclusive"], "improved": ["ok", "inconclusive"], "ok": ["inconclusive"], "inconclusive": []}
seconds = st.floats(1e-3, 1.0)
launches = st.lists(seconds, min_size=2, max_size=5)
histories = st.lists(launches, min_size=1, max_size=6)


def test_a_contended_machine_fails_no_test_and_a_failed_proof_does() -> None:
    """A busy machine shows nothing wrong. If a proof failed as well, the test fails."""
    busy = judge(measurement([0.01, 0.01], contended="steal 12 %"), None, POLICY)
    assert (busy.outcome, busy.contended) == ("invalid", True)
    assert not busy.fails
    wrong = (Check("dtype", False, "float32", "bfloat16"),)
    unproven = judge(measurement([0.01, 0.01], contended="steal 12 %", proof=wrong), None, POLICY)
    assert unproven.outcome == "invalid"
    assert unproven.fails


@pytest.mark.parametrize(
    ("where", "case", "named"),
    [
        (environment(hardware={"threads": 4}), CASE, "threads: 2 -> 4"),
        (environment(hardware={"cpu": "Epyc"}), CASE, "cpu: Xeon -> Epyc"),
        ({**ENVIRONMENT, "machine_key": "epyc"}, CASE, "machine_key: xeon-2c -> epyc"),
        (ENVIRONMENT, replace(CASE, batch=16), "batch: 8 -> 16"),
    ],
)
def test_other_hardware_another_machine_and_other_work_are_not_comparable(
    where: dict[str, object], case: NetworkCase, named: str
) -> None:
    verdict = judge(measurement([0.01, 0.01], where=where, case=case), baseline(), POLICY)
    assert verdict.outcome == "not_comparable"
    assert named in verdict.reason


def test_other_software_is_noted_and_never_silences_the_alarm() -> None:
    lost = environment(variables={"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}, software={"torch": "2.9.0"})
    verdict = judge(measurement([0.02, 0.0201, 0.0199], where=lost), baseline(), POLICY)
    assert verdict.outcome == "regressed"
    assert sentence(verdict).endswith("; ONEDNN_MAX_CPU_ISA: unset -> AVX512_CORE and 1 more difference")
    assert verdict.evidence is not None
    assert verdict.evidence.differences[1] == "torch: 2.8.0 -> 2.9.0"


@pytest.mark.parametrize(
    ("name", "old", "new", "outcome"),
    [
        ("accuracy", 0.90, 0.80, "invalid"),
        ("accuracy", 0.90, 0.99, "invalid"),
        ("accuracy", 0.90, 0.91, "ok"),
        ("fidelity", 4e-3, 1e-3, "invalid"),
        ("fidelity", 1e-7, 5e-7, "ok"),
        ("loss", 1.0, 1.2, "invalid"),
        ("loss", 1.0, math.nan, "invalid"),
    ],
)
def test_accuracy_may_not_leave_its_bound_either_way(name: str, old: float, new: float, outcome: str) -> None:
    known = baseline([session for session in QUIET for _ in range(4)], accuracy={name: old})
    assert judge(measurement([0.01, 0.01, 0.01], **{name: new}), known, POLICY).outcome == outcome


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        # ResNet-18 in bf16 on IPEX, of the same software: what is left of the loss has one of two values
        ({"loss": 0.0536, "first_loss": 1.77}, {"loss": 0.0412, "first_loss": 1.77}, False),
        ({"loss": 0.0536, "first_loss": 1.77}, {"loss": 0.2, "first_loss": 1.77}, True),
        ({"loss": 5.5, "first_loss": 6.9}, {"loss": 5.9, "first_loss": 6.9}, True),
        # a baseline from before the first loss was recorded
        ({"loss": 0.0536}, {"loss": 0.0412, "first_loss": 1.77}, False),
        ({"loss": 0.0536}, {"loss": 0.0412}, True),
    ],
)
def test_what_training_left_of_the_loss_may_be_rounding(
    old: dict[str, float],
    new: dict[str, float],
    changed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert bool(accuracy_change(old, new, Policy())) is changed


def test_a_doubled_time_is_caught_with_three_sessions() -> None:
    verdict = judge(measurement([0.02, 0.0201, 0.0199]), baseline(), POLICY)
    assert verdict.outcome == "regressed"
    low, high = ends(verdict)
    assert 1.05 < low < (verdict.times or 0.0) < high
    assert verdict.p_value is not None
    assert verdict.p_value < POLICY.again_alpha
    assert sentence(verdict).startswith("99.7 % slower: 10.0 -> 20.0 ms (+77.4 to +124.8 %; 3 sessions)")


@pytest.mark.parametrize("sessions", [1, 2])
def test_with_the_noise_between_sessions_unknown_there_is_no_all_clear(sessions: int) -> None:
    known = baseline(QUIET[:sessions])
    verdict = judge(measurement([0.01] * 3), known, usual_noise([known.log_times], POLICY))
    assert verdict.outcome == "inconclusive"
    assert "the noise between sessions is not known before 3 of them" in verdict.reason


def test_one_quiet_session_suffices_to_catch_a_slowdown_and_a_loud_one_does_not() -> None:
    """The launches of a session tell how quiet the machine is. That the sessions differ by 19 % need not be assumed."""
    quiet, loud = baseline(QUIET[:1]), baseline([(0.008, 0.012, 0.01)])
    slow = measurement([0.0121, 0.0120, 0.0119])
    assert judge(slow, quiet, usual_noise([quiet.log_times], POLICY)).outcome == "regressed"
    assert judge(slow, loud, usual_noise([loud.log_times], POLICY)).outcome == "inconclusive"


def test_a_slowdown_under_the_same_software_and_source_is_said_to_be_of_the_machine() -> None:
    """Where the source is not known, or a variable differs, nothing is claimed."""
    same = {**ENVIRONMENT, "source": {"net.py": "a"}}
    slow = [0.02, 0.0201, 0.0199]
    newer = {**same, "hardware": {**same["hardware"], "kernel": "6.2"}}
    known = baseline(where={**same, "hardware": {**same["hardware"], "kernel": "6.1"}})
    reason = judge(measurement(slow, where=newer), known, POLICY).reason
    assert reason == "same software, same source: the machine or the data"
    for where in (ENVIRONMENT, {**same, "source": {"net.py": "b"}}, {**same, "variables": {"A": "1"}}):
        found = judge(measurement(slow, where=where), known, POLICY)
        assert (found.outcome, "the machine" in found.reason) == ("regressed", False)


HOST = environment(hardware={"host": "lab", "governor": "performance", "memory": 8})


def test_a_baseline_of_this_host_under_another_key_is_no_missing_baseline() -> None:
    """It fails. A host of another name is another host."""
    fewer = environment(hardware={"host": "lab", "cores": 1, "memory": 8}) | {"machine_key": "xeon-1c"}
    known, measured = baseline(where=HOST), measurement([0.01] * 3, where=fewer)
    none = judge(measured, None, POLICY)
    found = on_changed_host(none, measured, known, POLICY)
    assert (found.outcome, found.fails) == ("not_comparable", True)
    assert found.reason.startswith("this host is not what it was when the baseline was accepted: cores: 2 -> 1")
    elsewhere = replace(measured, environment=fewer | {"hardware": fewer["hardware"] | {"host": "ci-7f3a"}})
    assert on_changed_host(none, elsewhere, known, POLICY) == none


def test_another_governor_is_said_first_and_the_speed_is_judged_all_the_same() -> None:
    saving = environment(hardware={"host": "lab", "governor": "powersave", "memory": 8})
    known, measured = baseline(where=HOST), measurement([0.01] * 3, where=saving)
    found = on_changed_host(judge(measured, known, POLICY), measured, known, POLICY)
    assert found.fails
    assert found.times == pytest.approx(1, abs=0.02)
    assert found.reason.startswith(
        "this host is not what it was when the baseline was accepted: governor: performance -> powersave"
    )
    alike = measurement([0.01] * 3, where=HOST)
    assert not on_changed_host(judge(alike, known, POLICY), alike, known, POLICY).fails


def test_a_case_that_never_began_is_inconclusive_and_has_no_number() -> None:
    """Nothing was launched, so nothing failed. There is no ratio, and no 0 in its place."""
    never = Measurement(CASE, (), ENVIRONMENT, "", "", cut="the budget was spent already")
    for known in (None, baseline()):
        verdict = judge(never, known, POLICY)
        assert (verdict.outcome, verdict.fails) == ("inconclusive", False)
        assert verdict.reason == "the budget was spent already"
        assert (verdict.ratio, verdict.p_value) == (None, None)
    assert judge(replace(never, cut=""), None, POLICY).outcome == "failed"


@pytest.mark.parametrize(("values", "outcome"), [([0.02] * 3, "regressed"), ([0.02], "inconclusive")])
def test_the_reason_counts_missing_launches_whatever_the_verdict(values: list[float], outcome: str) -> None:
    cut = replace(measurement(values), cut="the budget was spent after 1 of 3 launches")
    verdict = judge(cut, baseline(), POLICY)
    assert verdict.outcome == outcome
    assert sentence(verdict).endswith("; the budget was spent after 1 of 3 launches")
    assert judge(cut, None, POLICY).reason.endswith("; the budget was spent after 1 of 3 launches")


def test_an_expired_baseline_is_still_used_with_a_warning() -> None:
    verdict = judge(measurement([0.02, 0.02, 0.02]), baseline(expires="2026-03-03"), POLICY)
    assert verdict.outcome == "regressed"
    assert "THE BASELINE EXPIRED on 2026-03-03" in verdict.reason
    assert "EXPIRED" not in judge(measurement([0.02, 0.02]), baseline(expires="2026-03-04"), POLICY).reason


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-0.2, 0.2), min_size=2, max_size=5),
    st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=8),
    st.floats(-1, 1),
    st.floats(1, 5),
)
def test_more_noise_never_makes_more_certain(
    noise: list[float], levels: list[float], effect: float, factor: float
) -> None:
    """The noise is stretched about its own centre, so that the slowdown seen stays the same."""
    middle, level = sum(noise) / len(noise), centre(levels)

    def widened(within: float, between: float) -> tuple[float, float, str]:
        new = [math.exp(effect + within * (x - middle)) for x in noise]
        old = [[math.exp(between * (x - level) + y) for y in (-0.01, 0.01)] for x in levels]
        comparison = compare(new, old, POLICY)
        return comparison.half_width(0.005), comparison.half_width(0.05), decide(comparison, POLICY)

    calm = widened(1, 1)
    for wild in (widened(factor, 1), widened(1, factor), widened(factor, factor)):
        assert wild[0] >= calm[0] - 1e-9
        assert wild[1] >= calm[1] - 1e-9
        assert wild[2] in (calm[2], *WEAKER[calm[2]]) or wild[0] - calm[0] < 1e-6


@settings(deadline=None, max_examples=40)
@given(launches, histories, st.floats(-0.5, 0.5))
def test_the_p_value_and_the_bound_agree(new: list[float], old: list[list[float]], limit: float) -> None:
    comparison = compare(new, old, POLICY)
    for tail in (0.001, 0.005, 0.05, 0.3):
        if abs(comparison.lower(tail) - limit) > 1e-6:
            assert (comparison.p_value(limit) < tail) == (comparison.lower(tail) > limit)


def test_with_many_cases_a_case_needs_more_to_fail() -> None:
    """A slowdown that fails a single case does not fail one of two hundred. A large one fails both."""
    slow = measurement([0.0132, 0.0130, 0.0131])
    alone, share = judge(slow, baseline(), POLICY), judge(slow, baseline(), POLICY.shared(200))
    assert (alone.outcome, share.outcome) == ("regressed", "inconclusive")
    assert (alone.ratio, alone.p_value) == (share.ratio, share.p_value)
    assert alone.mde is not None
    assert share.mde is not None
    assert alone.mde < share.mde
    assert share.policy == POLICY.shared(200).label != alone.policy
    assert judge(measurement([0.05, 0.05, 0.05]), baseline(), POLICY.shared(200)).outcome == "regressed"


def _simulated(
    seed: int, slowdown: float, noise: float, sessions: int, count: int, policy: Policy = POLICY
) -> list[str]:
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret

    def session(level: float) -> list[float]:
        shift = chance.gauss(0, noise)
        return [level * math.exp(shift + chance.gauss(0, noise / 2)) for _ in range(3)]

    return [
        decide(compare(session(slowdown), [session(1.0) for _ in range(sessions)], policy), policy)
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("slowdown", "noise", "sessions", "outcome", "least", "most"),
    [(2.0, 0.01, 3, "regressed", 100, 100), (1.5, 0.03, 6, "regressed", 95, 100), (1.1, 0.05, 6, "ok", 0, 5)],
)
def test_a_slowdown_is_mostly_caught_and_seldom_called_ok(
    slowdown: float, noise: float, sessions: int, outcome: str, least: int, most: int
) -> None:
    """Of 100 sessions. Twice the tolerance is called ok in at most the stated 5 %."""
    assert least <= _simulated(4, slowdown, noise, sessions, 100).count(outcome) <= most


@pytest.mark.parametrize(("noise", "sessions"), [(0.02, 3), (0.19, 1), (0.19, 3), (0.19, 6), (0.40, 3)])
def test_identical_code_looks_slower_no_more_often_than_stated(noise: float, sessions: int) -> None:
    """Even at twice the noise that was assumed. Of 300 first looks: six, at the stated 2 %."""
    assert _simulated(1, 1.0, noise, sessions, 300).count("regressed") <= 6


def test_the_uid_of_a_policy_follows_its_content() -> None:
    assert Policy().uid == Policy(**Policy().to_json()).uid != Policy(tolerance=0.04).uid
    assert judge(measurement([1, 1]), None, POLICY).policy == f"screen-2@{POLICY.uid[:12]}"


NIGHTS = st.lists(st.floats(-1, 1), min_size=2, max_size=12)


def series(noise: float, sessions: int, count: int, seed: int = 1) -> list[list[list[float]]]:
    """The logs of launches whose sessions spread by this, and launches of a session by half of it."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    found = []
    for _ in range(count):
        levels = [chance.gauss(0, noise) for _ in range(sessions)]
        found.append([[level + chance.gauss(0, noise / 2) for _ in range(3)] for level in levels])
    return found


def test_without_a_series_the_prior_is_all_that_is_known() -> None:
    assert usual_noise([], POLICY) == POLICY
    assert usual_noise([[[0.1]]], POLICY) == POLICY


def test_the_launches_of_one_session_tell_a_quiet_machine_from_a_loud_one() -> None:
    """More cases tell it better, and the prior keeps its say."""
    quiet, quieter, loud = (
        usual_noise(series(noise, 1, count), POLICY) for noise, count in ((0.01, 1), (0.01, 20), (0.9, 20))
    )
    assert 0.005 < quiet.tau_prior < 0.05 < POLICY.tau_prior < loud.tau_prior
    assert POLICY.tau_prior_spread > quiet.tau_prior_spread > quieter.tau_prior_spread > POLICY.launch_spread / 2


def test_five_series_with_two_sessions_tell_how_much_nights_differ() -> None:
    """Their launches agree, and the nights do not."""
    nights = [[[0.0, 0.01, -0.01], [0.5, 0.51, 0.49]]]
    four, five = (usual_noise(nights * count, POLICY) for count in (4, 5))
    assert five.tau_prior > 1.2 * four.tau_prior


@given(NIGHTS)
def test_sixty_cases_measured_in_the_same_nights_tell_no_more_of_nights_than_five(nights: list[float]) -> None:
    """Only of launches do they tell more."""
    launches = replace(POLICY, launch_spread=1e3)
    one = [[night, night + 0.01] for night in nights]
    few, many = (usual_noise([one] * count, launches) for count in (5, 60))
    assert few.tau_prior == pytest.approx(many.tau_prior, rel=0.01)
