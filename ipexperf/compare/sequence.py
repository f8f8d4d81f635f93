"""Compare pairs of arms in rounds until the judge is sure. Used by `ab`, `--perf-against`, `doctor` and `selftest`."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from enum import Enum

from ipexperf.case import Case
from ipexperf.compare.apart import Apart
from ipexperf.compare.arm import Arm, differ
from ipexperf.compare.group import MOST_ARMS
from ipexperf.compare.round import Effort, Round, Scheduler, Side, excused
from ipexperf.compare.together import Together
from ipexperf.conduct import launch
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import FRESH, Forking
from ipexperf.errors import WorkerError
from ipexperf.judge import ratios, sequential
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.ratios import Ratio
from ipexperf.judge.sequential import Decision
from ipexperf.report import units
from ipexperf.result import MEAN, Launch
from ipexperf.steps import Step

APART = "both arms do not fit in memory together, so each pair is four launches, A B B A"
DISCARDED = 4
"""How many pairs of a comparison are repeated because the machine was busy."""
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
class Comparison:
    """All rounds of two arms, the judge's decision, and why the comparison ended."""

    a: Arm
    b: Arm
    pairs: tuple[Pair, ...]
    decision: Decision
    stop: Ending
    differences: tuple[str, ...] = ()
    """The differences of the arms, one line each. Empty: they are the same."""
    failure: Failure | None = None
    apart: bool = False
    """Whether the arms ran one after another because they did not fit side by side."""
    mean: Decision | None = None
    """The judge's decision on their mean steps, if these were judged."""

    @property
    def log_ratios(self) -> list[float]:
        return [pair.log_ratio for pair in self.pairs]

    @property
    def cut(self) -> bool:
        """Whether the budget or an interruption ended it before the judge was sure."""
        ended = self.stop.why in (Why.BUDGET, Why.INTERRUPTED)
        return ended and self.decision.outcome == "inconclusive"


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
class Open:
    """A comparison in progress."""

    a: Arm
    b: Arm
    policy: PairPolicy
    scheduler: Scheduler
    pairs: list[Pair] = field(default_factory=list)
    stop: Ending | None = None
    decision: Decision | None = None
    of_mean: PairPolicy | None = None
    """The policy for the mean steps. None: they are not judged."""
    mean: Decision | None = None
    failure: Failure | None = None
    discarded: int = 0

    @property
    def apart(self) -> bool:
        return self.scheduler.name == "apart"

    @property
    def logs(self) -> list[float]:
        return [pair.log_ratio for pair in self.pairs]

    @property
    def warm(self) -> int | None:
        """Untimed steps before a turn: as many as either arm needed in the first round, the same for both."""
        launches = [side.launch for pair in self.pairs[:1] for side in (pair.a, pair.b)]
        needed = [launch.gate["turn_warm"] for launch in launches if "turn_warm" in launch.gate]
        return int(max(needed)) if needed else None

    @property
    def mean_logs(self) -> list[float]:
        """The log ratio of the mean steps of each pair. Empty if any pair lacks it."""
        sides = [[side.launch.metrics.get(MEAN, 0.0) for side in (pair.a, pair.b)] for pair in self.pairs]
        return [math.log(b / a) for a, b in sides] if all(0 < x < math.inf for both in sides for x in both) else []

    def decisions(self, *, last: bool) -> tuple[Decision, Decision | None]:
        """The decisions on the typical step and on the mean one. What was decided at an earlier look stands."""
        typical, mean = self.decision, self.mean
        if typical is None or not typical.done:
            typical = sequential.decide(self.logs, self.policy, last=last)
        if self.of_mean and (logs := self.mean_logs) and (mean is None or not mean.done):
            mean = sequential.decide(logs, self.of_mean, last=last)
        return typical, mean

    def judge(self, *, last: bool = False) -> None:
        """Judge the pairs so far, and end them if the worse of both decisions is sure."""
        self.decision, self.mean = self.decisions(last=last)
        undecided = self.decision.outcome == "inconclusive" or sequential.leans(self.mean, self.policy)
        slower = "regressed" in (self.decision.outcome, self.mean and self.mean.outcome)
        pairs = len(self.pairs)
        if slower or not undecided:
            text = f"it was decided after {pairs} of at most {self.policy.max_pairs} pairs"
            self.stop = Ending(Why.DECIDED, text)
        elif pairs >= self.policy.max_pairs:
            self.stop = Ending(Why.MOST, f"there were as many pairs as were allowed: {self.policy.max_pairs}")


