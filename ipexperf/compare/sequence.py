"""Compare pairs of arms in rounds until the judge is sure. Used by `ab`, `--perf-against` and `doctor`."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from ipexperf import units
from ipexperf.bench.outcome import ABSENT
from ipexperf.compare import rounds
from ipexperf.compare.apart import Apart
from ipexperf.compare.arm import Arm, differ
from ipexperf.compare.round import Absence, ArmResult, Effort, Round
from ipexperf.compare.rounds import Lineup, Rounds, Say, Schedule
from ipexperf.compare.together import Together
from ipexperf.compare.walk import TELLING
from ipexperf.conduct import launch
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.forking import FRESH, Forking
from ipexperf.errors import WorkerError
from ipexperf.judge import metrics, ratios, sequential, stalls
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.sentence import sentence
from ipexperf.judge.sequential import Decision
from ipexperf.ratio import flat, numbers
from ipexperf.result import MEAN, PRIMARY, Launch
from ipexperf.steps import Step
from ipexperf.verdict import Verdict

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
    """The results of both arms of a comparison in one round."""

    a: ArmResult
    b: ArmResult
    log_ratio: float
    round: Round

    @property
    def launches(self) -> tuple[Launch, Launch]:
        return self.a.launch, self.b.launch


@dataclass(slots=True, eq=False)
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
        ran = [name for capture in reversed(self.fingerprints) for name in (capture or {}).get("ran", ())]
        return differ(self.a, self.b, (a.environment, b.environment), ran)

    @property
    def log_ratios(self) -> list[float]:
        return [pair.log_ratio for pair in self.pairs]

    @property
    def metrics(self) -> list[tuple[Mapping[str, float], Mapping[str, float]]]:
        """The metrics of both arms in each pair."""
        return [(a.metrics, b.metrics) for a, b in self._launches]

    @property
    def _launches(self) -> list[tuple[Launch, Launch]]:
        return [pair.launches for pair in self.pairs]

    @property
    def fingerprints(self) -> list[Mapping[str, Any] | None]:
        """Those of both arms in the first pair, or nothing before it has been made."""
        return [launch.fingerprint for pair in self._launches[:1] for launch in pair]

    @property
    def flaws(self) -> list[str]:
        """The first failed check of each arm in the first pair, or an empty text: a fast but wrong arm must not win."""
        checks = [(*launch.proof, *launch.accuracy) for pair in self._launches[:1] for launch in pair]
        return [next((str(check) for check in part if not check.ok), "") for part in checks]

    @property
    def cut(self) -> bool:
        """Whether the budget or an interruption ended it before the judge was sure."""
        ended = self.stop.why in (Why.BUDGET, Why.INTERRUPTED)
        return ended and self.decision.verdict.outcome == "inconclusive"

    @property
    def warm(self) -> int | None:
        """Untimed steps before a turn: as many as either arm needed in the first round, the same for both."""
        needed = [launch.gate.get("turn_warm") for pair in self._launches[:1] for launch in pair]
        return max((int(steps) for steps in needed if steps is not None), default=None)

    @property
    def _alone(self) -> bool:
        """Whether the steps of both arms worked in one thread in all pairs so far."""
        return bool(self.pairs) and all("alone" in launch.gate for pair in self._launches for launch in pair)

    @property
    def mean_logs(self) -> list[float]:
        """The log ratio of the mean steps of all pairs, and around it what each pair adds. Empty if any lacks it.

        The mean of their logs would be too small: stalls are in few pairs, and long there. A pair's typical steps say
        how quick the machine was.
        """
        both = self.metrics
        if not all(0 < arm.get(name, 0.0) < math.inf for pair in both for arm in pair for name in TIMES):
            return []
        typical = [math.sqrt(a[PRIMARY] * b[PRIMARY]) for a, b in both]
        before = [a[MEAN] / level for (a, _), level in zip(both, typical, strict=True)]
        now = [b[MEAN] / level for (_, b), level in zip(both, typical, strict=True)]
        means = statistics.fmean(before), statistics.fmean(now)
        slower = math.log(means[1] / means[0])
        return [slower + b / means[1] - a / means[0] for a, b in zip(before, now, strict=True)]

    @property
    def _mean_policy(self) -> PairPolicy | None:
        """The policy for the mean steps. Their spread is at least a share of what the longest samples add.

        A few pairs may hold as many stalls by chance, and then say nothing of how many there are.
        """
        of_mean = metrics.for_mean(self.policy, self.gate)
        samples = [launch.samples for pair in self._launches for launch in pair if launch.samples]
        if of_mean is None or not samples:
            return of_mean
        added = math.sqrt(2 * statistics.fmean(stalls.of_longest(part) ** 2 for part in samples))
        return replace(of_mean, floor=max(of_mean.floor, OF_LONGEST * added))

    def arms(self) -> list[Arm]:
        """Both arms for the next pair. Only the first one asks for proof and accuracy."""
        number = len(self.pairs)
        prove = number == 0
        return [
            replace(arm, index=number, prove=prove, accuracy=prove, warm=self.warm, alone=self._alone)
            for arm in (self.a, self.b)
        ]

    def arms_of_test(self) -> list[Arm]:
        """Both arms for the next pair of a function, whose answers and captures may differ from process to process.

        To capture what a call does takes as long as dozens of calls.
        """
        prove = not self.pairs or metrics.captures_tell(self.metrics, self.gate, self.policy.alpha)
        return [replace(arm, prove=prove, accuracy=arm.index < TELLING) for arm in self.arms()]

    def judge(self, *, last: bool = False) -> None:
        """Judge the pairs so far, and end them if the worse of both decisions is sure."""
        typical, mean = self._typical, self._mean = self._decisions(last=last)
        of_mean = [mean.verdict] if mean else []
        undecided = typical.verdict.outcome == "inconclusive" or any(sequential.leans(x, self.policy) for x in of_mean)
        slower = "regressed" in (x.outcome for x in (typical.verdict, *of_mean))
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

    def end_absent(self, absences: Sequence[Absence | None]) -> None:
        """End it, because a session of an arm did not stand in its test."""
        if blamed := self._blamed([absence.error if absence else None for absence in absences]):
            self.fail(*blamed)
            return
        alone = [absence.broken if absence and not all(absences) else None for absence in absences]
        self.failure = Failure(*blamed) if (blamed := self._blamed(alone)) else None
        names = [arm.name or "this run" for arm in (self.a, self.b)]
        texts = list(dict.fromkeys(str(absence) for absence in absences if absence))
        if len(texts) == 1 and all(absences):
            text = f"in both arms {texts[0]}"
        else:
            text = "; ".join(f"{name}: {absence}" for name, absence in zip(names, absences, strict=True) if absence)
        self.ended = Ending(Why.ABSENT, text)

    def _blamed(self, errors: Sequence[WorkerError | None]) -> tuple[Arm, WorkerError] | None:
        """The arm that is to blame, the user's own first, and its error."""
        both = ((self.b, errors[1]), (self.a, errors[0]))
        return next(((arm, arm.blamed(error)) for arm, error in both if error), None)

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


