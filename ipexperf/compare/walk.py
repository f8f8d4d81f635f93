"""Walks: sessions of pytest, one for each arm, go through the same tests and take turns in each of them.

A session stands still inside the test (`bench/process/session.py`). A walk is one round of every test, and each begins
with fresh sessions.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import Stepper, failed
from ipexperf.compare.request import GroupRequest
from ipexperf.compare.round import Effort, Round, Side
from ipexperf.compare.sequence import Contest, Ending, Failure, Open, Why
from ipexperf.compare.together import take_turns
from ipexperf.conduct.conductor import Conductor, now
from ipexperf.conduct.launch import how_it_ended
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.report import units
from ipexperf.result import Launch, Measurement, RoundRecord

EFFORT = Effort(turns=5, most=8, precise=0.015, seconds=0.04)
"""Processes differ more than turns do, so many short rounds tell more than a few long ones."""
SPEAK_SECONDS = 10.0
MISSING = "is not there"
RETRIES = 1
"""How often a test on a contended machine is measured again at once."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The session of pytest that the arms repeat."""

    folder: Path
    args: tuple[str, ...]
    options: Mapping[str, Any]
    """The values of all options, as the user's session has them."""
    benchmark: bool = False
    """Whether `benchmark` is ours."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Why a session did not stand in a test."""

    how: str
    """`skipped`, `failed` or `missing`."""
    why: str
    error: WorkerError | None = None
    """How its process ended, if it did."""

    def __str__(self) -> str:
        return (
            f"its test {MISSING}{f': {self.why}' if self.why else ''}"
            if self.how == "missing"
            else f"its test {self.how}: {self.why}"
        )


class Caller(Stepper):
    """A session that stands in a test, stepped as a worker is. It goes on afterwards."""

    def __init__(self, arm: Arm, worker: Worker, *, once: bool) -> None:
        super().__init__(arm, contextlib.ExitStack())
        self._worker = worker
        self.reply = {"items": 1, "cold": once}

    def describe(self) -> None:
        """Ask for its environment, which is the same in later rounds."""
        if self.arm.prove:
            self.environment = self.worker.ask("environment")

    def dismiss(self) -> None:
        """Nothing: the session has other tests."""


class Walker:
    """The session of one arm in a walk."""

    def __init__(self, suite: Suite, arms: Mapping[str, Arm], name: str, stack: contextlib.ExitStack) -> None:
        self.arms = arms
        self.gone: dict[str, Gone] = {}
        self.at: str | None = None
        """The test that it stands in."""
        self.once = False
        self.worker: Worker | None = None
        self._suite, self._name, self._stack = suite, name, stack
        self._order = {test: place for place, test in enumerate(arms)}
        self._folder = stack.enter_context(scratch.folder(name))

    def begin(self, test: str) -> None:
        """Start a session with this test and those behind it, without waiting for it."""
        conditions = self.arms[test].conditions
        self.at, self.worker = None, None
        try:
            self.worker = self._stack.enter_context(conditions.worker())
            self.worker.send(
                "session",
                folder=str(self._suite.folder),
                args=self._suite.args,
                options=self._suite.options,
                benchmark=self._suite.benchmark,
                tests=[name for name, place in self._order.items() if place >= self._order[test]],
                device=self.arms[test].case.device,
                settings=asdict(conditions.settings),
                name=self._name,
                uid=self._folder.name,
                basetemp=str(self._folder / "tmp"),
            )
        except WorkerError as error:
            self._lost(test, error)

    def arrive(self, test: str) -> None:
        """Wait until the session stands in a test. If it ends, `test` is to blame."""
        if self.worker is None:
            return
        try:
            reply = self.worker.receive()
        except WorkerError as error:
            self._lost(test, error)
            return
        for name, how, why in reply["gone"]:
            self.gone.setdefault(name, Gone(how, why))
        self.at, self.once = reply["test"], reply.get("once", False)
        if self.at is None:
            problems = "; ".join(reply["problems"])
            for name in self._order:
                self.gone.setdefault(name, Gone("missing", problems))

    def reach(self, test: str) -> bool:
        """Go on until it stands in this test or behind it. Returns whether it stands in it."""
        while self._alive and self.at is not None and self._order[self.at] < self._order[test]:
            self._go_on(test)
        if not self._alive and test not in self.gone:
            self.begin(test)
            self.arrive(test)
        return self._alive and self.at == test

    def finish(self) -> None:
        """Go through the tests that are left, so that fixtures are torn down."""
        while self._alive and self.at is not None:
            self._go_on(self.at)

    @property
    def _alive(self) -> bool:
        return self.worker is not None and not self.worker.killed

    def _go_on(self, test: str) -> None:
        assert self.worker is not None  # noqa: S101 - asked of those that are alive
        self.worker.send("next")
        self.arrive(test)

    def _lost(self, test: str, error: WorkerError) -> None:
        if self.worker is not None:
            self.worker.kill()
        self.gone.setdefault(test, Gone("failed", error.reason, error))


