"""Metrics beside speed: each has its own tolerance and noise, and a verdict names those that became worse."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from judge_records import QUIET, baseline, ends, measurement

from ipexperf.case import FunctionCase
from ipexperf.errors import UsageError
from ipexperf.judge import metrics, remeasure, screen
from ipexperf.judge.baseline import CaseBaseline
from ipexperf.judge.policy import MetricPolicy, Policy
from ipexperf.judge.run import settle
from ipexperf.judge.sentence import sentence
from ipexperf.ratio import Ratio
from ipexperf.result import METRICS, PRIMARY, Gate, Metric
from ipexperf.verdict import BaselineEvidence, Level, Verdict

GATE = (PRIMARY, "held_memory")
ALPHA = 0.005
MIB = 2.0**20
LEVEL = 400 * MIB
EVIDENCE = BaselineEvidence(between_sessions_known=True)
OK = Verdict("ok", "a slowdown above 5% is excluded", ratio=Ratio(1.0, 0.99, 1.01), p_value=0.9, evidence=EVIDENCE)
SLOW = replace(OK, outcome="regressed", ratio=Ratio(1.2, 1.15, 1.25), p_value=1e-4)


def accepted(*values: float, name: str = "held_memory") -> CaseBaseline:
    """A baseline of one session for each value of a metric."""
    sessions = [QUIET[index % len(QUIET)] for index in range(len(values))]
    stored = baseline(sessions)
    pairs = zip(stored.sessions, values, strict=True)
    return replace(stored, sessions=tuple(replace(one, metrics={name: value}) for one, value in pairs))


def judged(value: float, *sessions: float, name: str = "held_memory") -> Verdict:
    [verdict] = metrics.in_sessions({name: value}, accepted(*sessions, name=name), (name,), ALPHA)
    return verdict


def case_verdict(memory: float, speed: Verdict = OK, gate: Sequence[str] = GATE) -> Verdict:
    """The verdict on a case whose memory is this many times the baseline's."""
    others = metrics.in_sessions({"held_memory": memory * LEVEL}, accepted(*[LEVEL] * 3), gate, ALPHA)
    return metrics.combined(speed, others, gated=PRIMARY in gate)


@pytest.mark.parametrize("sessions", [1, 2, 3, 12])
@pytest.mark.parametrize(("times", "outcome"), [(1.02, "regressed"), (0.98, "improved"), (1.0, "ok"), (1.002, "ok")])
def test_two_per_cent_of_memory_are_seen_from_the_first_session_on(times: float, outcome: str, sessions: int) -> None:
    verdict = judged(times * LEVEL, *[LEVEL] * sessions)
    assert (verdict.outcome, verdict.metric) == (outcome, "held_memory")
    assert verdict.times == pytest.approx(times)
    low, high = ends(verdict)
    assert low < times < high
    assert verdict.level == Level(pytest.approx(LEVEL), times * LEVEL)


def test_a_case_that_takes_more_memory_is_regressed_and_its_time_is_not() -> None:
    """Memory grew by 2 % and time did not: memory is told, and the numbers stay those of speed."""
    verdict = case_verdict(1.02)
    assert (verdict.outcome, verdict.fails, verdict.worse) == ("regressed", True, "held_memory")
    assert sentence(verdict).startswith("2.0 % more held_memory: ")
    assert (verdict.metric, verdict.ratio) == (PRIMARY, OK.ratio)
    assert verdict.alone == OK


@pytest.mark.parametrize("outcome", ["failed", "invalid", "no_baseline", "not_comparable"])
def test_a_case_that_was_compared_with_nothing_has_no_verdict_on_its_memory(outcome: str) -> None:
    """Numbers of other hardware, or of a failed case, say nothing about memory either."""
    speed = Verdict(outcome, "so it is")  # type: ignore[arg-type]
    assert case_verdict(1.02, speed) == speed


