"""The mean step beside the typical one: what neighbours held up is taken out, and stalls are described."""

import itertools
import random
from dataclasses import replace

import pytest
from judge_records import CASE, baseline, measurement

from ipexperf.judge import metrics, stalls
from ipexperf.judge.baseline import CaseBaseline
from ipexperf.ratio import Ratio
from ipexperf.result import MEAN, PRIMARY, Launch, Sample
from ipexperf.verdict import Verdict

STEP, STALL = 0.026, 0.030
GATE = (PRIMARY, MEAN, "held_memory", "step_memory")
LONGER = Verdict("regressed", "11.5 % slower", MEAN, ratio=Ratio(1.115))


def launch(count: int, *, every: int = 10, warm: int = 1, turn: int = 2, block: int = 1, seed: int = 1) -> Launch:
    """A launch whose process stalls in each step of that number, also in the untimed ones before each turn."""
    extra = stalls.extra_steps(seed) if warm else itertools.repeat(0)
    noise = random.Random(seed)  # noqa: S311 - a simulation, no secret
    samples, step = [], noise.randrange(every)
    for _ in range(count // turn):
        step += warm + next(extra)
        for _ in range(turn):
            wall = STEP * noise.lognormvariate(0, 0.01) + (STALL if step % every == 0 else 0.0)
            samples.append(Sample(wall, wall, 0.0))
            step += 1
    return Launch(seed, "ok", samples=tuple(samples), block=block, gate={"turns": count // turn, "turn_warm": warm})


def of(*samples: tuple[float, float]) -> list[float]:
    return stalls.undisturbed([Sample(wall, wall, delay) for wall, delay in samples])


def test_what_a_neighbour_held_up_makes_no_step_longer_and_a_stall_in_which_nothing_waited_does() -> None:
    assert of((1.0, 0.0), (1.0, 0.0), (1.5, 0.5)) == pytest.approx([1.0, 1.0, 1.0])
    assert of((1.0, 0.0), (1.0, 0.0), (1.5, 0.1)) == pytest.approx([1.0, 1.0, 1.4])


def test_threads_that_always_wait_for_one_another_are_slow_by_themselves() -> None:
    """They outnumber the cores. And no step becomes shorter than the typical one, however many threads waited."""
    assert of((1.0, 3.0), (1.0, 3.0), (1.0, 3.0), (1.2, 9.0), (0.9, 0.0)) == pytest.approx([1.0, 1.0, 1.0, 1.0, 0.9])


@pytest.mark.parametrize(("every", "said"), [(3, "3rd"), (10, "10th"), (12, "12th"), (17, "17th"), (21, "21st")])
@pytest.mark.parametrize(("warm", "turn"), [(0, 2), (2, 2), (3, 5)])
def test_a_stall_in_every_nth_step_is_found(every: int, said: str, warm: int, turn: int) -> None:
    launches = [launch(120, every=every, warm=warm, turn=turn, seed=seed) for seed in range(4)]
    text = stalls.described(launches)
    assert text.startswith(f"every {said} step takes ")
    assert text.endswith(" ms longer")


def test_no_period_is_told_where_turns_were_dropped() -> None:
    """Nobody knows how many steps those had."""
    launches = [launch(120, seed=seed) for seed in range(4)]
    dropped = [replace(one, gate={**one.gate, "turns_dropped": 2.0}) for one in launches]
    assert stalls.described(launches).startswith("every 10th")
    assert stalls.described(dropped).startswith("the largest stall")


def test_stalls_without_a_period_are_told_by_the_largest() -> None:
    odd = launch(100, every=1000)
    places = (3, 17, 18, 44, 52, 71, 90)
    samples = [replace(x, wall=x.wall + STALL * (i in places)) for i, x in enumerate(odd.samples)]
    text = stalls.described([replace(odd, samples=tuple(samples))])
    assert text.startswith("the largest stall 3")
    assert text.endswith(" ms")


def test_launches_without_a_stall_say_nothing() -> None:
    assert stalls.described([launch(100, every=1000, seed=4), Launch(1, "crashed")]) == ""


def test_only_the_verdict_on_a_longer_mean_is_explained() -> None:
    launches = [launch(120, seed=seed) for seed in range(3)]
    other = Verdict("regressed", "2% more", "held_memory", ratio=Ratio(1.02))
    told = stalls.explained((LONGER, other, replace(LONGER, outcome="ok")), launches)
    assert told[0].reason == "every 10th step takes 29.9 ms longer"
    assert told[1:] == (other, replace(LONGER, outcome="ok"))


def accepted(*means: float) -> CaseBaseline:
    stored = baseline([(0.01, 0.0101, 0.0099)] * len(means))
    sessions = zip(stored.sessions, means, strict=True)
    return replace(stored, sessions=tuple(replace(x, metrics={PRIMARY: 0.01, MEAN: 0.01 * y}) for x, y in sessions))


def in_sessions(step: float, mean: float, stored: CaseBaseline) -> Verdict:
    values = measurement([step] * 5, case=CASE, **{MEAN: step * mean}).of_run
    [verdict] = metrics.in_sessions(values, stored, GATE, 0.005)
    return verdict


def test_a_stored_mean_is_judged_beside_its_typical_step() -> None:
    """A machine that is slower as a whole tonight is a matter of the typical step alone."""
    assert in_sessions(0.02, 1.02, accepted(1.01, 1.02, 1.02)).outcome == "ok"
    found = in_sessions(0.02, 1.3, accepted(1.02, 1.01, 1.02))
    assert (found.outcome, found.metric) == ("regressed", MEAN)
    assert "as a multiple of the typical step" in found.reason
    assert found.level is not None
    assert found.level.now / found.level.before == pytest.approx(found.times)


def test_noisy_nights_raise_no_alarm_in_what_is_stored() -> None:
    """1,000 nights whose launches have means as in the recordings: 3 % above the typical step, some far more."""
    noise = random.Random(3)  # noqa: S311 - a simulation, no secret

    def night() -> float:
        return sorted(1 + noise.expovariate(1 / 0.03) + 0.2 * (noise.random() < 0.02) for _ in range(5))[2]

    for sessions in (1, 3, 12):
        nights = [in_sessions(0.01, night(), accepted(*(night() for _ in range(sessions)))) for _ in range(1000)]
        assert sum(verdict.outcome == "regressed" for verdict in nights) <= 2
