"""Rounds until the judge is sure: when they end, and which arm is at fault if one fails."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compare_play import (
    BUSY,
    NOW,
    QUICK,
    A,
    Arm,
    B,
    ScriptedRounds,
    chance,
    failed,
    finish,
    pair,
    scripted,
    side,
    slower,
    use,
)
from free_machine import Budget

from ipexperf.compare import sequence
from ipexperf.compare.round import ArmResult, Round
from ipexperf.compare.sequence import Comparison, PairedRounds, Why
from ipexperf.compare.walk import Suite, Walk
from ipexperf.errors import WorkerError
from ipexperf.judge.policy import PairPolicy
from ipexperf.result import Check

POLICY = PairPolicy()
WRONG = Check("dtype", ok=False, found="float32", expected="bf16")


def pairs_of(
    *comparisons: Comparison,
    budget: int = 99,
    say: Callable[[str], None] = lambda _: None,
    together: ScriptedRounds | None = None,
    **more: Any,
) -> PairedRounds:
    use(together)
    return PairedRounds(comparisons, Budget(budget), say, effort=QUICK, chance=chance(), **more)  # type: ignore[arg-type]


def measure(policy: PairPolicy = POLICY, *, a: Arm = A, b: Arm = B, **more: Any) -> Comparison:
    """As many pairs as the judge wants."""
    found = Comparison(a, b, policy)
    finish(pairs_of(found, **more))
    return found


def too_large(error: WorkerError, alone: Callable[[Arm], ArmResult]) -> ScriptedRounds:
    """Let the second of two arms end with this error, in the only round of both. An arm that is alone does as told."""
    both = iter([failed(error)])

    def script(arms: Sequence[Arm]) -> Round:
        return next(both) if len(arms) > 1 else Round((alone(arms[0]),), "together", NOW)

    return ScriptedRounds(script)


def test_pairs_end_as_soon_as_the_judge_is_sure() -> None:
    """Four pairs without noise are enough, and only the first is asked for its proof and its accuracy."""
    rounds = scripted(slower(0.001, 1.2))
    found = measure(together=rounds)
    asked = rounds.asked
    assert (found.decision.outcome, len(found.pairs)) == ("regressed", 4)
    assert found.stop.why is Why.DECIDED
    assert found.stop.text == "it was decided after 4 of at most 24 pairs"
    assert [[arm.prove for arm in arms] for arms in asked] == [[True] * 2, *[[False] * 2] * 3]
    assert [[arm.accuracy for arm in arms] for arms in asked] == [[True] * 2, *[[False] * 2] * 3]
    assert [[arm.index for arm in arms] for arms in asked] == [[number] * 2 for number in range(4)]


@pytest.mark.parametrize(("memory", "captured"), [(1e8 + 1000, 1), (1.2e8, 3)])
def test_what_a_call_does_is_captured_again_where_arms_differ(
    memory: float, captured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In three pairs, to know how much it varies: a capture takes as long as dozens of calls."""
    asked = []

    def play(_: object, rounds: Sequence[Sequence[Arm]], *__: object) -> Iterator[Round]:
        for arms in rounds:
            asked.append([arm.prove for arm in arms])
            yield pair(side(0.01, step_memory=1e8), side(0.01, step_memory=memory))

    monkeypatch.setattr(Walk, "play", play)
    found = Comparison(A, B, POLICY, ("step_memory",))
    finish(pairs_of(found, walk=Walk(Suite(Path(), (), {}, {}), lambda: False)))
    assert asked == [[number < captured] * 2 for number in range(4)]


def test_warm_steps_are_found_in_the_first_pair_alone() -> None:
    """Later pairs use as many as either arm needed: the same for both, or the ratio would be biased."""

    def warmed() -> Iterator[Round]:
        for one in slower(0.001, 1.2):
            counts = [
                replace(x, launch=replace(x.launch, gate={"turn_warm": n}))
                for x, n in zip(one.results, (1.0, 3.0), strict=True)
            ]
            yield replace(one, results=tuple(counts))

    rounds = scripted(warmed())
    measure(together=rounds)
    assert [[arm.warm for arm in arms] for arms in rounds.asked] == [[None] * 2, *[[3] * 2] * 3]


