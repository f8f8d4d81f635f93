"""Rounds until the judge is sure: when they end, and whose fault it is where an arm fails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from compare_play import BUSY, CASE, NOW, QUICK, A, Arm, B, case, chance, failed, pair, quick, side, slower, told

from ipexperf.bench import registry
from ipexperf.compare import sequence
from ipexperf.compare.apart import Apart
from ipexperf.compare.round import Round
from ipexperf.compare.sequence import Comparison, Contest, Why
from ipexperf.compare.together import Together
from ipexperf.errors import WorkerError
from ipexperf.judge.policy import PairPolicy
from ipexperf.result import Check

POLICY = PairPolicy()
WRONG = Check("dtype", ok=False, found="float32", expected="bf16")


def contest(
    *sides: tuple[Arm, Arm],
    policy: PairPolicy = POLICY,
    budget: int = 99,
    say: Callable[[str], None] = lambda _: None,
    **more: Any,
) -> Contest:
    """Comparisons of these, while the budget of so many looks at it lasts."""
    left = iter([False] * budget)
    pairs = sides or ((A, B),)
    spent = lambda: next(left, True)  # noqa: E731 - a name for what is called once a round
    return Contest(pairs, [policy] * len(pairs), QUICK, spent, chance(), say, **more)


def measure(policy: PairPolicy = POLICY, *, a: Arm = A, b: Arm = B, budget: int = 99, **more: Any) -> Comparison:
    """As many pairs as the judge wants."""
    [found] = contest((a, b), policy=policy, budget=budget, **more).run()
    return found


def test_pairs_end_as_soon_as_the_judge_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four pairs without noise are enough, and only the first is asked for its proof and its accuracy."""
    asked = told(monkeypatch, slower(0.001, 1.2))
    found = measure()
    assert (found.decision.outcome, len(found.pairs)) == ("regressed", 4)
    assert (found.stop.why, found.stop.rounds) == (Why.DECIDED, 4)
    assert found.stop.text == "it was decided after 4 of at most 24 pairs"
    assert [[arm.prove for arm in arms] for arms in asked] == [[True] * 2, *[[False] * 2] * 3]
    assert [[arm.accuracy for arm in arms] for arms in asked] == [[True] * 2, *[[False] * 2] * 3]
    assert [[arm.index for arm in arms] for arms in asked] == [[number] * 2 for number in range(4)]


def test_warm_steps_are_found_in_the_first_pair_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later pairs begin their turns with as many as either arm needed: the same for both, or the ratio leans."""

    def rounds() -> Iterator[Round]:
        for one in slower(0.001, 1.2):
            counts = [
                replace(x, launch=replace(x.launch, gate={"turn_warm": n}))
                for x, n in zip(one.sides, (1.0, 3.0), strict=True)
            ]
            yield replace(one, sides=tuple(counts))

    asked = told(monkeypatch, rounds())
    measure()
    assert [[arm.warm for arm in arms] for arms in asked] == [[None] * 2, *[[3] * 2] * 3]


def test_an_arm_that_is_spoilt_on_purpose_is_asked_for_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not have one."""
    asked = told(monkeypatch, slower(0.001, 1.2))
    measure(prove=False)
    assert {arm.prove for arms in asked for arm in arms} == {False}


def test_pairs_end_where_there_may_be_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise that hides everything the most pairs are the end, and nothing is claimed."""
    told(monkeypatch, slower(0.5))
    found = measure(PairPolicy(max_pairs=8))
    assert (found.decision.outcome, len(found.pairs)) == ("inconclusive", 8)
    assert (found.stop.why, found.stop.text) == (Why.MOST, "there were as many pairs as were allowed: 8")
    assert found.decision.mde is not None
    assert not found.cut


@pytest.mark.parametrize(("budget", "stopped"), [(0, "already"), (1, "after 1 pair"), (5, "after 5 pairs")])
def test_pairs_end_with_the_budget(budget: int, stopped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair begins after it; what there is by then is judged, as the last look."""
    told(monkeypatch, slower(0.5))
    found = measure(budget=budget)
    assert len(found.pairs) == budget
    assert found.decision.outcome == "inconclusive"
    assert (found.stop.why, found.stop.text) == (Why.BUDGET, f"the budget (--perf-budget) was spent {stopped}")
    assert found.cut


