"""A step that stalls now and then is as quick as ever in the median. Pairs see it in the mean."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from compare_play import NOW, QUICK, A, B, chance, finish, scripted, use
from free_machine import Budget

from ipexperf.compare.round import ArmResult, Round
from ipexperf.compare.sequence import Comparison, PairedRounds, Why
from ipexperf.conduct import launch
from ipexperf.judge import metrics, screen, stalls
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.sentence import sentence
from ipexperf.plan import gates
from ipexperf.result import MEAN, Launch, Measurement, Sample
from ipexperf.verdict import PairsEvidence, Verdict

STEP, STALL = 0.026, 0.030
TURNS, TURN = 10, 2
POLICY, GATE = PairPolicy(), gates.by_default()


def process(noise: random.Random, level: float, *, stalls_every: int, odd: float, usual: float = 0.03) -> ArmResult:
    """A launch on a noisy machine: usually 3 %, and in this share of samples something else takes up to ten steps."""
    samples, step = [], noise.randrange(100)
    for _ in range(TURNS * TURN):
        wall = level * noise.lognormvariate(0, usual) + (noise.random() < odd) * noise.uniform(0.5, 10) * STEP
        wall += STALL if stalls_every and step % stalls_every == 0 else 0.0
        samples.append(Sample(wall, wall, 0.0))
        step += 1
    done = Launch(0, "ok", samples=tuple(samples), gate={"turns": TURNS})
    done = replace(done, metrics=launch.of_samples(samples, items=8))
    turns = tuple(sum(x.wall for x in samples[at : at + TURN]) / TURN for at in range(0, len(samples), TURN))
    return ArmResult(A, done, {"software": {}}, (turns,))


def rounds(
    seed: int, *, stalls_every: int = 0, shift: float = 1.0, odd: float = 0.002, quiet: bool = False
) -> Iterator[Round]:
    noise = random.Random(seed)  # noqa: S311 - a simulation, no secret
    while True:
        level = STEP * noise.lognormvariate(0, 0.1)
        ours = level * shift * noise.lognormvariate(0, 0.002 if quiet else 0.01)
        usual, odds = (0.005, 0.0) if quiet else (0.03, odd)
        sides = (
            process(noise, x, stalls_every=n, odd=odds, usual=usual) for x, n in ((level, 0), (ours, stalls_every))
        )
        yield Round(tuple(sides), "together", NOW)


def compared(played: Iterator[Round], policy: PairPolicy = POLICY) -> Comparison:
    use(scripted(played))
    found = Comparison(A, B, policy, GATE)
    finish(PairedRounds([found], Budget(), print, effort=QUICK, chance=chance()))  # type: ignore[arg-type]
    return found


def judged(found: Comparison, policy: PairPolicy = POLICY) -> Verdict:
    launches = [pair.b.launch for pair in found.pairs]
    sides = [(pair.a.launch.metrics, pair.b.launch.metrics) for pair in found.pairs]
    others = stalls.explained(metrics.of_mean(found.mean, sides, policy, GATE), launches)
    evidence = PairsEvidence("itself", found.stop.text, ("a", "b"))
    measurement = Measurement(A.case, tuple(launches), {}, NOW, NOW)
    verdict = screen.judge_pairs(measurement, found.decision, evidence, policy, others)
    return metrics.combined(verdict, others)


def test_a_stall_in_every_tenth_step_is_a_regression_of_the_mean() -> None:
    """30 ms in each tenth step of 26 ms: the mean is 11.5 % longer, and half of the turns are as quick as ever.

    In one of some dozens of comparisons an odd sample of the other arm hides it.
    """
    verdicts = [judged(compared(rounds(seed, stalls_every=10))) for seed in range(20)]
    found = [verdict for verdict in verdicts if (verdict.outcome, verdict.worse) == ("regressed", MEAN)]
    assert len(found) >= 18
    for verdict in found:
        assert " slower mean_step" in sentence(verdict)
        assert "; every 10th step takes " in sentence(verdict)
        assert verdict.alone.outcome != "regressed"


@pytest.mark.parametrize("every", [17, 30])
def test_the_interval_of_the_mean_covers_rare_stalls(every: int) -> None:
    """On a quiet machine, where pairs that hold no stall, or two, lie further apart than any noise."""
    truth, found = (
        1 + STALL / every / STEP,
        [compared(rounds(seed, stalls_every=every, quiet=True)) for seed in range(60)],
    )
    means = [one.mean.verdict.ratio for one in found if one.mean is not None]
    assert sum(ratio is None or (ratio.lo or 0.0) > truth for ratio in means) <= 6
    assert sum(ratio is None or (ratio.hi or 0.0) < truth for ratio in means) <= 6
    assert len(means) == 60


def test_rare_large_outliers_raise_no_alarm_in_equal_arms() -> None:
    """300 A/A comparisons, in which one sample of 50 takes up to ten steps longer. The mean's share is 1 in 800."""
    found = [compared(rounds(seed, odd=0.02)) for seed in range(300)]
    assert sum(x.mean is not None and x.mean.outcome == "regressed" for x in found) <= 1


def test_a_mean_that_looks_longer_gets_more_pairs() -> None:
    """The typical step is decided at a look and stays so. If the mean stays open to the end, the case is not ok."""
    policy = PairPolicy(max_pairs=8)

    def uneven() -> Iterator[Round]:
        noise = random.Random(1)  # noqa: S311 - a simulation, no secret
        for one in rounds(1):
            steady = [replace(x, times=((STEP,) * TURNS,)) for x in one.results]
            means = (STEP, STEP * (1.06 + noise.gauss(0, 0.04)))
            sides = [
                replace(x, launch=replace(x.launch, metrics={**x.launch.metrics, MEAN: mean}))
                for x, mean in zip(steady, means, strict=True)
            ]
            yield replace(one, results=tuple(sides))

    found = compared(uneven(), policy)
    assert (found.decision.outcome, found.decision.pairs, len(found.pairs)) == ("ok", 4, 8)
    assert found.stop.why is Why.MOST
    verdict = judged(found, policy)
    assert verdict.outcome == "inconclusive"
    assert verdict.alone.outcome == "ok"
    assert re.match(r"could not tell: .* slower mean_step \(", sentence(verdict))