def test_memory_that_grew_fails_the_case_while_its_speed_is_inconclusive() -> None:
    """One accepted session is too little for speed, and enough for memory."""
    speed = screen.judge(measurement(QUIET[0]), baseline(QUIET[:1]), Policy())
    assert speed.outcome == "inconclusive"
    assert case_verdict(1.02, speed).outcome == "regressed"
    assert case_verdict(1.0, speed).outcome == "inconclusive"


@pytest.mark.parametrize(("memory", "outcome"), [(1.02, "regressed"), (1.0, "ok"), (0.98, "improved")])
def test_without_speed_in_the_gate_the_others_decide(memory: float, outcome: str) -> None:
    """Then a slower case passes, and the table still shows by how much it is slower."""
    verdict = case_verdict(memory, SLOW, gate=("held_memory",))
    assert (verdict.outcome, verdict.ratio) == (outcome, SLOW.ratio)
    assert "held_memory" in sentence(verdict)
    assert verdict.alone == SLOW


@pytest.mark.parametrize("value", [None, 0.0, math.nan, math.inf])
def test_a_metric_without_a_value_on_either_side_is_not_judged(value: float | None) -> None:
    """An old baseline lacks a newer metric, and a forked launch does not measure every one."""
    new = {} if value is None else {"held_memory": value}
    assert metrics.in_sessions(new, accepted(LEVEL), GATE, ALPHA) == ()
    old = baseline() if value is None else accepted(value)
    assert metrics.in_sessions({"held_memory": LEVEL}, old, GATE, ALPHA) == ()
    assert metrics.in_pairs([({"held_memory": LEVEL}, new)], GATE, ALPHA) == ()


def test_small_memory_may_change_by_some_pages() -> None:
    """Two per cent of a megabyte are five pages: neither a regression nor ok."""
    assert judged(1.02 * MIB, MIB, MIB, MIB).outcome == "inconclusive"


def test_less_of_a_metric_whose_higher_values_are_better_is_a_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = Metric("tokens_per_joule", "1/J", True, gate=Gate(0.05, noise=0.005, pairs=0.005, trust=4))
    monkeypatch.setitem(METRICS, metric.name, metric)
    assert judged(0.9, 1.0, 1.0, name=metric.name).outcome == "regressed"
    assert judged(1.1, 1.0, 1.0, name=metric.name).outcome == "improved"


def test_a_metric_without_a_direction_is_refused_in_a_gate() -> None:
    with pytest.raises(UsageError, match="which direction is worse"):
        Metric("frequency_of_something", "Hz", None, gate=Gate(0.05, 0.1, 0.1, trust=2))


def test_the_metrics_of_a_case_share_one_alarm_rate() -> None:
    """Ten of them do not raise ten times as many false alarms."""
    [alone] = metrics.in_sessions({"held_memory": LEVEL}, accepted(LEVEL), GATE, ALPHA)
    [shared] = metrics.in_sessions({"held_memory": LEVEL}, accepted(LEVEL), (*GATE, "cpu_time", "p99"), ALPHA)
    assert alone.constants is not None
    assert shared.constants is not None
    assert shared.constants["alpha"] == pytest.approx(alone.constants["alpha"] / 3)


@pytest.mark.parametrize(("times", "outcome"), [(1.1, "regressed"), (0.9, "improved"), (1.0, "ok")])
def test_pairs_see_ten_per_cent_of_a_compile_time(times: float, outcome: str) -> None:
    """Six pairs that differ by 2 %, as if both arms compiled at the same time."""
    chance = random.Random(3)  # noqa: S311 - a simulation, no secret
    pairs = [
        ({"compile_time": 2.0}, {"compile_time": 2.0 * times * math.exp(chance.gauss(0, 0.02))}) for _ in range(12)
    ]
    [verdict] = metrics.in_pairs(pairs, (PRIMARY, "compile_time"), ALPHA)
    assert verdict.outcome == outcome


