"""The rounds of one group in a run: launch k of every case is its worker in round k."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.compare import apart, together
from ipexperf.compare.arm import Arm
from ipexperf.compare.request import GroupRequest
from ipexperf.compare.round import Effort, Round, Side, tell_repeated
from ipexperf.conduct import launch, memory_limit
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import FRESH, Conductor, Forking, now
from ipexperf.errors import WorkerError
from ipexperf.judge import rounds as judge
from ipexperf.judge.environment import differences, hardware_changes
from ipexperf.plan.groups import reference
from ipexperf.report import units
from ipexperf.result import METRICS, Check, Launch, Measurement, Role, RoundRecord, SeatRecord
from ipexperf.steps import Step

RETRIES = 1
"""How often a launch on a contended machine is repeated at once."""
MOST_ARMS = 8
"""Most arms in a round: with more, the turns of two arms are too far apart in time."""


@dataclass(slots=True)
class OpenCase:
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
    over: bool = False
    """Whether a launch failed: no launch follows the first failure."""
    company: int = MOST_ARMS
    """Most arms, itself included, that fit in memory together, as far as is known."""
    before: Measurement | None = None
    """The measurement of an earlier pass, returned unchanged if this pass adds nothing."""

    @property
    def open(self) -> bool:
        return self.missing > 0 and not self.over and not self.cut and self.conditions is not None

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


def entry_of(case: Case, launches: int, before: Measurement | None) -> OpenCase:
    """A case that is to be measured by so many launches. Those of an earlier pass that are good count."""
    if before is None:
        return OpenCase(case, launches)
    kept = [replaced(launch) if launch.contended else launch for launch in before.launches]
    missing = launches - sum(launch.outcome == "ok" for launch in kept)
    environment = dict(before.environment)
    return OpenCase(case, missing, kept, environment, before.started_at, before=before)


@dataclass(frozen=True, slots=True)
class Seat:
    """An arm of a round: its case, and its role there."""

    entry: OpenCase
    role: Role


class GroupRun:
    """Measures the cases of a group. Results so far can be read at any time, also after an interruption."""

    def __init__(
        self,
        request: GroupRequest,
        conductor: Conductor,
        say: Callable[[str], None],
        *,
        effort: Effort | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.group = request.group
        self.rounds: list[RoundRecord] = []
        self._request = request
        self._conductor = conductor
        self._say = say
        self._extra = 0
        """The rounds made for the sake of precision."""
        self._effort = effort or Effort()
        self._chance = chance or random.Random()  # noqa: S311 - a start order, no secret
        self._numbers = request.numbers
        self._number = 0
        """The number of the last round."""
        self._forking = FRESH
        self._repeated: list[tuple[str, str]] = []
        """The cases whose launch does not count and is repeated, each with the reason."""
        self._entries = [entry_of(case, request.launches, request.before.get(case)) for case in request.group.cases]

    def measurements(self, cut: str = "") -> dict[Case, Measurement]:
        """The measurement of each case that was begun. `cut` is the reason for cases that still miss launches."""
        begun = [entry for entry in self._entries if entry.launches or entry.cut]
        return {entry.case: self._measurement(entry, cut) for entry in begun}

    def _measurement(self, entry: OpenCase, cut: str) -> Measurement:
        if entry.before is not None and len(entry.launches) == len(entry.before.launches):
            return entry.before
        reason = entry.cut or (cut if entry.open and not entry.extra else "")
        return self._conductor.measurement(entry.case, entry.launches, entry.environment, entry.started, reason)

    def play(self) -> Iterator[None]:
        """Make all rounds. Yields after each but the last, so that the caller can record what there is so far."""
        for entry in self._entries:
            self._prepare(entry)
        live = self._next()
        while live:
            self._round(live)
            live = self._next()
            if live:
                yield

    def _next(self) -> list[OpenCase]:
        """The entries of the next round. None if there is none to make, or the budget is spent."""
        live = [entry for entry in self._entries if entry.open] or self._more()
        if live and self._conductor.spent():
            for entry in live:
                entry.cut = "" if entry.extra else self._spent(entry)
                self._roof(entry)
            return []
        return live

    def _more(self) -> list[OpenCase]:
        """Ask for one more launch of each case if a ratio is not precise enough. Return these cases, or none."""
        wish = self._request
        if wish.precision is None or wish.before or self._extra == wish.launches or self._conductor.spent():
            return []
        width = self._width()
        if width <= wish.precision:
            return []
        self._extra += 1
        self._say(f"{self.group.name}: one more round, as a ratio is only known to within {width:.0%}")
        measurable = [entry for entry in self._entries if entry.conditions and not entry.over and not entry.cut]
        for entry in measurable:
            entry.missing, entry.extra = 1, True
        return measurable

    def _width(self) -> float:
        """How far the widest interval of a ratio that tables show reaches, either way."""
        cases = [entry.case for entry in self._entries if entry.launches and not entry.over]
        plainest, pools = self._plainest(), judge.pools(self.rounds)
        compared = [(a, b) for a, b in itertools.combinations(cases, 2) if plainest in (a, b) or _one_apart(a, b)]
        estimates = [judge.between(self.rounds, a, b, pools) for a, b in compared]
        ratios = [one.ratio() for one in estimates if one is not None]
        return max((one.hi / one.ratio - 1 for one in ratios if one.hi is not None), default=0.0)

    def _servers(self, live: Sequence[OpenCase]) -> AbstractContextManager[Forking]:
        """Fork workers in every round but the first, which measures what a fresh process pays."""
        if self._number == 1 or self._request.fresh:
            return nullcontext(FRESH)
        startable = [(entry.case, entry.conditions) for entry in self._entries if entry.conditions and not entry.over]
        return self._conductor.forking(startable, len(live) + self._request.twin)

    def _prepare(self, entry: OpenCase) -> None:
        """Make what the case loads (weights, int8 networks), unless it cannot be launched at all."""
        case = entry.case
        if lost := self._conductor.quarantined(case):
            entry.launches, entry.over = entry.launches or list(lost), True
            return
        # Training weights may take longer than anything else, so do not start once the budget is spent.
        if self._conductor.spent():
            entry.cut = "" if entry.launches else self._spent(entry)
            entry.over = True
            return
        try:
            entry.conditions = self._conductor.ready(case)
        except WorkerError as error:
            ended = launch.how_it_ended(error, registry.devices.get(case.device).accelerator)
            self._take(entry, Launch(len(entry.launches), *ended, log=error.log))

    def _spent(self, entry: OpenCase) -> str:
        done = self._request.launches - entry.missing
        when = f"after {done} of {self._request.launches} launches" if done else "already"
        return f"the budget (--perf-budget) was spent {when}"

    def _round(self, live: Sequence[OpenCase]) -> None:
        """Launch each of these cases once more. Repeat launches on a busy machine at once."""
        self._number += 1
        total = self._number + max(entry.missing for entry in live) - 1
        arms = units.plural(len(live), "case")
        self._say(Step(f"{self.group.name}: round {self._number} of {total}, {arms}"))
        with self._servers(live) as self._forking:
            for attempt in range(RETRIES + 1):
                final = attempt == RETRIES
                again: list[OpenCase] = []
                seats, waiting = self._seats(live)
                while seats:
                    again += self._play(seats, waiting, final=final)
                    seats, waiting = self._seats(waiting) if waiting and not self._conductor.spent() else ([], [])
                tell_repeated(self._repeated, "again, ", self._say)
                if not again or self._conductor.spent():
                    break
                live = [entry for entry in again if entry.open]

    def _seats(self, waiting: Sequence[OpenCase]) -> tuple[list[Seat], list[OpenCase]]:
        """Choose the arms that take turns next, and the entries left for later. Each part includes the reference."""
        plainest = self._plainest()
        first = next((entry for entry in waiting if entry.case == plainest), waiting[0])
        if registry.modes.get(first.case.mode).cold:
            twinned = self._request.twin and first.case == plainest and len(self._entries) > 1
            twin = [Seat(first, "twin")] if twinned else []
            return [*(Seat(entry, "case") for entry in waiting), *twin], []
        seats = [Seat(first, "case")]
        host = next((entry for entry in self._entries if entry.case == plainest and entry.conditions), None)
        if first.case == plainest:
            if self._request.twin and first.company > 1 and len(self._entries) > 1:
                seats.append(Seat(first, "twin"))
        elif host is not None and not host.over and first.company > 1 and len(self._entries) > 1:
            seats.append(Seat(host, "reference"))
        if (plain := self._plain_of(first, seats, waiting)) is not None and self._fits(seats, plain):
            seats.append(Seat(plain, "reference"))
        rest = []
        for entry in waiting:
            if entry is first:
                continue
            plain = self._plain_of(entry, seats, waiting)
            more = [Seat(entry, "case"), *([] if plain is None else [Seat(plain, "reference")])]
            if all(self._fits([*seats, *more[:place]], seat.entry) for place, seat in enumerate(more)):
                seats += more
            else:
                rest.append(entry)
        return seats, rest

    def _plain_of(self, entry: OpenCase, seats: Sequence[Seat], waiting: Sequence[OpenCase]) -> OpenCase | None:
        """Return the same case without one of its settings, if it had its turns in another part, for a seat here too.

        What a setting is worth may be a few percent, and a ratio through the reference of two parts may be off by more.
        """
        plainer = [entry.case.without(name) for name, _ in entry.case.settings]
        here = [*waiting, *(seat.entry for seat in seats)]
        apart = (one for one in self._entries if one.conditions and not one.over and all(one is not x for x in here))
        return next((one for one in apart if one.case in plainer), None)

    def _plainest(self) -> Case:
        """The plainest case among those that can be launched: the reference."""
        measurable = [entry.case for entry in self._entries if entry.conditions and not entry.over]
        return reference(measurable or [entry.case for entry in self._entries])

    @staticmethod
    def _fits(seats: Sequence[Seat], entry: OpenCase) -> bool:
        """Whether the case may join these arms: there is a seat, and memory suffices as far as is known."""
        company = min(entry.company, *(seat.entry.company for seat in seats))
        if len(seats) >= min(company, MOST_ARMS):
            return False
        return entry.peak + sum(seat.entry.peak for seat in seats) <= entry.memory

    def _play(self, seats: Sequence[Seat], waiting: list[OpenCase], *, final: bool) -> list[OpenCase]:
        """Play one round of these arms. Return the entries whose launch must be repeated."""
        arms = [self._arm(seat, final=final) for seat in seats]
        cold = registry.modes.get(seats[0].entry.case.mode).cold and len(seats) > 1
        played = (apart if cold else together).play(arms, self._effort, self._chance, self._say)
        again = []
        for seat, side in zip(seats, played.sides, strict=True):
            if seat.role != "case":
                continue
            if side.launch.outcome == "out_of_memory" and len(seats) > 1 and played.schedule == "together":
                self._part(seat.entry, side, len(seats))
                waiting.append(seat.entry)
            elif self._accept(seat.entry, side, final=final):
                again.append(seat.entry)
        self._remember(seats, played)
        return again

    def _part(self, entry: OpenCase, side: Side, arms: int) -> None:
        """Retry a case that ran out of memory with fewer arms: beside the reference, then alone."""
        entry.company = 2 if arms > 2 else 1
        beside = "the reference alone" if entry.company > 1 else "no other"
        self._say(f"{entry.case.id}: {side.launch.reason}: it is measured again beside {beside}")

    def _arm(self, seat: Seat, *, final: bool) -> Arm:
        entry = seat.entry
        assert entry.conditions is not None  # noqa: S101 - only those that can be launched have a seat
        conditions = self._forking.conditions(entry.case, entry.conditions)
        if seat.role != "case":
            return Arm(entry.case, conditions, f"the {seat.role}", prove=False)
        return Arm(
            entry.case,
            conditions,
            index=self._numbers.get(entry.case, 0) + len(entry.launches),
            changed=self._request.changed,
            accuracy=not entry.accurate,
            final=final and bool(self._request.before) and entry.missing == 1,
        )

    def _accept(self, entry: OpenCase, side: Side, *, final: bool) -> bool:
        """Record a launch. Return True if it does not count and must be repeated."""
        entry.environment = entry.environment or dict(side.environment)
        if side.launch.contended and side.launch.outcome == "ok" and not final and not self._conductor.spent():
            self._repeated.append((entry.case.name, side.launch.contended))
            entry.launches.append(replaced(side.launch))
            return True
        self._take(entry, _on_one_machine(side, entry.environment))
        return False

    def _take(self, entry: OpenCase, launch: Launch) -> None:
        entry.launches.append(launch)
        entry.missing -= 1
        if launch.outcome != "ok":
            entry.over = True
            self._conductor.quarantine_if_lost(entry.case, [launch])
            self._leave_lost_devices()
        self._roof(entry)

    def _leave_lost_devices(self) -> None:
        """End the cases on a device that another case lost: later numbers from it mean nothing."""
        for entry in self._entries:
            if entry.open and (lost := self._conductor.quarantined(entry.case)):
                entry.launches += [replace(launch, index=len(entry.launches)) for launch in lost]
                entry.over = True

    def _roof(self, entry: OpenCase) -> None:
        """Compare the launches with the roof, once the case gets no more of them."""
        if entry.conditions is not None and not entry.open:
            entry.launches = self._conductor.roofed(entry.launches, entry.case, entry.conditions, entry.environment)

    def _remember(self, seats: Sequence[Seat], played: Round) -> None:
        """Record the round, with the arms whose numbers count."""
        counted = [
            SeatRecord(seat.entry.case, seat.role, side.times, side.arm.index if seat.role == "case" else None)
            for seat, side in zip(seats, played.sides, strict=True)
            if side.launch.outcome == "ok" and side.times and not side.launch.contended
        ]
        if len(counted) > 1:
            self.rounds.append(played.record(self.group.name, self._number, counted))


def _one_apart(a: Case, b: Case) -> bool:
    """Whether two cases of a group differ in one thing, so that tables show their ratio."""
    apart = [name for name in ("dtype", "mode", "stack", "knobs") if getattr(a, name) != getattr(b, name)]
    return len(apart) == 1


def _on_one_machine(side: Side, first: Mapping[str, Any]) -> Launch:
    """Return the launch, with a failed check if it had other cores or threads than the first launch of its case.

    If other settings were changed, such as the priority of the run or the governor, a note says so.
    """
    if not side.environment:
        return side.launch
    if changed := hardware_changes(first, side.environment):
        check = Check("same_machine", ok=False, found="; ".join(changed), expected="what the first launch had")
        return replace(side.launch, proof=(*side.launch.proof, check))
    if changed := differences(first, side.environment, ("hardware",)):
        settings = "; ".join(changed)
        note = f"had other settings than the case's first one: {settings}"
        return replace(side.launch, settings=settings, notes=(*side.launch.notes, note))
    return side.launch


def replaced(launch: Launch) -> Launch:
    """A contended launch that was repeated: recorded, but it does not count."""
    return replace(launch, outcome="contended", reason=launch.contended)