def test_pairs_end_at_the_maximum() -> None:
    """The noise hides everything, and the verdict is inconclusive."""
    found = measure(PairPolicy(max_pairs=8), together=scripted(slower(0.5)))
    assert (found.decision.outcome, len(found.pairs)) == ("inconclusive", 8)
    assert (found.stop.why, found.stop.text) == (Why.MOST, "there were as many pairs as were allowed: 8")
    assert found.decision.verdict.mde is not None
    assert not found.cut


@pytest.mark.parametrize(("budget", "stopped"), [(0, "already"), (1, "after 1 pair"), (5, "after 5 pairs")])
def test_pairs_end_with_the_budget(budget: int, stopped: str) -> None:
    """No pair begins after it. The judge then takes its last look."""
    found = measure(budget=budget, together=scripted(slower(0.5)))
    assert len(found.pairs) == budget
    assert found.decision.outcome == "inconclusive"
    assert (found.stop.why, found.stop.text) == (Why.BUDGET, f"the budget (--perf-budget) was spent {stopped}")
    assert found.cut


@pytest.mark.parametrize("wrong", ["a", "b"])
def test_an_arm_whose_proof_fails_ends_the_pairs(wrong: str) -> None:
    """After the first pair, whichever arm it is, without a decision."""
    checks = {name: (WRONG,) if name == wrong else () for name in "ab"}
    rounds = itertools.repeat(pair(side(1.0, *checks["a"]), side(1.0, *checks["b"])))
    found = measure(together=scripted(rounds))
    assert len(found.pairs) == 1
    assert (found.stop.why, found.stop.text) == (Why.WRONG, "an arm failed its proof or accuracy")
    assert found.flaws == [str(WRONG) if name == wrong else "" for name in "ab"]
    assert found.decision.outcome == "inconclusive"


def test_a_driver_that_ends_the_process_for_memory_is_recognised() -> None:
    """By the log, as for a single launch. On the CPU the log does not count."""
    words = "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"
    aborted = WorkerError("crashed", "arm b: killed by SIGABRT", words)
    for accelerator in (True, False):
        b = replace(B, conditions=replace(B.conditions, accelerator=accelerator))
        found = measure(b=b, together=too_large(aborted, lambda _: side(1.0)))
        assert found.apart == accelerator
        assert (found.failure and found.failure.error) == (None if accelerator else aborted)


def test_arms_that_do_not_fit_together_are_measured_apart() -> None:
    """From that pair on, with a message. If an arm does not fit alone, it fails."""
    full = WorkerError("out_of_memory", "arm b: took more than there is")
    pairs = slower(0.001, 1.2)
    rounds = too_large(full, lambda arm: side(1.0) if arm.name == A.name else next(pairs).results[1])
    said: list[str] = []
    found = measure(say=said.append, together=rounds)
    assert (found.decision.outcome, len(found.pairs), found.apart, found.failure) == ("regressed", 4, True, None)
    assert [len(arms) for arms in rounds.asked] == [2, *[1] * 4 * 4]
    last = rounds.asked[4::4]  # of each pair
    assert [arms[0].prove for arms in last] == [True, False, False, False]
    assert f"arm b: took more than there is: {sequence.APART}" in said
    rounds = too_large(full, lambda arm: side(1.0, error=None if arm.name == A.name else full))
    found = measure(together=rounds)
    assert [len(arms) for arms in rounds.asked] == [2, *[1] * 4]
    assert found.failure is not None
    assert (found.stop.text, found.failure.error, found.pairs) == ("an arm failed", full, [])


