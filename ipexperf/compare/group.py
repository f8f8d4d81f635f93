"""The rounds of one group in a run: launch k of every case is its worker in round k."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ipexperf import units
from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.compare import rounds
from ipexperf.compare.apart import Apart
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import ArmResult, Effort, Round, ended_launch
from ipexperf.compare.rounds import Lineup, Rounds, Say, Schedule
from ipexperf.compare.together import Together
from ipexperf.compare.walk import TELLING
from ipexperf.conduct import memory_limit
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor, now
from ipexperf.conduct.forking import FRESH
from ipexperf.errors import WorkerError
from ipexperf.judge import rounds as judge
from ipexperf.judge.environment import differences, hardware_changes
from ipexperf.plan.groups import Group, reference
from ipexperf.result import METRICS, Check, Launch, Measurement, Role, RoundRecord, SeatRecord
from ipexperf.steps import Step

RETRIES = 1
"""How often a launch on a contended machine is repeated at once."""


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A group to measure, and how."""

    group: Group[Case]
    launches: int
    twin: bool = False
    precision: float | None = None
    """Make more rounds, up to twice as many, while the interval of a ratio is wider than this."""
    before: Mapping[Case, Measurement] = field(default_factory=dict)
    """The measurements of an earlier pass: good launches are kept, and this pass is the last one."""
    numbers: Mapping[Case, int] = field(default_factory=dict)
    """The number of the first launch of each case, if earlier launches exist elsewhere."""
    fresh: bool = False
    """Fork no worker, because something is judged that only fresh processes tell."""
    changed: tuple[str, ...] = ()
    """The files that changed since the baselines were accepted, without those that were seen to be read."""


@dataclass(slots=True, eq=False)
class CaseInProgress:
    """A case of the group while it is being measured."""

    case: Case
    missing: int
    launches: list[Launch] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    started: str = field(default_factory=now)
    conditions: Conditions | None = None
    cut: str = ""
    extra: bool = False
    """Whether it has all planned launches, and gets more for the precision of a ratio."""
    tries: int = 0
    """How often the launch that it misses was repeated on a contended machine."""
    over: bool = False
    """Whether a launch failed: no launch follows the first failure."""
    company: int = rounds.MOST_ARMS
    """Most arms, itself included, that fit in memory together, as far as is known."""
    before: Measurement | None = None
    """The measurement of an earlier pass, returned unchanged if this pass adds nothing."""

    @property
    def open(self) -> bool:
        return self.missing > 0 and self.startable and not self.cut

    @property
    def startable(self) -> bool:
        """Whether it can be launched at all."""
        return self.conditions is not None and not self.over

    @property
    def accurate(self) -> bool:
        """Whether a launch that counts has its accuracy."""
        return any(launch.accuracy for launch in self.launches if launch.outcome == "ok")

    @property
    def peak(self) -> float:
        """Peak memory of one process in bytes, on a card with the allocator's reserve. 0 if not known yet."""
        names = [name for name, metric in METRICS.items() if metric.occupied]
        return max((launch.metrics.get(name, 0.0) for launch in self.launches for name in names), default=0.0)

    @property
    def memory(self) -> float:
        """The bytes that the arms of its round may use together, as far as is known."""
        assert self.conditions is not None  # noqa: S101 - only those that can be launched are asked
        if not self.conditions.accelerator:
            return self.conditions.memory
        card = (self.environment.get("hardware", {}).get("accelerator") or {}).get("memory")
        return card * memory_limit.SHARE if card else math.inf


def entry_of(case: Case, launches: int, before: Measurement | None) -> CaseInProgress:
    """A case that is to be measured by so many launches. Those of an earlier pass that are good count."""
    if before is None:
        return CaseInProgress(case, launches)
    kept = [replaced(launch) if launch.contended else launch for launch in before.launches]
    missing = launches - sum(launch.outcome == "ok" for launch in kept)
    environment = dict(before.environment)
    return CaseInProgress(case, missing, kept, environment, before.started_at, before=before)


@dataclass(frozen=True, slots=True)
class ArmInRound:
    """An arm of a round: its case, and its role there."""

    entry: CaseInProgress
    role: Role


