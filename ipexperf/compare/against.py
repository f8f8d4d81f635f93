"""`--perf-against` and `ab`: compare the cases of a run with another arm, and judge each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ipexperf.bench import registry
from ipexperf.case import ITSELF, Case
from ipexperf.compare import arm, sequence
from ipexperf.compare.round import Effort, ended_launch
from ipexperf.compare.rounds import Schedule
from ipexperf.compare.sequence import Comparison, Pair, PairedRounds, Why
from ipexperf.conduct.conductor import Conductor, now
from ipexperf.environments import sources
from ipexperf.errors import UsageError, WorkerError
from ipexperf.judge import metrics, screen, stalls
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.outcomes import StructureGate
from ipexperf.plan import arms, gates, groups
from ipexperf.plan.gates import GateWish
from ipexperf.plan.options import LAUNCHES, STORED, Options
from ipexperf.proof import answers, structure
from ipexperf.result import PRIMARY, Launch, Measurement, RoundRecord, SeatRecord
from ipexperf.verdict import PairsEvidence, Verdict

AS_IT_IS = arms.ArmSpec()
JudgedCase = tuple["Measurement", "Verdict", PairPolicy]
JudgedCases: TypeAlias = Mapping["Case", JudgedCase]


@dataclass(frozen=True, slots=True)
class PairPlan:
    """How cases are compared in pairs: both arms, the case that the first runs for each, and the judge's policy."""

    words: arms.ArmSpec
    """The first arm in the user's words."""
    source: str
    """The option that named it."""
    cases: Mapping[Case, Case]
    policy: PairPolicy
    own: arms.ArmSpec = AS_IT_IS
    """The second arm in the user's words."""
    names: tuple[str, str] = (f"the arm of {arm.FLAG}", "")
    """The names of both arms in failures."""
    lock: str = ""
    """The digest of the lock whose software the first arm runs, if that is a baseline's.

    The second arm is then recorded as the planned case, because its series goes on.
    """
    tree: str = ""
    """The digest of the source that the first arm runs in place of the user's files, if that is a baseline's."""
    gate: StructureGate = "warn"
    """Which changes of structure fail a case."""
    metrics: tuple[str, ...] = (PRIMARY,)
    """The metrics that are judged, where a test does not say others."""
    changed: tuple[str, ...] = ()
    """The files that changed since a baseline or commit, of which no installed copy may be measured."""

    @property
    def key(self) -> str:
        """Names what the first arm runs, among the arms of one run."""
        return f"{self.lock} {self.tree}"

    def recorded(self, case: Case) -> Case:
        """The case under which the second arm is recorded."""
        return case if self.lock else arms.measured(case, self.words)

    def policy_of(self, wish: GateWish) -> PairPolicy:
        """The policy for a case whose test wishes this."""
        return self.policy if wish.tolerance is None else replace(self.policy, tolerance=wish.tolerance)

    def check(self, options: Options) -> None:
        """Raise UsageError before anything is measured if the arm cannot import what it needs."""
        arm.check_imports(self.cases.values(), self.words, options, self.source)