def fresh(*_: object) -> AbstractContextManager[Forking]:
    """No servers: all workers start fresh."""
    return nullcontext(FRESH)


class Contest:
    """Comparisons that share rounds. Results so far can be read at any time, also after an interruption."""

    def __init__(
        self,
        sides: Sequence[tuple[Arm, Arm]],
        policies: Sequence[PairPolicy],
        effort: Effort,
        spent: Callable[[], bool],
        chance: random.Random,
        say: Callable[[str], None],
        *,
        prove: bool = True,
        show: Callable[[Standing], None] | None = None,
        forking: Callable[[Sequence[tuple[Case, Conditions]], int], AbstractContextManager[Forking]] = fresh,
        together: Scheduler | None = None,
        repeat_builds: bool = False,
        of_mean: Sequence[PairPolicy | None] = (),
    ) -> None:
        """Plan the comparisons.

        `of_mean`: for each comparison the policy for its mean steps. Without one they are not judged.

        `prove`: check proof and accuracy in the first round; switched off for arms that are slowed down on purpose.
        `show` is called with the state of each comparison before each of its rounds; the default uses `say`.
        `forking` starts the servers from which workers are forked in every round but the first. They live as long as
        their comparisons: pairs with a server in common are independent (ADR 46).
        With `repeat_builds` the arms start fresh, and only workers that build their cases once more are forked.
        `together` plays the rounds, and those of single arms that do not fit into memory side by side.
        """
        self._effort = effort
        self._spent = spent
        self._chance = chance
        self._say = say
        self._prove = prove
        self._show = show or (lambda standing: say(Step(standing)))
        self._forking = forking
        self._repeat_builds = repeat_builds
        self._servers = ExitStack()
        self._forked: tuple[set[int], Forking] = (set(), FRESH)
        """The comparisons that have servers, and these servers."""
        self._began = time.monotonic()
        self._together = together or Together()
        self._open = [
            Open(a, b, policy, self._together, of_mean=mean)
            for (a, b), policy, mean in zip(sides, policies, of_mean or [None] * len(sides), strict=True)
        ]

    def comparisons(self) -> list[Comparison]:
        """Each comparison so far. One still in progress counts as interrupted."""
        return [self._comparison(comparison) for comparison in self._open]

    def run(self, between_rounds: Callable[[], None] = lambda: None) -> list[Comparison]:
        """Play rounds until the judge is sure of every comparison, the limit is reached, or the budget is spent.

        `between_rounds` is called after each round but the last.
        """
        with self._servers:
            live = self._live()
            while live:
                for part in self._parts(live):
                    self._play(part)
                live = self._live()
                if live:
                    between_rounds()
        return self.comparisons()

    def _live(self) -> list[Open]:
        """The comparisons that take part in the next round. They end if the budget is spent."""
        live = [comparison for comparison in self._open if comparison.stop is None]
        if live and self._spent():
            for comparison in live:
                _end_with_budget(comparison)
            return []
        return live

    def _parts(self, live: Sequence[Open]) -> list[list[Open]]:
        """Split comparisons into shared rounds of at most MOST_ARMS arms. Those measured apart have their own."""
        parts: list[list[Open]] = []
        together: dict[int, list[Open]] = {}
        for comparison in live:
            if comparison.apart:
                parts.append([comparison])
                continue
            shared = together.setdefault(len(comparison.pairs), [])
            shared.append(comparison)
            if 2 * len(shared) >= MOST_ARMS:
                parts.append(together.pop(len(comparison.pairs)))
        return [*together.values(), *parts]

    def _play(self, live: Sequence[Open]) -> None:
        """Play one round of these comparisons, which all use the same scheduler."""
        number = len(live[0].pairs)
        for comparison in live:
            self._show(self._standing(comparison))
        prove = self._prove and number == 0
        arms = [
            replace(arm, index=number, prove=prove, accuracy=prove, warm=comparison.warm)
            for comparison in live
            for arm in (comparison.a, comparison.b)
        ]
        if self._repeat_builds:
            servers = self._servers_of(live, arms)
            arms = [replace(arm, builds=servers.forked(arm.case, arm.conditions)) for arm in arms]
            if number == 0 and any(arm.builds is None for arm in arms):
                self._say("builds are timed once a process, and not repeated: the workers of a case are not forked")
        elif number:  # the first round measures what a fresh process pays
            servers = self._servers_of(live, arms)
            arms = [replace(arm, conditions=servers.conditions(arm.case, arm.conditions)) for arm in arms]
        played = live[0].scheduler.play(arms, self._effort, self._chance, self._say)
        for place, comparison in enumerate(live):
            self._take(comparison, played, 2 * place, 2 * place + 1)

    def _servers_of(self, live: Sequence[Open], arms: Sequence[Arm]) -> Forking:
        """The servers that these arms are forked from, started when these comparisons first share a round."""
        shared = {id(comparison) for comparison in live}
        if not shared <= self._forked[0]:
            self._servers.close()
            # With two pairs ahead, a server for each arm saves imports too.
            servers = self._forking([(arm.case, arm.conditions) for arm in arms], 2 * len(arms))
            self._forked = shared, self._servers.enter_context(servers)
        return self._forked[1]

    def _take(self, comparison: Open, played: Round, first: int, second: int) -> None:
        a, b = played.sides[first], played.sides[second]
        broken = next((side for side in (a, b) if side.error is not None), None)
        if broken is not None and broken.error is not None:
            # A driver may end the process itself; the last lines of its log say why.
            outcome, _ = launch.how_it_ended(broken.error, broken.arm.conditions.accelerator)
            if outcome == "out_of_memory" and played.schedule == "together":
                self._say(f"{broken.error.reason}: {APART}")
                comparison.scheduler = Apart(mirrored=True, alone=self._together)
            else:
                arm = comparison.a if broken is a else comparison.b
                comparison.failure = Failure(arm, broken.error)
                comparison.stop = Ending(Why.FAILED, "an arm failed")
            return
        if played.thin and comparison.discarded < DISCARDED:
            comparison.discarded += 1
            self._say(f"{comparison.b.case.id}: the machine was busy, so this pair is made again: {b.launch.contended}")
            return
        comparison.pairs.append(Pair(a, b, played.log_ratio(first, second), played))
        if wrong(comparison.pairs[0].a.launch) or wrong(comparison.pairs[0].b.launch):
            comparison.stop = Ending(Why.WRONG, "an arm failed its proof or accuracy")
        elif sequential.due(len(comparison.pairs), comparison.policy):
            comparison.judge()

    def _standing(self, comparison: Open) -> Standing:
        """The estimate so far, and the least and the most seconds left."""
        number = len(comparison.pairs)
        name = f"{comparison.b.case.id} against {comparison.a.name or comparison.a.case.id}"
        left = seconds_left(comparison.policy, number, (time.monotonic() - self._began) / number) if number else None
        return Standing(
            name, number, comparison.policy.max_pairs, ratios.combine(comparison.logs) if number > 1 else None, left
        )

    def _comparison(self, comparison: Open) -> Comparison:
        interrupted = f"interrupted after {units.plural(len(comparison.pairs), 'pair')}"
        stop = comparison.stop or Ending(Why.INTERRUPTED, interrupted)
        decision, mean = comparison.decision, comparison.mean
        if comparison.pairs and stop.why in (Why.INTERRUPTED, Why.FAILED):
            decision, mean = comparison.decisions(last=True)
        environments = (
            (comparison.pairs[0].a.environment, comparison.pairs[0].b.environment) if comparison.pairs else None
        )
        return Comparison(
            comparison.a,
            comparison.b,
            tuple(comparison.pairs),
            decision or sequential.decide([], comparison.policy),
            stop,
            tuple(differ(comparison.a, comparison.b, environments)),
            comparison.failure,
            comparison.apart,
            mean,
        )


def wrong(launch: Launch) -> str:
    """The first failed check of a launch, or an empty string: a fast but wrong arm must not win."""
    return next((str(check) for check in (*launch.proof, *launch.accuracy) if not check.ok), "")


def seconds_left(policy: PairPolicy, pairs: int, each: float) -> tuple[float, float]:
    """The seconds until the next look of the judge and until the last, if a pair takes `each`."""
    return each * (sequential.next_look(pairs, policy) - pairs), each * (policy.max_pairs - pairs)


def _end_with_budget(comparison: Open) -> None:
    done = len(comparison.pairs)
    if done:
        comparison.judge(last=True)
    when = f"after {units.plural(done, 'pair')}" if done else "already"
    comparison.stop = Ending(Why.BUDGET, f"the budget (--perf-budget) was spent {when}")


def measured(comparison: Comparison) -> tuple[list[Launch], Mapping[str, object]]:
    """The launches of the second arm, each with the first arm's fingerprint, and the second arm's environment."""
    # They count whatever else the machine did.
    launches = [replace(excused(pair.b.launch), against=pair.a.launch.fingerprint) for pair in comparison.pairs]
    environment = dict(comparison.pairs[0].b.environment) if comparison.pairs else {}
    return launches, environment
