"""Compare pairs of arms in rounds until the judge is sure. Used by `ab`, `--perf-against` and `doctor`."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import Enum

from ipexperf.bench.outcome import ABSENT
from ipexperf.compare import apart, together
from ipexperf.compare.arm import Arm, differ
from ipexperf.compare.group import MOST_ARMS
from ipexperf.compare.round import Effort, Round, Side, excused, tell_repeated
from ipexperf.conduct import launch
from ipexperf.conduct.conductor import FRESH, Conductor, Forking
from ipexperf.errors import WorkerError
from ipexperf.judge import metrics, ratios, sequential, stalls
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.ratios import Ratio
from ipexperf.judge.sequential import Decision
from ipexperf.report import units
from ipexperf.result import MEAN, PRIMARY, Launch
from ipexperf.steps import Step

APART = "both arms do not fit in memory together, so each pair is four launches, A B B A"
DISCARDED = 4
"""How many pairs of a comparison are repeated because the machine was busy."""
TIMES = (PRIMARY, MEAN)
OF_LONGEST = 0.25
"""Pairs' mean steps differ at least by this share of what the longest sample of each adds, when the judge sees none."""
SAME = "A/A: both arms are the same"
"""Said if the arms do not differ: any difference seen is noise."""


class Why(Enum):
    """Why a comparison ended."""

    DECIDED = "decided"
    MOST = "most"
    BUDGET = "budget"
    FAILED = "failed"
    WRONG = "wrong"
    ABSENT = "absent"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a comparison ended, and the sentence for people."""

    why: Why
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that ended a comparison, and the arm at fault."""

    arm: Arm
    error: WorkerError


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides of one comparison in one round."""

    a: Side
    b: Side
    log_ratio: float
    round: Round


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a comparison before its next round; `str()` is a line for people."""

    name: str
    done: int
    most: int
    so_far: Ratio | None
    seconds_left: tuple[float, float] | None
    """Until the judge looks next, and until it has looked for the last time."""

    @property
    def estimate(self) -> str:
        """The ratio so far with its interval, or an empty string."""
        if self.so_far is None or self.so_far.lo is None or self.so_far.hi is None:
            return ""
        if self.so_far.hi / self.so_far.lo > ratios.WIDE:
            return f"{units.percent(self.so_far.ratio)}, too few pairs to tell"
        return f"{units.percent(self.so_far.ratio)} {units.interval(self.so_far.lo, self.so_far.hi)}"

    def __str__(self) -> str:
        line = f"{self.name}: pair {self.done + 1} of at most {self.most}"
        return "; ".join([line, *([f"so far {self.estimate}", self.left] if self.estimate and self.left else [])])

    @property
    def left(self) -> str:
        """How long it still takes, or an empty string."""
        return "" if self.seconds_left is None else f"{units.seconds_between(*self.seconds_left)} more"