class GroupRun(Rounds[CaseInProgress, ArmInRound]):
    """Measures the cases of a group, each until it has its launches."""

    repeated = "again, "

    def __init__(
        self,
        request: GroupRequest,
        conductor: Conductor,
        say: Say,
        *,
        effort: Effort | None = None,
        chance: random.Random | None = None,
        walk: Schedule | None = None,
    ) -> None:
        """Plan the rounds. With a `walk` the cases are its tests, and each round goes through them."""
        super().__init__(conductor, say, effort, chance)
        self.group = request.group
        self.rounds: list[RoundRecord] = []
        self._request = request
        self._extra = 0
        """The rounds made for the sake of precision."""
        self._walk = walk
        self._number = 0
        """The number of the last round."""
        self._forking = FRESH
        self._entries = [entry_of(case, request.launches, request.before.get(case)) for case in request.group.cases]
        if self._walk:  # a walk is long: a test comes again once in all
            for entry in self._entries:
                entry.tries = sum(launch.outcome == "contended" for launch in entry.launches)

    def measurements(self, cut: str = "") -> dict[Case, Measurement]:
        """The measurement of each case that was begun. `cut` is the reason for cases that still miss launches."""
        begun = [entry for entry in self._entries if entry.launches or entry.cut]
        return {entry.case: self._measurement(entry, cut) for entry in begun}

    def _measurement(self, entry: CaseInProgress, cut: str) -> Measurement:
        if entry.before is not None and len(entry.launches) == len(entry.before.launches):
            return entry.before
        reason = entry.cut or (cut if entry.open and not entry.extra else "")
        return self._conductor.measurement(entry.case, entry.launches, entry.environment, entry.started, reason)

    def play(self) -> Iterator[None]:
        for entry in self._entries:
            self._prepare(entry)
        yield from super().play()

    def open(self) -> list[CaseInProgress]:
        return [entry for entry in self._entries if entry.open] or self._more()

    def cut(self, entries: Sequence[CaseInProgress]) -> None:
        for entry in entries:
            entry.cut = "" if entry.extra else self._cut_reason(entry)
            self._roof(entry)

    def begin(self, number: int, entries: Sequence[CaseInProgress]) -> None:
        """Say so, and fork workers in every round but the first, which measures what a fresh process pays."""
        self._number = number
        of = f"{number} of {number + max(entry.missing for entry in entries) - 1}"
        if self._walk:
            self._say(Step(f"walk {of}: {units.plural(len(entries), entries[0].case.noun)}"))
            return
        self._say(Step(f"{self.group.name}: round {of}, {units.plural(len(entries), 'case')}"))
        self._servers.close()
        if number > 1 and not self._request.fresh:
            startable = [
                (entry.case, entry.conditions) for entry in self._entries if entry.conditions and not entry.over
            ]
            servers = self._conductor.forking(startable, len(entries) + self._request.twin)
            self._forking = self._servers.enter_context(servers)

    def split(
        self, waiting: Sequence[CaseInProgress]
    ) -> tuple[Schedule, list[Lineup[ArmInRound]], list[CaseInProgress]]:
        """Each part includes the reference. Tests of functions have rounds of their own, without ratios."""
        waiting = [entry for entry in waiting if entry.open]
        if self._walk:
            return self._walk, [self._lineup([ArmInRound(entry, "case")]) for entry in waiting], []
        if not waiting:
            return Together(self._effort), [], []
        arms, rest = self._beside(waiting)
        cold = registry.execution(arms[0].entry.case).cold and len(arms) > 1
        return Apart(self._effort) if cold else Together(self._effort), [self._lineup(arms)], rest

    def take(self, lineup: Lineup[ArmInRound], played: Round) -> list[CaseInProgress]:
        again = []
        for absence in played.absences:
            entry = lineup.members[0].entry
            if absence and (error := absence.error):
                self._take(entry, _ended(entry, error))
            else:
                entry.cut = str(absence)  # its session did not stand in it
        for arm, result in zip(lineup.members, played.results, strict=False):
            if arm.role != "case":
                continue
            arms = len(played.results)
            if result.launch.outcome == "out_of_memory" and arms > 1 and played.schedule == "together":
                self._part(arm.entry, result, arms)
                again.append(arm.entry)
            elif self._accept(arm.entry, result):
                again.append(arm.entry)
        self._remember(lineup.members, played)
        return [] if self._walk else again  # a test comes again in the next walk

    def _more(self) -> list[CaseInProgress]:
        """Ask for one more launch of each case if a ratio is not precise enough. Return these cases, or none."""
        wish = self._request
        if wish.precision is None or wish.before or self._extra == wish.launches or self._conductor.spent():
            return []
        width = self._width()
        if width <= wish.precision:
            return []
        self._extra += 1
        self._say(f"{self.group.name}: one more round, as a ratio is only known to within {units.in_percent(width)}")
        measurable = [entry for entry in self._entries if entry.startable and not entry.cut]
        for entry in measurable:
            entry.missing, entry.extra = 1, True
        return measurable

    def _width(self) -> float:
        """How far the widest interval of a ratio that tables show reaches, either way."""
        cases = [entry.case for entry in self._entries if entry.launches and not entry.over]
        plainest, pools = self._plainest(), judge.pools(self.rounds)
        compared = [(a, b) for a, b in itertools.combinations(cases, 2) if plainest in (a, b) or _one_apart(a, b)]
        estimates = [judge.between(self.rounds, a, b, pools) for a, b in compared]
        return max((estimate.ratio().reach for estimate in estimates if estimate is not None), default=0.0)

    def _prepare(self, entry: CaseInProgress) -> None:
        """Make what the case loads (weights, int8 networks), unless it cannot be launched at all."""
        case = entry.case
        if lost := self._conductor.quarantined(case):
            entry.launches, entry.over = entry.launches or list(lost), True
            return
        # Training weights may take longer than anything else, so do not start once the budget is spent.
        if self._conductor.spent():
            entry.cut = "" if entry.launches else self._cut_reason(entry)
            entry.over = True
            return
        try:
            entry.conditions = self._conductor.ready(case)
        except WorkerError as error:
            self._take(entry, _ended(entry, error))

    def _cut_reason(self, entry: CaseInProgress) -> str:
        done = self._request.launches - entry.missing
        when = f"after {done} of {self._request.launches} launches" if done else "already"
        if self._walk:
            when = f"after {units.plural(self._number, 'walk')}"
        return f"the budget (--perf-budget) was spent {when}"

    def _beside(self, waiting: Sequence[CaseInProgress]) -> tuple[list[ArmInRound], list[CaseInProgress]]:
        """The arms of the next part of a round, and the entries left for later."""
        plainest = self._plainest()
        first = next((entry for entry in waiting if entry.case == plainest), waiting[0])
        if registry.execution(first.case).cold:
            twinned = self._request.twin and first.case == plainest and len(self._entries) > 1
            twin = [ArmInRound(first, "twin")] if twinned else []
            return [*(ArmInRound(entry, "case") for entry in waiting), *twin], []
        arms = [ArmInRound(first, "case")]
        host = next((entry for entry in self._entries if entry.case == plainest and entry.startable), None)
        if first.company > 1 and len(self._entries) > 1:
            if first.case != plainest and host is not None:
                arms.append(ArmInRound(host, "reference"))
            elif first.case == plainest and self._request.twin:
                arms.append(ArmInRound(first, "twin"))
        if (plain := self._plain_of(first, arms, waiting)) is not None and self._fits(arms, plain):
            arms.append(ArmInRound(plain, "reference"))
        rest = []
        for entry in waiting:
            if entry is first:
                continue
            plain = self._plain_of(entry, arms, waiting)
            more = [ArmInRound(entry, "case"), *([] if plain is None else [ArmInRound(plain, "reference")])]
            if all(self._fits([*arms, *more[:place]], arm.entry) for place, arm in enumerate(more)):
                arms += more
            else:
                rest.append(entry)
        return arms, rest

    def _plain_of(
        self, entry: CaseInProgress, arms: Sequence[ArmInRound], waiting: Sequence[CaseInProgress]
    ) -> CaseInProgress | None:
        """Return the same case without one of its settings, if it had its turns in another part, for an arm here too.

        What a setting is worth may be a few percent, and a ratio through the reference of two parts may be off by more.
        """
        plainer = [entry.case.without(name) for name, _ in entry.case.settings]
        here = [*waiting, *(arm.entry for arm in arms)]
        apart = (other for other in self._entries if other.startable and other not in here)
        return next((other for other in apart if other.case in plainer), None)

    def _plainest(self) -> Case:
        """The plainest case among those that can be launched: the reference."""
        measurable = [entry.case for entry in self._entries if entry.startable]
        return reference(measurable or [entry.case for entry in self._entries])

    @staticmethod
    def _fits(arms: Sequence[ArmInRound], entry: CaseInProgress) -> bool:
        """Whether the case may join these arms: there is room, and memory suffices as far as is known."""
        company = min(entry.company, *(arm.entry.company for arm in arms))
        if len(arms) >= min(company, rounds.MOST_ARMS):
            return False
        return entry.peak + sum(arm.entry.peak for arm in arms) <= entry.memory

    def _part(self, entry: CaseInProgress, result: ArmResult, arms: int) -> None:
        """Retry a case that ran out of memory with fewer arms: beside the reference, then alone."""
        entry.company = 2 if arms > 2 else 1
        beside = "the reference alone" if entry.company > 1 else "no other"
        self._say(f"{entry.case.id}: {result.launch.reason}: it is measured again beside {beside}")

    def _lineup(self, arms: Sequence[ArmInRound]) -> Lineup[ArmInRound]:
        return Lineup(arms, [self._arm(arm) for arm in arms])

    def _arm(self, arm: ArmInRound) -> Arm:
        entry = arm.entry
        assert entry.conditions is not None  # noqa: S101 - only those that can be launched have an arm
        conditions = self._forking.conditions(entry.case, entry.conditions)
        if arm.role != "case":
            return Arm(entry.case, conditions, f"the {arm.role}", prove=False)
        made = Arm(
            entry.case,
            conditions,
            index=self._request.numbers.get(entry.case, 0) + len(entry.launches),
            changed=self._request.changed,
        )
        if self._walk:
            counted = sum(launch.outcome == "ok" for launch in entry.launches)
            return replace(made, prove=not counted, accuracy=counted < TELLING)
        last = entry.tries == RETRIES and bool(self._request.before) and entry.missing == 1
        return replace(made, accuracy=not entry.accurate, final=last)

    def _accept(self, entry: CaseInProgress, result: ArmResult) -> bool:
        """Record a launch. Return True if it does not count and must be repeated."""
        entry.environment = entry.environment or dict(result.environment)
        launch = result.launch
        if launch.contended and launch.outcome == "ok" and entry.tries < RETRIES and not self._conductor.spent():
            entry.tries += 1
            self._disturbed.append((entry.case.name, launch.contended))
            entry.launches.append(replaced(launch))
            return True
        if not self._walk:
            entry.tries = 0
        self._take(entry, _on_one_machine(result, entry.environment))
        return False

    def _take(self, entry: CaseInProgress, launch: Launch) -> None:
        entry.launches.append(launch)
        entry.missing -= 1
        if launch.outcome != "ok":
            entry.over = True
            self._conductor.quarantine_if_lost(entry.case, [launch])
            for other in self._entries:  # later numbers from a device that was lost mean nothing
                if other.open and (lost := self._conductor.quarantined(other.case)):
                    other.launches += [replace(launch, index=len(other.launches)) for launch in lost]
                    other.over = True
        self._roof(entry)

    def _roof(self, entry: CaseInProgress) -> None:
        """Compare the launches with the roof, once the case gets no more of them."""
        if entry.conditions is not None and not entry.open:
            entry.launches = self._conductor.roofed(entry.launches, entry.case, entry.conditions, entry.environment)

    def _remember(self, arms: Sequence[ArmInRound], played: Round) -> None:
        """Record the round, with the arms whose numbers count."""
        counted = [
            SeatRecord(arm.entry.case, arm.role, result.times, result.arm.index if arm.role == "case" else None)
            for arm, result in zip(arms, played.results, strict=False)
            if result.launch.outcome == "ok" and result.times and not result.launch.contended
        ]
        if len(counted) > 1:
            self.rounds.append(played.record(self.group.name, self._number, counted))