Outcome = Round | tuple[Gone | None, ...]
"""What a walk finds of a test: its round, or why each arm did not stand in it."""


def walk(
    suite: Suite,
    tests: Mapping[str, Sequence[Arm]],
    chance: random.Random,
    say: Callable[[str], None],
) -> Iterator[tuple[str, Outcome]]:
    """Go through these tests once, each with its arms. Yields what was found of each as it comes."""
    spoken = time.monotonic()
    with contextlib.ExitStack() as stack:
        count = len(next(iter(tests.values())))
        walkers = [
            Walker(suite, {test: arms[place] for test, arms in tests.items()}, f"gw{place}", stack)
            for place in range(count)
        ]
        first = next(iter(tests))
        for walker in chance.sample(walkers, count):
            walker.begin(first)
        for walker in walkers:
            walker.arrive(first)
        for number, (test, arms) in enumerate(tests.items()):
            if time.monotonic() - spoken > SPEAK_SECONDS:
                spoken = time.monotonic()
                say(f"{number} of {units.plural(len(tests), 'test')} of this walk")
            for walker in chance.sample(walkers, count):  # one at a time: what a fixture builds takes all cores
                walker.reach(test)
            there = [walker.worker for walker in walkers if walker.at == test and walker.worker is not None]
            if len(there) < count:
                yield test, tuple(walker.gone.get(test) for walker in walkers)
                continue
            players = [
                Caller(arm, worker, once=walker.once) for arm, worker, walker in zip(arms, there, walkers, strict=True)
            ]
            for worker in there:
                worker.beside = [other for other in there if other is not worker]
            yield test, _round(players, chance, say)
        for walker in walkers:
            walker.finish()


def _round(players: Sequence[Caller], chance: random.Random, say: Callable[[str], None]) -> Round:
    try:
        for player in players:
            player.describe()
        return take_turns(players, EFFORT, chance, say)
    except WorkerError as error:
        for player in players:
            player.failure = player.failure or error
            player.worker.kill()
        sides = [Side(player.arm, failed(player), {}, error=player.failure) for player in players]
        return Round(tuple(sides), "together", now())


