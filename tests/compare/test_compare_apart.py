"""Arms that run one after another: those that do not fit in memory side by side, and cold starts."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from compare_play import NOW, QUICK, A, B, ScriptedRounds, Sent, case, chance, quick, side, use

from ipexperf.bench import loading
from ipexperf.compare.apart import NOTE, Apart
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import Round
from ipexperf.result import Launch, Sample

pytestmark = pytest.mark.process


def played(*arms: Arm, mirrored: bool = True, alone: ScriptedRounds | None = None) -> Round:
    use(alone)
    [found] = Apart(QUICK, mirrored=mirrored).play([arms], chance(), lambda _: None)
    return found


def stepping(*steps: float, contended: str = "", busy: bool = False) -> ScriptedRounds:
    """Have launch k of a round take steps of this length."""
    come = iter(steps)

    def script(arms: Sequence[Arm]) -> Round:
        [arm] = arms
        step = next(come)
        metrics = {"step_time": step, "mean_step": step, "throughput": 8 / step}
        done = Launch(
            arm.index,
            "ok",
            samples=(Sample(step, step, 0.0),) * 2,
            metrics=metrics,
            contended=contended,
            notes=("a note",),
        )
        return Round((replace(side(step), launch=done),), "together", NOW, turns=3, dropped=1, busy=busy)

    return ScriptedRounds(script)


def test_a_pair_apart_is_four_launches_of_which_one_is_alive_at_a_time(fake: str, sent: Sent, alive: list[int]) -> None:
    """A B B A, or B A A B. Each arm has all its turns, its proof, and a note."""
    loading.load((fake,))
    found = played(*(Arm(case(dtype=dtype), quick(fake), index=2, accuracy=True) for dtype in ("fp32", "bf16")))
    assert sent.of("begin") in (["fp32", "bf16", "bf16", "fp32"], ["bf16", "fp32", "fp32", "bf16"])
    assert alive == [1] * 4
    for one in found.results:
        assert len(one.times) == 2
        assert len(one.launch.samples) >= 2 * 4
        assert (one.launch.index, one.launch.metrics["accuracy"]) == (2, 1.0)
        assert [check.name for check in one.launch.proof] == ["dtype"]
        assert one.launch.notes == (NOTE,)
    assert [len(sent.of(do)) for do in ("proof", "accuracy")] == [2, 2]
    assert found.schedule == "apart"
    assert math.isfinite(found.log_ratio(0, 1))


def test_a_steady_drift_cancels_in_a_pair_apart() -> None:
    """A B B A: the second process of an arm is as much later than that of the other as its first was earlier."""
    drift = [math.exp(0.1 * launch) for launch in range(4)]
    assert played(A, B, alone=stepping(*drift)).log_ratio(0, 1) == pytest.approx(0)
    rounds = stepping(*drift)
    there = played(A, B, mirrored=False, alone=rounds)
    assert abs(there.log_ratio(0, 1)) == pytest.approx(0.1)
    assert [len(one.times) for one in there.results] == [1, 1]
    assert len(rounds.asked) == 2


def test_the_record_of_an_arm_is_of_both_its_launches() -> None:
    """It has the samples of both. Only the last one is proven."""
    rounds = stepping(1.0, 1.0, 3.0, 3.0)
    found = played(replace(A, accuracy=True), replace(B, accuracy=True), alone=rounds)
    assert [(arm.prove, arm.accuracy) for [arm] in rounds.asked] == [(False, False)] * 2 + [(True, True)] * 2
    for one in found.results:
        assert [sample.wall for sample in one.launch.samples] == [1.0, 1.0, 3.0, 3.0]
        assert one.launch.metrics == {"step_time": 2.0, "mean_step": 2.0, "throughput": 4.0}
        assert one.launch.notes == ("a note", NOTE)
        assert one.times == ((1.0,) * 3, (3.0,) * 3)
    assert (found.turns, found.dropped, found.busy) == (3, 4, False)