def _ended(entry: CaseInProgress, error: WorkerError) -> Launch:
    """The launch of a case whose process ended with this error, or that could not be started."""
    return ended_launch(len(entry.launches), error, accelerator=registry.devices.get(entry.case.device).accelerator)


def _one_apart(a: Case, b: Case) -> bool:
    """Whether two cases of a group differ in one thing, so that tables show their ratio."""
    apart = [name for name in ("dtype", "mode", "stack", "knobs") if getattr(a, name) != getattr(b, name)]
    return len(apart) == 1


def _on_one_machine(result: ArmResult, first: Mapping[str, Any]) -> Launch:
    """Return the launch, with a failed check if it had other cores or threads than the first launch of its case.

    If other settings were changed, such as the priority of the run or the governor, a note says so.
    """
    if not result.environment:
        return result.launch
    if changed := hardware_changes(first, result.environment):
        check = Check("same_machine", ok=False, found="; ".join(changed), expected="what the first launch had")
        return replace(result.launch, proof=(*result.launch.proof, check))
    if changed := differences(first, result.environment, ("hardware",)):
        settings = "; ".join(changed)
        note = f"had other settings than the case's first one: {settings}"
        return replace(result.launch, settings=settings, notes=(*result.launch.notes, note))
    return result.launch


def replaced(launch: Launch) -> Launch:
    """A contended launch that was repeated: recorded, but it does not count."""
    return replace(launch, outcome="contended", reason=launch.contended)