def test_what_the_budget_ended_may_be_sure_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look spends what is left of the alarm rate."""
    told(monkeypatch, slower(0.001, 2.0))
    found = measure(budget=3)
    assert (found.decision.outcome, found.decision.pairs, found.cut) == ("regressed", 3, False)


@pytest.mark.parametrize("wrong", ["a", "b"])
def test_an_arm_that_is_not_what_its_label_says_ends_the_pairs(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first pair, whichever arm it is: nothing is decided."""
    checks = {name: (WRONG,) if name == wrong else () for name in "ab"}
    told(monkeypatch, itertools.repeat(pair(side(1.0, *checks["a"]), side(1.0, *checks["b"]))))
    found = measure()
    assert len(found.pairs) == 1
    assert (found.stop.why, found.stop.text) == (Why.WRONG, "an arm failed its proof or accuracy")
    assert sequence.wrong(getattr(found.pairs[0], wrong).launch) == str(WRONG)
    assert found.decision.outcome == "inconclusive"


def test_an_arm_that_fails_ends_the_pairs_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs before it are there, and nothing is decided by them."""
    died = WorkerError("crashed", "arm b: killed by SIGSEGV")
    told(monkeypatch, iter([pair(1.0, 1.0), failed(died)]))
    found = measure()
    assert found.failure is not None
    assert (len(found.pairs), found.failure.error, found.failure.arm) == (1, died, B)
    assert (found.stop.why, found.stop.text) == (Why.FAILED, "an arm failed")
    assert (found.decision.outcome, found.cut) == ("inconclusive", False)


def test_a_driver_that_ends_the_process_says_that_it_was_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last words are what counts, as they are for a launch alone; on the CPU nobody's words are."""
    words = "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"
    aborted = WorkerError("crashed", "arm b: killed by SIGABRT", words)
    told(monkeypatch, itertools.repeat(pair(1.0, 1.0, schedule="apart")), Apart)
    for accelerator in (True, False):
        told(monkeypatch, iter([failed(aborted)]))
        b = replace(B, conditions=replace(B.conditions, accelerator=accelerator))
        found = measure(b=b)
        assert found.apart == accelerator
        assert (found.failure and found.failure.error) == (None if accelerator else aborted)


def test_what_does_not_fit_together_is_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first pair on that did not, and it is said. What does not fit even so is a failure."""
    full = WorkerError("out_of_memory", "arm b: took more than there is")
    asked = told(monkeypatch, iter([failed(full)]))
    seen = told(monkeypatch, (replace(one, schedule="apart") for one in slower(0.001, 1.2)), Apart)
    said: list[str] = []
    found = measure(say=said.append)
    assert (found.decision.outcome, len(found.pairs), found.apart, found.failure) == ("regressed", 4, True, None)
    assert len(asked) == 1
    assert [arms[0].prove for arms in seen] == [True, False, False, False]
    assert f"arm b: took more than there is: {sequence.APART}" in said
    told(monkeypatch, iter([failed(full)]))
    told(monkeypatch, iter([replace(failed(full), schedule="apart")]), Apart)
    found = measure()
    assert found.failure is not None
    assert (found.stop.text, found.failure.error, found.pairs) == ("an arm failed", full, ())


def test_what_is_measured_apart_is_measured_there_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A B B A: an even drift drops out."""
    schedulers: list[object] = []
    told(monkeypatch, iter([failed(WorkerError("out_of_memory", "full"))]))

    def played(self: Apart, *_: object) -> Round:
        schedulers.append(self)
        return pair(1.0, 2.0, schedule="apart")

    monkeypatch.setattr(Apart, "play", played)
    measure(PairPolicy(max_pairs=1))
    assert schedulers == [Apart(mirrored=True)]