def test_pairs_judge_the_quickest_of_several_builds_where_both_sides_have_it() -> None:
    """Single builds differ by much more. A pair without repeated builds says nothing beside those that have them."""
    single = [2.0, 3.1, 2.2, 2.9, 2.1, 3.3, 2.5, 2.0]
    pairs = [
        ({"compile_time": one, "quickest_compile": 2.0}, {"compile_time": other, "quickest_compile": 2.2})
        for one, other in zip(single, reversed(single), strict=True)
    ]
    gate = (PRIMARY, "compile_time")
    [verdict] = metrics.in_pairs([*pairs, ({"compile_time": 2.0}, {"compile_time": 9.0})], gate, ALPHA)
    assert (verdict.outcome, verdict.metric) == ("regressed", "compile_time")
    assert verdict.times == pytest.approx(1.1)
    assert verdict.level == Level(2.0, pytest.approx(2.2), pairs=8)
    [verdict] = metrics.in_pairs([({"compile_time": a["compile_time"]}, b) for a, b in pairs], gate, ALPHA)
    assert verdict.outcome == "inconclusive"


def pairs_of(name: str, *values: tuple[float, float]) -> list[tuple[dict[str, float], dict[str, float]]]:
    return [({name: LEVEL * a}, {name: LEVEL * b}) for a, b in values]


@pytest.mark.parametrize(
    ("name", "times", "outcome"),
    [
        ("held_memory", 1.02, "regressed"),
        ("held_memory", 1.001, "ok"),
        ("held_memory", 0.98, "improved"),
        ("step_memory", 1.01, "regressed"),
    ],
)
def test_pairs_judge_memory_by_their_first_pair(name: str, times: float, outcome: str) -> None:
    """Later pairs are forked, and tell none. The profiler counts what a step allocates exactly."""
    pairs = [*pairs_of(name, (1, times)), *[({"step_time": 1.0}, {"step_time": 1.0})] * 3]
    [verdict] = metrics.in_pairs(pairs, (PRIMARY, name), ALPHA)
    assert (verdict.metric, verdict.outcome) == (name, outcome)


def test_a_smallest_session_far_from_all_others_may_be_chance() -> None:
    """Two that agree are trusted, whatever the third is."""
    assert judged(1.02 * LEVEL, LEVEL, LEVEL, 1.03 * LEVEL).outcome == "regressed"
    assert judged(1.02 * LEVEL, LEVEL, 1.03 * LEVEL, 1.03 * LEVEL).outcome == "inconclusive"


def test_false_alarms_are_as_rare_as_the_policy_says() -> None:
    """With the assumed noise: 4,000 runs that are the same, against one session and against five."""
    chance = random.Random(5)  # noqa: S311 - a simulation, no secret
    gate = METRICS["held_memory"].gate
    assert gate is not None

    def drawn() -> float:
        return LEVEL * math.exp(chance.gauss(0, 3 * gate.noise))

    for sessions in (1, 5):
        alarms = sum(judged(drawn(), *(drawn() for _ in range(sessions))).outcome == "regressed" for _ in range(2000))
        assert alarms <= 20


def test_a_metric_regressed_only_if_both_measurements_say_so() -> None:
    """Memory that was larger once is inconclusive. Other metrics keep their first verdict."""
    once = remeasure.settle(case_verdict(1.02), case_verdict(1.0), case_verdict(1.0))
    assert (once.outcome, once.reason) == ("ok", OK.reason)
    assert [one.outcome for one in once.others] == ["inconclusive"]
    assert once.others[0].reason == "measured twice in this run: +2.0 % at first, +0.0 % the second time"
    twice = remeasure.settle(case_verdict(1.02), case_verdict(1.03), case_verdict(1.02))
    assert (twice.outcome, twice.worse) == ("regressed", "held_memory")
    assert twice.others[0].reason == "measured twice in this run: +2.0 % at first, +3.0 % the second time"


def test_a_run_that_ends_before_the_second_measurement_calls_no_memory_regressed() -> None:
    verdict = remeasure.without_second(case_verdict(1.02))
    assert (verdict.outcome, verdict.worse) == ("ok", "")
    assert verdict.others[0].outcome == "inconclusive"
    assert remeasure.provisional(case_verdict(1.02)) == verdict