class PairedRounds(Rounds[Comparison, Comparison]):
    """Comparisons that share rounds, each until the judge is sure."""

    repeated = "the machine was busy, so this pair is made again: "

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        conductor: Conductor,
        say: Say,
        *,
        effort: Effort | None = None,
        chance: random.Random | None = None,
        fresh: bool = False,
        repeat_builds: bool = False,
        walk: Schedule | None = None,
    ) -> None:
        """Plan the rounds. With a `walk` each goes through all comparisons that are open.

        Unless they must start `fresh`, workers are forked in every round but the first, from servers that live as long
        as their comparisons: pairs with a server in common are independent (ADR 46).
        With `repeat_builds` the arms start fresh, and only workers that build their cases once more are forked.
        """
        super().__init__(conductor, say, effort, chance)
        self._comparisons = comparisons
        self._fresh = fresh
        self._repeat_builds = repeat_builds
        self._walk = walk
        self._forked: tuple[set[Comparison], Forking] = (set(), FRESH)
        """The comparisons that have servers, and these servers."""
        self._began = time.monotonic()

    def play(self) -> Iterator[None]:
        yield from super().play()
        if all(comparison.stop.why is Why.ABSENT for comparison in self._comparisons):  # green would mean: not slower
            for comparison in self._comparisons:
                if comparison.failure is not None:
                    comparison.fail(comparison.failure.arm, comparison.failure.error)

    def open(self) -> list[Comparison]:
        return [comparison for comparison in self._comparisons if comparison.ended is None]

    def cut(self, entries: Sequence[Comparison]) -> None:
        for comparison in entries:
            comparison.end_with_budget()

    def begin(self, number: int, entries: Sequence[Comparison]) -> None:
        if self._walk:
            left = self._left(number, entries)
            self._say(Step(f"walk {number}: {units.plural(len(entries), entries[0].b.case.noun)}{left}"))

    def split(self, waiting: Sequence[Comparison]) -> tuple[Schedule, list[Lineup[Comparison]], Sequence[Comparison]]:
        """At most MOST_ARMS arms share a round, with as many pairs each. Arms that are measured apart share none."""
        if self._walk:
            return self._walk, [Lineup([comparison], comparison.arms_of_test()) for comparison in waiting], []
        first = waiting[0]
        if first.apart:
            return Apart(self._effort, mirrored=True), [self._lineup([first])], waiting[1:]
        pairs = len(first.pairs)
        sharing = [comparison for comparison in waiting if not comparison.apart and len(comparison.pairs) == pairs]
        sharing = sharing[: rounds.MOST_ARMS // 2]
        rest = [comparison for comparison in waiting if comparison not in sharing]
        return Together(replace(self._effort, keep=True)), [self._lineup(sharing)], rest

    def _lineup(self, comparisons: Sequence[Comparison]) -> Lineup[Comparison]:
        number = len(comparisons[0].pairs)
        for comparison in comparisons:
            self._say(self._standing(comparison))
        arms = [arm for comparison in comparisons for arm in comparison.arms()]
        if self._repeat_builds:
            servers = self._servers_of(comparisons, arms)
            arms = [replace(arm, builds=servers.forked(arm.case, arm.conditions)) for arm in arms]
            if number == 0 and any(arm.builds is None for arm in arms):
                self._say("builds are timed once a process, and not repeated: the workers of a case are not forked")
        elif number and not self._fresh:  # the first round measures what a fresh process pays
            servers = self._servers_of(comparisons, arms)
            arms = [replace(arm, conditions=servers.conditions(arm.case, arm.conditions)) for arm in arms]
        return Lineup(comparisons, arms)

    def _servers_of(self, comparisons: Sequence[Comparison], arms: Sequence[Arm]) -> Forking:
        """The servers that these arms are forked from, started when these comparisons first share a round."""
        shared = set(comparisons)
        if not shared <= self._forked[0]:
            self._servers.close()
            # With two pairs ahead, a server for each arm saves imports too.
            servers = self._conductor.forking([(arm.case, arm.conditions) for arm in arms], 2 * len(arms))
            self._forked = shared, self._servers.enter_context(servers)
        return self._forked[1]

    def take(self, lineup: Lineup[Comparison], played: Round) -> list[Comparison]:
        """A pair that the machine disturbed is made again in the next round."""
        if played.absences:
            lineup.members[0].end_absent(played.absences)
            return []
        for place, comparison in enumerate(lineup.members):
            self._take(comparison, played, 2 * place, 2 * place + 1)
        return []

    def _take(self, comparison: Comparison, played: Round, first: int, second: int) -> None:
        a, b = played.results[first], played.results[second]
        broken = next((result for result in (a, b) if result.error is not None), None)
        if broken is not None and broken.error is not None:
            # A driver may end the process itself; the last lines of its log say why.
            outcome, _ = launch.how_it_ended(broken.error, broken.arm.conditions.accelerator)
            if outcome == "out_of_memory" and played.schedule == "together" and not self._walk:
                self._say(f"{broken.error.reason}: {APART}")
                comparison.apart = True
            else:
                comparison.fail(comparison.a if broken is a else comparison.b, broken.error)
            return
        if played.busy and comparison.discarded < DISCARDED:
            comparison.discarded += 1
            self._disturbed.append((comparison.b.case.name, b.launch.contended))
            return
        if self._walk and comparison.pairs:
            # Later captures tell how much their counts vary: one fingerprint is enough.
            a, b = (replace(result, launch=replace(result.launch, fingerprint=None)) for result in (a, b))
        comparison.pairs.append(Pair(a, b, played.log_ratio(first, second), played))
        if any(comparison.flaws):
            comparison.ended = Ending(Why.WRONG, "an arm failed its proof or accuracy")
        elif sequential.due(len(comparison.pairs), comparison.policy):
            comparison.judge()

    def _standing(self, comparison: Comparison) -> Step:
        """How far a comparison is before its next pair."""
        number, policy = len(comparison.pairs), comparison.policy
        name = f"{comparison.b.case.name} against {comparison.a.name or comparison.a.case.name}"
        so_far = ""
        if estimate := _estimate(comparison.log_ratios):
            so_far = f"; so far {estimate}; {_time_left(policy, number, (time.monotonic() - self._began) / number)}"
        return Step(f"{name}: pair {number + 1} of at most {policy.max_pairs}{so_far}")

    def _left(self, number: int, live: Sequence[Comparison]) -> str:
        """How long the tests of a walk of this number take."""
        if number == 1:
            return ""
        each = (time.monotonic() - self._began) / (number - 1) * len(live) / len(self._comparisons)
        least = min(live, key=lambda comparison: len(comparison.pairs) - comparison.policy.max_pairs)
        return f", {_time_left(least.policy, len(least.pairs), each)}"


def _time_left(policy: PairPolicy, pairs: int, each: float) -> str:
    """How long it takes until the next look of the judge and until the last, if a pair takes `each`."""
    least = each * (sequential.next_look(pairs, policy) - pairs)
    return f"{units.seconds_between(least, each * (policy.max_pairs - pairs))} more"


def _estimate(log_ratios: Sequence[float]) -> str:
    """The ratio so far with its interval, or an empty string."""
    ratio = ratios.combine(log_ratios) if len(log_ratios) > 1 else None
    if ratio is None or ratio.lo is None:
        return ""
    return str(ratio) if ratio.narrow else f"{units.percent(ratio.value)}, too few pairs to tell"


def measured(comparison: Comparison) -> tuple[list[Launch], Mapping[str, object]]:
    """The launches of the second arm, each with the first arm's fingerprint, and the second arm's environment."""
    pairs = [pair.launches for pair in comparison.pairs]
    launches = [replace(_with_load_as_note(b), against=a.fingerprint) for a, b in pairs]
    environment = dict(comparison.pairs[0].b.environment) if comparison.pairs else {}
    return launches, environment


def _with_load_as_note(launch: Launch) -> Launch:
    """The launch, which counts on a contended machine too: where only ratios do, that hit the other arm as well."""
    if not launch.contended:
        return launch
    note = f"took turns on a contended machine, as did the other arm: {launch.contended}"
    return replace(launch, contended="", notes=(*launch.notes, note))


def document(comparison: Comparison, verdict: Verdict) -> dict[str, Any]:
    """One comparison as JSON values."""
    speed = comparison.decision.verdict
    return {
        "a": comparison.a.case.id,
        "b": comparison.b.case.id,
        "differences": list(comparison.differences),
        "outcome": verdict.outcome,
        "sentence": sentence(verdict),
        **numbers(speed.ratio),
        "mde": speed.mde,
        "others": [
            {name: other[name] for name in ("metric", "outcome", "ratio", "lo", "hi", "mde")}
            for other in map(flat, verdict.others)
        ],
        "stop": {"why": comparison.stop.why.value, "rounds": len(comparison.pairs), "text": comparison.stop.text},
        "log_ratios": comparison.log_ratios,
        "apart": comparison.apart,
    }