def test_a_pair_with_too_few_turns_left_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no pair, and the number of the next is its own; nothing is told of it but that it was."""
    said: list[str] = []
    busy = side(1.0)
    thin = pair(1.0, replace(busy, launch=replace(busy.launch, contended=BUSY)), thin=True)
    asked = told(monkeypatch, itertools.chain([thin], slower(0.001, 1.2)))
    found = measure(say=said.append)
    assert (len(asked), len(found.pairs), found.decision.outcome) == (5, 4, "regressed")
    assert [arms[0].index for arms in asked] == [0, 0, 1, 2, 3]
    assert [arms[0].prove for arms in asked] == [True, True, False, False, False]
    assert f"{B.case.id}: the machine was busy, so this pair is made again: {BUSY}" in said


def test_a_machine_that_is_always_busy_has_its_pairs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both arms suffered alike: after a few that were made again they count, and their launches say what was."""
    busy = side(1.0)
    busy = replace(busy, launch=replace(busy.launch, contended=BUSY))
    asked = told(monkeypatch, itertools.repeat(pair(busy, busy, thin=True)))
    found = measure(PairPolicy(max_pairs=4))
    assert (len(asked), len(found.pairs)) == (4 + sequence.DISCARDED, 4)
    launches, _ = sequence.measured(found)
    assert {(one.contended, one.notes) for one in launches} == {
        ("", (f"took turns on a contended machine, as did the other arm: {BUSY}",))
    }