def test_a_shift_of_the_platform_does_not_excuse_more_memory() -> None:
    """Six cases are 20 % slower together. The one that takes more memory too is a finding by itself."""
    larger = case_verdict(1.02, SLOW)
    verdicts = {**{str(number): SLOW for number in range(5)}, "larger": larger}
    run = settle(verdicts, Policy())
    assert run.line.startswith("platform shift: ")
    assert run.verdicts["0"].outcome == "platform_shift"
    assert run.verdicts["larger"] == larger


def of_function(level: float, noise: float, chance: random.Random, times: float = 1.0) -> str:
    """The outcome of a function's memory, captured three times in each arm."""
    pairs = [
        (
            {"step_memory": level * math.exp(chance.gauss(0, noise))},
            {"step_memory": level * times * math.exp(chance.gauss(0, noise))},
        )
        for _ in range(metrics.KNOWN)
    ]
    [verdict] = metrics.in_pairs(pairs, (PRIMARY, "step_memory"), ALPHA, captures_vary=True)
    return verdict.outcome


def test_captures_of_a_function_that_vary_raise_no_alarm() -> None:
    """Of a thousand comparisons of equal functions, where its smallest capture would raise dozens."""
    chance = random.Random(4)  # noqa: S311 - a simulation, no secret
    for level, noise in ((16_000, 0.004), (10 * MIB, 0.004), (10 * MIB, 0.03)):
        outcomes = [of_function(level, noise, chance) for _ in range(1000)]
        assert outcomes.count("regressed") <= 10
    assert of_function(10 * MIB, 0.0002, chance, 1.02) == "regressed"


@pytest.mark.parametrize(("more", "outcome"), [(30_000, "regressed"), (2 * MIB, "regressed"), (4_000, "inconclusive")])
def test_a_function_that_held_next_to_nothing_is_judged_by_what_it_holds_more(more: float, outcome: str) -> None:
    """The noise of 184 bytes is many times themselves, and yet two mebibytes more are none."""
    before, now = ({"step_memory": value} for value in (184.0, 184.0 + more))
    [verdict] = metrics.in_pairs([(before, now)] * metrics.KNOWN, ("step_memory",), ALPHA, captures_vary=True)
    assert verdict.outcome == outcome


def test_the_noise_of_values_that_differ_in_a_last_bit_is_that_of_equal_ones() -> None:
    policy = MetricPolicy.of(METRICS["held_memory"], ALPHA)
    assert policy.assumed(3e6, math.nextafter(3e6, math.inf)) == pytest.approx(policy.assumed(3e6, 3e6))


def test_captures_of_a_function_are_judged_once_there_are_some() -> None:
    """In pairs and against sessions. A network's are alike, so one is enough, as it is where arms are alike."""
    gate = (PRIMARY, "step_memory")
    [pair] = pairs_of("step_memory", (1, 2))
    assert metrics.in_pairs([pair] * 2, gate, ALPHA, captures_vary=True) == ()
    assert metrics.captures_tell([pair] * 2, gate, ALPHA)
    assert not metrics.captures_tell([pair] * 3, gate, ALPHA)
    alike = {"step_memory": 10.0 * MIB}, {"step_memory": 10.0 * MIB + 100}
    assert not metrics.captures_tell([alike], gate, ALPHA)
    [verdict] = metrics.in_pairs([alike], gate, ALPHA, captures_vary=True)
    assert verdict.outcome == "ok"
    stored = accepted(LEVEL, LEVEL, LEVEL, name="step_memory")
    function = replace(stored, case=FunctionCase("tests/test_it.py::test", "cpu"))
    new = {"step_memory": 1.02 * LEVEL}
    [verdict] = metrics.in_sessions(new, function, ("step_memory",), ALPHA)
    assert verdict.outcome == "regressed"
    assert metrics.in_sessions(new, replace(function, sessions=function.sessions[:2]), ("step_memory",), ALPHA) == ()
    assert metrics.in_sessions(new, replace(stored, sessions=stored.sessions[:1]), ("step_memory",), ALPHA) != ()