@dataclass(slots=True)
class Comparison:
    """Two arms that are compared in pairs until the judge is sure. It can be read at any time."""

    a: Arm
    b: Arm
    policy: PairPolicy
    gate: Sequence[str] = ()
    """The metrics that are judged."""
    pairs: list[Pair] = field(default_factory=list)
    ended: Ending | None = None
    failure: Failure | None = None
    apart: bool = False
    """Whether the arms run one after another because they do not fit side by side."""
    discarded: int = 0
    _typical: Decision | None = None
    _mean: Decision | None = None

    @property
    def stop(self) -> Ending:
        """Why it ended. One that is still in progress counts as interrupted."""
        return self.ended or Ending(Why.INTERRUPTED, f"interrupted after {units.plural(len(self.pairs), 'pair')}")

    @property
    def decision(self) -> Decision:
        """The judge's decision on the typical step."""
        return self._so_far()[0] or sequential.decide([], self.policy)

    @property
    def mean(self) -> Decision | None:
        """The judge's decision on the mean steps, if these were judged."""
        return self._so_far()[1]

    @property
    def differences(self) -> list[str]:
        """The differences of the arms, one line each. None: they are the same."""
        if not self.pairs:
            return differ(self.a, self.b, None)
        a, b = self.pairs[0].a, self.pairs[0].b
        ran = [name for side in (b, a) for name in (side.launch.fingerprint or {}).get("ran", ())]
        return differ(self.a, self.b, (a.environment, b.environment), ran)

    @property
    def log_ratios(self) -> list[float]:
        return [pair.log_ratio for pair in self.pairs]

    @property
    def metrics(self) -> list[tuple[Mapping[str, float], Mapping[str, float]]]:
        """The metrics of both arms in each pair."""
        return [(pair.a.launch.metrics, pair.b.launch.metrics) for pair in self.pairs]

    @property
    def cut(self) -> bool:
        """Whether the budget or an interruption ended it before the judge was sure."""
        ended = self.stop.why in (Why.BUDGET, Why.INTERRUPTED)
        return ended and self.decision.outcome == "inconclusive"

    @property
    def warm(self) -> int | None:
        """Untimed steps before a turn: as many as either arm needed in the first round, the same for both."""
        launches = [side.launch for pair in self.pairs[:1] for side in (pair.a, pair.b)]
        needed = [launch.gate["turn_warm"] for launch in launches if "turn_warm" in launch.gate]
        return int(max(needed)) if needed else None

    @property
    def _alone(self) -> bool:
        """Whether the steps of both arms worked in one thread in all pairs so far."""
        return bool(self.pairs) and all("alone" in one.launch.gate for pair in self.pairs for one in (pair.a, pair.b))

    @property
    def mean_logs(self) -> list[float]:
        """The log ratio of the mean steps of all pairs, and around it what each pair adds. Empty if any lacks it.

        The mean of their logs would be too small: stalls are in few pairs, and long there. A pair's typical steps say
        how quick the machine was.
        """
        sides = self.metrics
        if not all(0 < side.get(name, 0.0) < math.inf for both in sides for side in both for name in TIMES):
            return []
        typical = [math.sqrt(a[PRIMARY] * b[PRIMARY]) for a, b in sides]
        before = [a[MEAN] / level for (a, _), level in zip(sides, typical, strict=True)]
        now = [b[MEAN] / level for (_, b), level in zip(sides, typical, strict=True)]
        means = statistics.fmean(before), statistics.fmean(now)
        slower = math.log(means[1] / means[0])
        return [slower + b / means[1] - a / means[0] for a, b in zip(before, now, strict=True)]

    @property
    def _mean_policy(self) -> PairPolicy | None:
        """The policy for the mean steps. Their spread is at least a share of what the longest samples add.

        A few pairs may hold as many stalls by chance, and then say nothing of how many there are.
        """
        of_mean = metrics.for_mean(self.policy, self.gate)
        launches = [side.launch for pair in self.pairs for side in (pair.a, pair.b) if side.launch.samples]
        if of_mean is None or not launches:
            return of_mean
        added = math.sqrt(2 * statistics.fmean(stalls.of_longest(one.samples) ** 2 for one in launches))
        return replace(of_mean, floor=max(of_mean.floor, OF_LONGEST * added))

    def arms(self) -> list[Arm]:
        """Both arms for the next pair. Only the first one asks for proof and accuracy."""
        number = len(self.pairs)
        prove = number == 0
        return [
            replace(arm, index=number, prove=prove, accuracy=prove, warm=self.warm, alone=self._alone)
            for arm in (self.a, self.b)
        ]

    def judge(self, *, last: bool = False) -> None:
        """Judge the pairs so far, and end them if the worse of both decisions is sure."""
        typical, mean = self._typical, self._mean = self._decisions(last=last)
        undecided = typical.outcome == "inconclusive" or sequential.leans(mean, self.policy)
        slower = "regressed" in (typical.outcome, mean and mean.outcome)
        pairs = len(self.pairs)
        if slower or not undecided:
            text = f"it was decided after {pairs} of at most {self.policy.max_pairs} pairs"
            self.ended = Ending(Why.DECIDED, text)
        elif pairs >= self.policy.max_pairs:
            self.ended = Ending(Why.MOST, f"there were as many pairs as were allowed: {self.policy.max_pairs}")

    def fail(self, arm: Arm, error: WorkerError) -> None:
        """End it, because an arm failed, or because the other tree lacks the case, as before it was written."""
        absent = error.outcome == ABSENT
        self.failure = Failure(arm, error)
        self.ended = Ending(Why.ABSENT, error.reason) if absent else Ending(Why.FAILED, "an arm failed")

    def end_with_budget(self) -> None:
        done = len(self.pairs)
        if done:
            self.judge(last=True)
        lost = f"{units.plural(self.discarded, 'pair')} taken on a busy machine" if self.discarded else ""
        counted = f"after {units.plural(done, 'pair')}" if done else "before a pair counted" if lost else "already"
        self.ended = Ending(Why.BUDGET, f"the budget (--perf-budget) was spent {counted}{lost and f', and on {lost}'}")

    def _so_far(self) -> tuple[Decision | None, Decision | None]:
        """The decisions on the typical step and on the mean one. One that the judge did not end is judged as it is."""
        if self.pairs and self.stop.why in (Why.INTERRUPTED, Why.FAILED):
            return self._decisions(last=True)
        return self._typical, self._mean

    def _decisions(self, *, last: bool) -> tuple[Decision, Decision | None]:
        """Both decisions on the pairs so far. What was decided at an earlier look stands."""
        typical, mean = self._typical, self._mean
        if typical is None or not typical.done:
            typical = sequential.decide(self.log_ratios, self.policy, last=last)
        if (policy := self._mean_policy) and (logs := self.mean_logs) and (mean is None or not mean.done):
            mean = sequential.decide(logs, policy, last=last)
        return typical, mean