def test_comparisons_of_a_contest_share_their_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ends for itself, and the others go on: what is decided takes no more turns."""
    others = [(replace(A, name=name), replace(B, name=name)) for name in ("one", "two")]
    asked: list[list[str]] = []
    noise = itertools.cycle((0.5, 2.0))

    def played(_: object, arms: list[Arm], *__: object) -> Round:
        asked.append([arm.name for arm in arms])
        sides = []
        for first, second in zip(arms[::2], arms[1::2], strict=True):
            b = 1.5 if second.name == "one" else next(noise)
            sides += [side(1.0, arm=first), side(b, arm=second)]
        return Round(tuple(sides), "together", NOW)

    monkeypatch.setattr(Together, "play", played)
    one, two = contest(*others, policy=PairPolicy(max_pairs=6)).run()
    assert (one.decision.outcome, len(one.pairs)) == ("regressed", 4)
    assert (two.stop.why, len(two.pairs)) == (Why.MOST, 6)
    assert asked == [["one", "one", "two", "two"]] * 4 + [["two", "two"]] * 2


def test_more_comparisons_than_may_take_turns_have_rounds_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight arms at most: one of five comparisons has another round, in the same pass over all of them."""
    asked: list[int] = []

    def played(_: object, arms: list[Arm], *__: object) -> Round:
        asked.append(len(arms))
        return Round((side(1.0), side(1.5)) * (len(arms) // 2), "together", NOW)

    monkeypatch.setattr(Together, "play", played)
    found = contest(*[(A, B)] * 5).run()
    assert [sorted(asked[at : at + 2]) for at in range(0, len(asked), 2)] == [[2, 8]] * 4
    assert [one.decision.outcome for one in found] == ["regressed"] * 5


def test_a_failure_of_one_comparison_is_not_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose arm crashed is out; the others have their verdicts."""
    died = WorkerError("crashed", "killed by SIGSEGV")

    def rounds() -> Iterator[Round]:
        yield Round((side(1.0), side(0.0, error=died), side(1.0), side(1.5)), "together", NOW)
        while True:
            yield pair(1.0, 1.5)

    asked = told(monkeypatch, rounds())
    first, second = contest((A, B), (A, B)).run()
    assert (first.stop.why, first.failure and first.failure.error) == (Why.FAILED, died)
    assert (second.decision.outcome, [len(arms) for arms in asked]) == ("regressed", [4, 2, 2, 2])


def test_an_interrupted_contest_has_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured by then is judged as the last look, and it says that somebody stopped it."""
    told(monkeypatch, slower(0.5))
    open_ = contest()
    rounds = iter(range(1, 99))

    def after() -> None:
        if next(rounds) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_.run(after)
    [found] = open_.comparisons()
    assert (len(found.pairs), found.decision.pairs, found.decision.outcome) == (2, 2, "inconclusive")
    assert (found.stop.why, found.stop.text) == (Why.INTERRUPTED, "interrupted after 2 pairs")
    assert found.cut


def test_a_contest_that_is_interrupted_before_it_began_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And can be asked all the same."""

    def say(_: str) -> None:
        raise KeyboardInterrupt

    open_ = contest(say=say)
    with pytest.raises(KeyboardInterrupt):
        open_.run()
    [found] = open_.comparisons()
    assert (found.pairs, found.decision.outcome, found.stop.why) == ((), "inconclusive", Why.INTERRUPTED)
    assert sequence.measured(found) == ([], {})


def test_what_was_asked_for_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes found it around them too, with all that came of it."""
    around = [{"software": {"threads": threads}, "variables": {"A": value}} for threads, value in ((2, "0"), (1, "1"))]
    sides = [replace(side(1.0), environment=environment) for environment in around]
    told(monkeypatch, itertools.repeat(pair(*sides)))
    monkeypatch.setenv("A", "0")
    b = replace(A, conditions=replace(A.conditions, variables={"A": "1"}))
    assert measure(b=b).differences == ("A: 0 -> 1", "threads: 2 -> 1")


def test_arms_that_are_the_same_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """An A/A has no differences, however its processes found the machine."""
    around = [{"software": {"threads": threads}} for threads in (2, 1)]
    told(monkeypatch, itertools.repeat(pair(*(replace(side(1.0), environment=one) for one in around))))
    assert measure(b=A).differences == ()
    assert measure().differences == ("dtype: fp32 -> bf16", "threads: 2 -> 1")


def test_it_is_told_how_far_the_pairs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the third on with what they say so far, and how long they may last at most."""
    told(monkeypatch, slower(0.05, 1.2))
    said: list[str] = []
    measure(say=said.append)
    assert said[:2] == [f"{B.case.id} against arm a: pair {number} of at most 24" for number in (1, 2)]
    assert said[2].startswith(f"{B.case.id} against arm a: pair 3 of at most 24; so far +")
    assert said[2].endswith(" s more")


def test_each_launch_has_what_the_other_arm_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is of the second arm, beside the fingerprint of the first."""
    a, b = side(1.0), side(1.2)
    a = replace(a, launch=replace(a.launch, fingerprint={"digest": "a"}))
    b = replace(b, launch=replace(b.launch, fingerprint={"digest": "b"}))
    told(monkeypatch, itertools.repeat(pair(a, b)))
    launches, environment = sequence.measured(measure())
    assert [(one.against, one.fingerprint) for one in launches] == [({"digest": "a"}, {"digest": "b"})] * 4
    assert environment == {"software": {}}


@pytest.mark.process
def test_real_arms_are_compared_to_the_end(fake: str) -> None:
    """Fresh processes each round, proof and accuracy in the first alone."""
    registry.load((fake,))
    arms = [Arm(case(dtype=dtype), quick(fake), name) for dtype, name in (("fp32", "arm a"), ("bf16", "arm b"))]
    found = measure(PairPolicy(max_pairs=2), a=arms[0], b=arms[1])
    assert [(one.b.launch.index, bool(one.b.launch.proof)) for one in found.pairs] == [(0, True), (1, False)]
    assert [bool(one.b.launch.accuracy) for one in found.pairs] == [True, False]
    assert all(math.isfinite(value) for value in found.log_ratios)
    assert found.differences[:1] == ("dtype: fp32 -> bf16",)
    assert found.b.case == replace(CASE, dtype="bf16")