class WalkContest(Contest):
    """Comparisons of the same tests in two arms: each walk is one pair of every test that is not decided yet."""

    def __init__(self, suite: Suite, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._suite = suite
        self._walks = 0

    def _parts(self, live: Sequence[Open]) -> list[list[Open]]:
        return [list(live)]

    def _play(self, live: Sequence[Open]) -> None:
        self._walks += 1
        self._say(f"walk {self._walks}: {units.plural(len(live), 'test')} in both arms{self._left(live)}")
        by_test = {comparison.b.case.model: comparison for comparison in live}
        tests = {test: self._arms(comparison) for test, comparison in by_test.items()}
        for test, found in walk(self._suite, tests, self._chance, self._say):
            comparison = by_test[test]
            if isinstance(found, Round):
                self._take(comparison, found, 0, 1)
            elif (own := found[1]) and own.error:
                comparison.failure = Failure(comparison.b, own.error)
                comparison.stop = Ending(Why.FAILED, "an arm failed")
            else:
                comparison.stop = Ending(Why.ABSENT, _absent(comparison, found))
            if self._spent():
                break

    def _arms(self, comparison: Open) -> list[Arm]:
        number = len(comparison.pairs)
        prove = self._prove and number == 0
        return [
            replace(arm, index=number, prove=prove, accuracy=prove, warm=comparison.warm)
            for arm in (comparison.a, comparison.b)
        ]

    def _left(self, live: Sequence[Open]) -> str:
        """How many tests are decided, and how long the rest takes at most."""
        done = len(self._open) - len(live)
        most = max(comparison.policy.max_pairs for comparison in live) - self._walks + 1
        if self._walks == 1:
            return ""
        seconds = (time.monotonic() - self._began) / (self._walks - 1) * most * len(live) / len(self._open)
        return f", {done} decided; at most {units.seconds(seconds)} more"

    def _take(self, comparison: Open, played: Round, first: int, second: int) -> None:
        broken = next((side for side in played.sides if side.error is not None), None)
        if broken is None or broken.error is None:
            super()._take(comparison, played, first, second)
            return
        comparison.failure = Failure(comparison.a if broken is played.sides[first] else comparison.b, broken.error)
        comparison.stop = Ending(Why.FAILED, "an arm failed")


def _absent(comparison: Open, found: Sequence[Gone | None]) -> str:
    names = [arm.name or "this run" for arm in (comparison.a, comparison.b)]
    texts = dict.fromkeys(str(gone) for gone in found if gone)
    if len(texts) == 1 and all(found):
        return f"in both arms {next(iter(texts))}"
    return "; ".join(f"{name}: {gone}" for name, gone in zip(names, found, strict=True) if gone)


@dataclass(slots=True)
class _Entry:
    """A test while it is being measured."""

    case: Case
    missing: int
    launches: list[Launch] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    started: str = field(default_factory=now)
    cut: str = ""
    over: bool = False


class WalkRun:
    """Measures the tests of a run by themselves. Results so far can be read at any time, also after an interruption."""

    def __init__(self, suite: Suite, request: GroupRequest, conductor: Conductor, say: Callable[[str], None]) -> None:
        self._suite, self._conductor, self._say = suite, conductor, say
        self._launches = request.launches
        self._chance = random.Random()  # noqa: S311 - a start order, no secret
        self._numbers = dict(request.numbers)
        before = dict(request.before)
        self._entries = {case.model: self._entry(case, before.get(case)) for case in request.group.cases}

    def _entry(self, case: Case, before: Measurement | None) -> _Entry:
        if before is None:
            return _Entry(case, self._launches)
        launches = [_replaced(one) if one.contended else one for one in before.launches]
        missing = self._launches - sum(one.outcome == "ok" for one in launches)
        return _Entry(case, missing, launches, dict(before.environment), before.started_at)

    def run(self, between_rounds: Callable[[], None] = lambda: None) -> None:
        """Make all walks, and call `between_rounds` after each but the last."""
        number = 0
        while live := {name: one for name, one in self._entries.items() if one.missing > 0 and not one.over}:
            if self._conductor.spent():
                for entry in live.values():
                    entry.cut, entry.over = (
                        f"the budget (--perf-budget) was spent after {len(entry.launches)} launches",
                        True,
                    )
                return
            if number:
                between_rounds()
            number += 1
            most = number + max(entry.missing for entry in live.values()) - 1
            self._say(f"walk {number} of {most}: {units.plural(len(live), 'test')}")
            tests = {name: [self._arm(entry)] for name, entry in live.items()}
            for name, found in walk(self._suite, tests, self._chance, self._say):
                self._take(live[name], found)

    def _arm(self, entry: _Entry) -> Arm:
        number = self._numbers.get(entry.case, 0) + len(entry.launches)
        first = not any(one.outcome == "ok" for one in entry.launches)
        return Arm(entry.case, self._conductor.ready(entry.case), index=number, prove=first, accuracy=first)

    def _take(self, entry: _Entry, found: Outcome) -> None:
        if not isinstance(found, Round):
            entry.over = True
            if found[0] and (error := found[0].error):
                ended = how_it_ended(error, registry.devices.get(entry.case.device).accelerator)
                entry.launches.append(Launch(len(entry.launches), *ended, log=error.log))
            else:
                entry.cut = str(found[0])
            return
        [side] = found.sides
        entry.environment = entry.environment or dict(side.environment)
        retried = sum(one.outcome == "contended" for one in entry.launches)
        if side.launch.contended and side.launch.outcome == "ok" and retried < RETRIES:
            self._say(f"{entry.case.id}: again, {side.launch.contended}")
            entry.launches.append(_replaced(side.launch))
            return
        entry.launches.append(side.launch)
        entry.missing -= 1
        entry.over = side.launch.outcome != "ok"

    def measurements(self, cut: str = "") -> dict[Case, Measurement]:
        """The measurement of each test that was begun. `cut` is the reason for those that still miss launches."""
        begun = [entry for entry in self._entries.values() if entry.launches or entry.cut]
        return {entry.case: self._measurement(entry, cut) for entry in begun}

    def _measurement(self, entry: _Entry, cut: str) -> Measurement:
        reason = entry.cut or (cut if entry.missing > 0 and not entry.over else "")
        return self._conductor.measurement(entry.case, entry.launches, entry.environment, entry.started, reason)

    def hand_over(self, keep: Callable[[RoundRecord], None]) -> None:
        """Nothing: rounds of one arm have no ratios."""


def _replaced(one: Launch) -> Launch:
    """A contended launch that was repeated: recorded, but it does not count."""
    return replace(one, outcome="contended", reason=one.contended)