class Contest:
    """Comparisons that share rounds."""

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        effort: Effort,
        conductor: Conductor,
        chance: random.Random,
        say: Callable[[str], None],
        *,
        show: Callable[[Standing], None] | None = None,
        fresh: bool = False,
        repeat_builds: bool = False,
    ) -> None:
        """Plan the rounds.

        `show` is called with the state of each comparison before each of its rounds; the default uses `say`.
        Unless they must start `fresh`, workers are forked in every round but the first, from servers that live as long
        as their comparisons: pairs with a server in common are independent (ADR 46).
        With `repeat_builds` the arms start fresh, and only workers that build their cases once more are forked.
        """
        self._comparisons = comparisons
        self._effort = effort
        self._conductor = conductor
        self._chance = chance
        self._say = say
        self._show = show or (lambda standing: say(Step(standing)))
        self._fresh = fresh
        self._repeat_builds = repeat_builds
        self._servers = ExitStack()
        self._forked: tuple[set[int], Forking] = (set(), FRESH)
        """The comparisons that have servers, and these servers."""
        self._began = time.monotonic()
        self._repeated: list[tuple[str, str]] = []
        """The cases whose pair of this round does not count, each with the reason."""

    def play(self) -> Iterator[None]:
        """Play rounds until the judge is sure of every comparison, the limit is reached, or the budget is spent.

        Yields after each round but the last.
        """
        with self._servers:
            live = self._live()
            while live:
                for part in self._parts(live):
                    self._play(part)
                    tell_repeated(self._repeated, "the machine was busy, so this pair is made again: ", self._say)
                live = self._live()
                if live:
                    yield

    def _live(self) -> list[Comparison]:
        """The comparisons that take part in the next round. They end if the budget is spent."""
        live = [comparison for comparison in self._comparisons if comparison.ended is None]
        if live and self._conductor.spent():
            for comparison in live:
                comparison.end_with_budget()
            return []
        return live

    def _parts(self, live: Sequence[Comparison]) -> list[list[Comparison]]:
        """Split comparisons into shared rounds of at most MOST_ARMS arms. Those measured apart have their own."""
        parts: list[list[Comparison]] = []
        sharing: dict[int, list[Comparison]] = {}
        for comparison in live:
            if comparison.apart:
                parts.append([comparison])
                continue
            shared = sharing.setdefault(len(comparison.pairs), [])
            shared.append(comparison)
            if 2 * len(shared) >= MOST_ARMS:
                parts.append(sharing.pop(len(comparison.pairs)))
        return [*sharing.values(), *parts]

    def _play(self, live: Sequence[Comparison]) -> None:
        """Play one round of these comparisons: of one that is measured apart, or of several together."""
        number = len(live[0].pairs)
        for comparison in live:
            self._show(self._standing(comparison))
        arms = [arm for comparison in live for arm in comparison.arms()]
        if self._repeat_builds:
            servers = self._servers_of(live, arms)
            arms = [replace(arm, builds=servers.forked(arm.case, arm.conditions)) for arm in arms]
            if number == 0 and any(arm.builds is None for arm in arms):
                self._say("builds are timed once a process, and not repeated: the workers of a case are not forked")
        elif number and not self._fresh:  # the first round measures what a fresh process pays
            servers = self._servers_of(live, arms)
            arms = [replace(arm, conditions=servers.conditions(arm.case, arm.conditions)) for arm in arms]
        if live[0].apart:
            played = apart.play(arms, self._effort, self._chance, self._say, mirrored=True)
        else:
            played = together.play(arms, replace(self._effort, keep=True), self._chance, self._say)
        for place, comparison in enumerate(live):
            self._take(comparison, played, 2 * place, 2 * place + 1)

    def _servers_of(self, live: Sequence[Comparison], arms: Sequence[Arm]) -> Forking:
        """The servers that these arms are forked from, started when these comparisons first share a round."""
        shared = {id(comparison) for comparison in live}
        if not shared <= self._forked[0]:
            self._servers.close()
            # With two pairs ahead, a server for each arm saves imports too.
            servers = self._conductor.forking([(arm.case, arm.conditions) for arm in arms], 2 * len(arms))
            self._forked = shared, self._servers.enter_context(servers)
        return self._forked[1]

    def _take(self, comparison: Comparison, played: Round, first: int, second: int) -> None:
        a, b = played.sides[first], played.sides[second]
        broken = next((side for side in (a, b) if side.error is not None), None)
        if broken is not None and broken.error is not None:
            # A driver may end the process itself; the last lines of its log say why.
            outcome, _ = launch.how_it_ended(broken.error, broken.arm.conditions.accelerator)
            if outcome == "out_of_memory" and played.schedule == "together":
                self._say(f"{broken.error.reason}: {APART}")
                comparison.apart = True
            else:
                comparison.fail(comparison.a if broken is a else comparison.b, broken.error)
            return
        if played.thin and comparison.discarded < DISCARDED:
            comparison.discarded += 1
            self._repeated.append((comparison.b.case.name, b.launch.contended))
            return
        comparison.pairs.append(Pair(a, b, played.log_ratio(first, second), played))
        if wrong(comparison.pairs[0].a.launch) or wrong(comparison.pairs[0].b.launch):
            comparison.ended = Ending(Why.WRONG, "an arm failed its proof or accuracy")
        elif sequential.due(len(comparison.pairs), comparison.policy):
            comparison.judge()

    def _standing(self, comparison: Comparison) -> Standing:
        """The estimate so far, and the least and the most seconds left."""
        number, logs = len(comparison.pairs), comparison.log_ratios
        name = f"{comparison.b.case.name} against {comparison.a.name or comparison.a.case.name}"
        left = seconds_left(comparison.policy, number, (time.monotonic() - self._began) / number) if number else None
        estimate = ratios.combine(logs) if number > 1 else None
        return Standing(name, number, comparison.policy.max_pairs, estimate, left)


def wrong(launch: Launch) -> str:
    """The first failed check of a launch, or an empty string: a fast but wrong arm must not win."""
    return next((str(check) for check in (*launch.proof, *launch.accuracy) if not check.ok), "")


def seconds_left(policy: PairPolicy, pairs: int, each: float) -> tuple[float, float]:
    """The seconds until the next look of the judge and until the last, if a pair takes `each`."""
    return each * (sequential.next_look(pairs, policy) - pairs), each * (policy.max_pairs - pairs)


def measured(comparison: Comparison) -> tuple[list[Launch], Mapping[str, object]]:
    """The launches of the second arm, each with the first arm's fingerprint, and the second arm's environment."""
    # They count whatever else the machine did.
    launches = [replace(excused(pair.b.launch), against=pair.a.launch.fingerprint) for pair in comparison.pairs]
    environment = dict(comparison.pairs[0].b.environment) if comparison.pairs else {}
    return launches, environment