@dataclass(frozen=True, slots=True)
class FirstArmResults:
    """The results of the first arm of a case."""

    times: tuple[float, ...] = ()
    """Its times, one for each launch that has one."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    unable: str = ""
    """Why it did not run or failed its proof, so that it cannot be compared; or an empty text."""


@dataclass(slots=True)
class _Entry:
    """A case, with its policy and what kept it from being compared."""

    case: Case
    policy: PairPolicy
    gate: tuple[str, ...]
    """The metrics that it is judged by."""
    launches: Sequence[Launch] = ()
    cut: str = ""
    comparison: Comparison | None = None
    """None: its arms could not be made, or it was not begun."""


class PairRun:
    """Compares the cases of a group with the other arm. Results so far can be read at any time."""

    def __init__(
        self,
        against: PairPlan,
        cases: Sequence[tuple[Case, GateWish]],
        conductor: Conductor,
        say: Callable[[str], None],
        effort: Effort | None = None,
        chance: random.Random | None = None,
        walk: Schedule | None = None,
    ) -> None:
        """Plan the comparisons. `cases` come with the wish of their test, and a `walk` goes through functions."""
        self._against = against
        self._conductor = conductor
        self._say = say
        self._effort = effort
        self._chance = chance
        self._started = now()
        self._entries = [
            _Entry(case, against.policy_of(wish), against.metrics if wish.gate is None else wish.gate)
            for case, wish in cases
        ]
        self._walk = walk

    def play(self) -> Iterator[None]:
        """Make all rounds. Yields after each but the last, so that the caller can record what there is so far."""
        able = [(entry, both) for entry in self._entries if (both := self._arms(entry))]
        for entry, both in able:
            entry.comparison = Comparison(*both, entry.policy, entry.gate)
        begun = [entry for entry, _ in able]
        yield from PairedRounds(
            list(self.comparisons().values()),
            self._conductor,
            self._say,
            effort=self._effort,
            chance=self._chance,
            fresh=any(gates.needs_fresh(entry.gate) for entry in begun),
            repeat_builds=any(gates.repeats_builds(entry.gate) for entry in begun),
            walk=self._walk,
        ).play()

    def _arms(self, entry: _Entry) -> tuple[arm.Arm, arm.Arm] | None:
        """Both arms of a case, or None if one of them cannot be made."""
        other = self._against.cases[entry.case]
        for case in (entry.case, other):
            if lost := self._conductor.quarantined(case):
                entry.launches = lost
                return None
        if self._conductor.spent():
            entry.cut = "the budget (--perf-budget) was spent already"
            return None
        blamed, name = other, self._against.names[0]
        try:
            a = arm.arm(self._conductor, other, self._against.words, name)
            blamed, name = entry.case, self._against.names[1]
            b = arm.arm(self._conductor, entry.case, self._against.own, name)
        except WorkerError as error:
            ended = ended_launch(0, error, accelerator=registry.devices.get(blamed.device).accelerator)
            entry.launches = [replace(ended, reason=f"{name}: {ended.reason}") if name else ended]
            self._conductor.quarantine_if_lost(blamed, entry.launches)
            return None
        changed = self._against.changed  # the software of a baseline has the copies of its time
        return a if self._against.lock else replace(a, changed=changed), replace(b, changed=changed)

    def comparisons(self) -> dict[Case, Comparison]:
        """The comparison so far of each case whose arms could be made."""
        return {entry.case: entry.comparison for entry in self._entries if entry.comparison}

    def first_arms(self) -> dict[Case, FirstArmResults]:
        """The results of the first arm of each case whose arms could be made."""
        return {case: _first_arm(comparison) for case, comparison in self.comparisons().items()}

    @property
    def rounds(self) -> list[RoundRecord]:
        """The rounds that count, in the order of time. Several comparisons may share one."""
        shared: dict[str, list[tuple[Case, Pair]]] = {}
        for case, comparison in self.comparisons().items():
            for pair in comparison.pairs:
                shared.setdefault(pair.round.uid, []).append((self._against.recorded(case), pair))
        records = []
        for pairs in shared.values():
            case, first = pairs[0]
            name = f"{groups.name(case)} against {self._against.words.text or ITSELF}"
            seats = []
            for case, pair in pairs:
                seats.append(SeatRecord(pair.a.arm.case, "against", pair.a.times))
                seats.append(SeatRecord(case, "case", pair.b.times, pair.b.arm.index))
            records.append(first.round.record(name, 0, seats))
        records.sort(key=lambda record: record.started_at)
        return [replace(record, number=number) for number, record in enumerate(records, 1)]

    def judged(self, cut: str = "") -> dict[Case, JudgedCase]:
        """Judge each case on what is known. `cut` is the reason for cases that were not begun."""
        return {entry.case: self._judged(entry, cut) for entry in self._entries}

    def _judged(self, entry: _Entry, cut: str) -> JudgedCase:
        recorded, comparison = self._against.recorded(entry.case), entry.comparison
        if comparison is None or comparison.stop.why is Why.ABSENT:
            entry.cut = entry.cut or (comparison.stop.text if comparison else "")
            reason = entry.cut or ("" if entry.launches else cut)
            measurement = self._conductor.measurement(recorded, entry.launches, {}, self._started, reason)
            return measurement, screen.judge_pairs(measurement, None, None, entry.policy), entry.policy
        launches, environment = sequence.measured(comparison)
        launches = [*launches, *_failed(comparison, len(launches))]
        if comparison.failure is not None:
            self._conductor.quarantine_if_lost(comparison.failure.arm.case, launches[-1:])
        roofed: Sequence[Launch] = launches
        if comparison.stop.why is not Why.INTERRUPTED:  # who interrupts does not want to wait for peak rates
            roofed = self._conductor.roofed(launches, entry.case, comparison.b.conditions, environment)
        reason = comparison.stop.text if comparison.cut else ""
        measurement = self._conductor.measurement(recorded, roofed, environment, self._started, reason)
        # Other metrics than speed are judged once, when speed needs no more pairs.
        pairs, gate = comparison.metrics, entry.gate
        mean = metrics.of_mean(comparison.mean, pairs, entry.policy, gate)
        beside = metrics.in_pairs(pairs, gate, entry.policy.alpha, captures_vary=entry.case.captures_vary)
        others = stalls.explained((*mean, *beside), launches)
        level = metrics.level_of(comparison.metrics, PRIMARY)
        if level and not entry.case.timed:
            level = replace(level, unit=entry.case.primary[0])
        evidence = self._evidence(comparison)
        verdict = screen.judge_pairs(measurement, comparison.decision, evidence, entry.policy, others, level)
        verdict = metrics.combined(verdict, others, gated=PRIMARY in entry.gate)
        if not measurement.failure and comparison.pairs:
            verdict = self._with_answers(verdict, comparison.pairs)
        return measurement, _with_structure(measurement, verdict, self._against.gate), entry.policy

    def _with_answers(self, verdict: Verdict, pairs: Sequence[Pair]) -> Verdict:
        """The verdict that names other answers than the first arm's. They fail if that is a baseline's."""
        a, b = pairs[0].a, pairs[0].b
        before = answers.common(pair.a.launch.answers for pair in pairs)
        now = answers.common(pair.b.launch.answers for pair in pairs)
        difference = answers.difference(before, now, "the other arm's")
        if verdict.pairs is not None:
            named, unable = (difference.text, "") if difference.compared else ("", difference.text)
            uncompared = unable or answers.uncompared(before, now)
            verdict = replace(verdict, evidence=replace(verdict.pairs, answers=named, uncompared=uncompared))
        if not self._against.lock:
            return answers.named(verdict, replace(difference, fails=False))
        if a.arm.case == b.arm.case and (text := screen.accuracy_change(a.launch.metrics, b.launch.metrics, Policy())):
            difference = answers.Difference(text, fails=True)
        return answers.named(verdict, difference)

    def _evidence(self, comparison: Comparison) -> PairsEvidence:
        return PairsEvidence(
            against=self._against.words.text or ITSELF,
            stopped=comparison.stop.text,
            differences=tuple(comparison.differences),
            log_ratios=tuple(comparison.log_ratios),
            trimmed=comparison.decision.trimmed,
            apart=sequence.APART if comparison.apart else "",
            lock=self._against.lock,
            own=self._against.own.text,
        )


def _first_arm(comparison: Comparison) -> FirstArmResults:
    results = [pair.a for pair in comparison.pairs if pair.a.launch.metrics.get(PRIMARY, 0) > 0]
    failure, unable = comparison.failure, ""
    if failure is not None and failure.arm is comparison.a:
        unable = failure.error.reason
    elif comparison.stop.why is Why.WRONG:
        unable = comparison.flaws[0]
    times = tuple(result.launch.metrics[PRIMARY] for result in results)
    return FirstArmResults(times, results[0].environment if results else {}, unable)


def _failed(comparison: Comparison, number: int) -> list[Launch]:
    """The launch record of an arm that failed, or that is not what its label says."""
    if comparison.failure is not None:
        accelerator = comparison.failure.arm.conditions.accelerator
        return [ended_launch(number, comparison.failure.error, accelerator=accelerator)]
    if comparison.stop.why is Why.WRONG and (flaw := comparison.flaws[0]):
        return [Launch(number, "error", f"{comparison.a.name}: {flaw}")]
    return []


def find(options: Options, cases: Sequence[Case], say: Callable[[str], None]) -> PairPlan | None:
    """The other arm of a run, or None. Raise UsageError if some case cannot run in it."""
    if options.arm is None:
        if options.against == STORED:
            arms.check(options, LAUNCHES)
        if flag := options.flag("build"):
            raise UsageError(f"{flag}: what is built is a commit: say --perf-against git:COMMIT too")
        return None
    arms.check(options)
    source = options.source("against")
    words = arms.parse(options.arm, source)
    if words.lock:
        return None  # its environment may take minutes to make, too long for planning
    words = arm.with_source(words, options, source, say)
    facts = arm.facts(words, options, source)
    others = {}
    for case in cases:
        others[case], reason = words.case(case, facts)
        if reason:
            raise UsageError(f"{source}: {others[case].id} cannot run: {reason}")
        if reason := arms.no_turns(case):
            raise UsageError(f"{source}: {case.id} cannot be measured in pairs: {reason}")
    return of(words, others, options)


def of(words: arms.ArmSpec, cases: Mapping[Case, Case], options: Options) -> PairPlan:
    """The arm of `--perf-against` that runs these cases, judged as the options say."""
    source = options.source("against")
    policy = PairPolicy(**arms.policy(options)).shared(len(cases))
    return PairPlan(words, source, cases, policy, metrics=gates.gate(options), changed=changed((words,), options))


def changed(words: Iterable[arms.ArmSpec], options: Options) -> tuple[str, ...]:
    """The files that are other ones in the commits of these arms than now."""
    commits = [spec.source.removeprefix(arms.GIT) for spec in words if spec.source.startswith(arms.GIT)]
    return tuple(file for sha in commits for file in sources.others_changed({"commit": sha}, options.baselines) or ())


def between(a: arms.ArmSpec, b: arms.ArmSpec, cases: Mapping[Case, Case], options: Options) -> PairPlan:
    """Both arms of `ab`, for cases that are judged as those of `--perf-against`."""
    return replace(of(a, cases, options), source="--a", own=b, names=("a", "b"), changed=changed((a, b), options))


def _with_structure(measurement: Measurement, verdict: Verdict, gate: StructureGate) -> Verdict:
    """The verdict, with how the case's fingerprint differs from the other arm's."""
    if measurement.failure or not measurement.counted:
        return verdict
    first = measurement.counted[0]
    return replace(verdict, structure=structure.between(first.against, first.fingerprint, gate=gate))