def test_a_pair_with_too_few_turns_left_is_made_again() -> None:
    """It does not count as a pair, and its number is used again. A message says so."""
    said: list[str] = []
    busy = side(1.0)
    disturbed = pair(1.0, replace(busy, launch=replace(busy.launch, contended=BUSY)), busy=True)
    rounds = scripted(itertools.chain([disturbed], slower(0.001, 1.2)))
    found = measure(say=said.append, together=rounds)
    asked = rounds.asked
    assert (len(asked), len(found.pairs), found.decision.outcome) == (5, 4, "regressed")
    assert [arms[0].index for arms in asked] == [0, 0, 1, 2, 3]
    assert [arms[0].prove for arms in asked] == [True, True, False, False, False]
    assert f"{B.case.id}: the machine was busy, so this pair is made again: {BUSY}" in said
    lost = measure(budget=2, together=scripted(itertools.chain([disturbed], slower(0.5))))
    assert lost.stop.text.endswith(" was spent after 1 pair, and on 1 pair taken on a busy machine")


def test_on_a_machine_that_stays_busy_pairs_count() -> None:
    """Both arms suffer alike. After a few repetitions pairs count, and their launches have a note."""
    busy = side(1.0)
    busy = replace(busy, launch=replace(busy.launch, contended=BUSY))
    rounds = scripted(itertools.repeat(pair(busy, busy, busy=True)))
    found = measure(PairPolicy(max_pairs=4), together=rounds)
    assert (len(rounds.asked), len(found.pairs)) == (4 + sequence.DISCARDED, 4)
    launches, _ = sequence.measured(found)
    assert {(one.contended, one.notes) for one in launches} == {
        ("", (f"took turns on a contended machine, as did the other arm: {BUSY}",))
    }


def test_comparisons_share_their_rounds() -> None:
    """Each ends by itself. A decided one takes no more turns."""
    policy = PairPolicy(max_pairs=6)
    one, two = (Comparison(replace(A, name=name), replace(B, name=name), policy) for name in ("one", "two"))
    noise = itertools.cycle((0.5, 2.0))

    def script(arms: Sequence[Arm]) -> Round:
        sides = []
        for second in arms[1::2]:
            sides += [side(1.0), side(1.5 if second.name == "one" else next(noise))]
        return Round(tuple(sides), "together", NOW)

    rounds = ScriptedRounds(script)
    finish(pairs_of(one, two, together=rounds))
    assert (one.decision.outcome, len(one.pairs)) == ("regressed", 4)
    assert (two.stop.why, len(two.pairs)) == (Why.MOST, 6)
    asked = [[arm.name for arm in arms] for arms in rounds.asked]
    assert asked == [["one", "one", "two", "two"]] * 4 + [["two", "two"]] * 2


def test_more_comparisons_than_may_take_turns_have_rounds_of_their_own() -> None:
    """A round has eight arms at most, so one of five comparisons has its own round in the same pass."""
    rounds = scripted(itertools.repeat(pair(1.0, 1.5)))
    found = [Comparison(A, B, POLICY) for _ in range(5)]
    finish(pairs_of(*found, together=rounds))
    asked = [len(arms) for arms in rounds.asked]
    assert [sorted(asked[at : at + 2]) for at in range(0, len(asked), 2)] == [[2, 8]] * 4
    assert [one.decision.outcome for one in found] == ["regressed"] * 5


def test_progress_says_how_many_pairs_there_are() -> None:
    """From the third on with the estimate so far, and the time that they may take at most."""
    said: list[str] = []
    measure(say=said.append, together=scripted(slower(0.05, 1.2)))
    assert said[:2] == [f"{B.case.id} against arm a: pair {number} of at most 24" for number in (1, 2)]
    assert said[2].startswith(f"{B.case.id} against arm a: pair 3 of at most 24; so far +")
    assert said[2].endswith(" s more")


def test_each_launch_has_the_fingerprint_of_the_other_arm() -> None:
    a, b = side(1.0), side(1.2)
    a = replace(a, launch=replace(a.launch, fingerprint={"digest": "a"}))
    b = replace(b, launch=replace(b.launch, fingerprint={"digest": "b"}))
    launches, environment = sequence.measured(measure(together=scripted(itertools.repeat(pair(a, b)))))
    assert [(one.against, one.fingerprint) for one in launches] == [({"digest": "a"}, {"digest": "b"})] * 4
    assert environment == {"software": {}}
