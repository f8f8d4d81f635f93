"""Run arms one after another: cold starts, and arms whose memory does not fit side by side."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ipexperf.compare import together
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import ArmResult, Effort, Round
from ipexperf.conduct.conductor import now
from ipexperf.judge.stalls import undisturbed
from ipexperf.result import MEAN, PRIMARY, THROUGHPUT
from ipexperf.steps import Step

NOTE = "measured apart: the arms of its round were not alive together"


@dataclass(frozen=True, slots=True)
class Apart:
    """The schedule of arms that run one after another, in random order.

    If `mirrored`, they run again in reverse order: A B B A. A steady drift of the machine then cancels out.
    """

    effort: Effort
    mirrored: bool = False

    def play(
        self, rounds: Sequence[Sequence[Arm]], chance: random.Random, say: Callable[[str], None]
    ) -> Iterator[Round]:
        for arms in rounds:
            yield self._round(arms, chance, say)

    def _round(self, arms: Sequence[Arm], chance: random.Random, say: Callable[[str], None]) -> Round:
        began, started = time.monotonic(), now()
        places = chance.sample(range(len(arms)), len(arms))
        passes = [places, places[::-1]] if self.mirrored else [places]
        halves: list[dict[int, Round]] = []
        for number, row in enumerate(passes):
            halves.append({})
            last = number == len(passes) - 1
            for place in row:
                arm = arms[place] if last else replace(arms[place], prove=False, accuracy=False)
                say(Step(f"apart: {arm.name or arm.case.id}"))
                halves[-1][place] = together.play([arm], self.effort, chance, say)
        results = tuple(_joined([half[place].results[0] for half in halves]) for place in range(len(arms)))
        rounds = [played for half in halves for played in half.values()]
        turns, dropped = min(played.turns for played in rounds), sum(played.dropped for played in rounds)
        busy = any(played.busy for played in rounds)
        return Round(results, "apart", started, turns, dropped, time.monotonic() - began, busy)


def _joined(parts: Sequence[ArmResult]) -> ArmResult:
    """Merge the processes of one arm: the record of the last, which was proven, with the samples of all."""
    broken = next((part for part in parts if part.error is not None), None)
    if broken is not None:
        return broken
    last = parts[-1]
    samples = tuple(sample for part in parts for sample in part.launch.samples)
    contended = "; ".join(dict.fromkeys(part.launch.contended for part in parts if part.launch.contended))
    metrics = dict(last.launch.metrics)
    if len(parts) > 1 and metrics.get(MEAN):
        mean = statistics.fmean(undisturbed(samples))
        metrics[THROUGHPUT] = metrics.get(THROUGHPUT, 0.0) * metrics[MEAN] / mean
        metrics |= {PRIMARY: statistics.median(sample.wall for sample in samples), MEAN: mean}
    notes = (*last.launch.notes, NOTE)
    launch = replace(last.launch, samples=samples, metrics=metrics, contended=contended, notes=notes)
    return replace(last, launch=launch, times=tuple(time for part in parts for time in part.times))
