"""Walks: sessions of pytest, one for each arm, go through the same tests and take turns in each of them.

A session stands still inside the test (`bench/process/session.py`). A walk is one round of every test, and each begins
with fresh sessions.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.bench import registry
from ipexperf.bench.machine import kernel_files
from ipexperf.compare import alike
from ipexperf.compare.arm import Arm
from ipexperf.compare.group import RETRIES, GroupRun, OpenCase
from ipexperf.compare.players import CountedTurns, Stepper, guarded
from ipexperf.compare.request import GroupRequest
from ipexperf.compare.round import Effort, Round, tell_repeated
from ipexperf.compare.sequence import Comparison, Contest, Ending, Failure, Why, seconds_left
from ipexperf.compare.together import take_turns
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.launch import how_it_ended, not_fresh
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.judge import metrics
from ipexperf.redaction import redacted
from ipexperf.report import units
from ipexperf.result import Launch
from ipexperf.steps import Step

EFFORT = Effort(turns=5, most=8, precise=0.015, seconds=0.04, slow=1.0)
"""Processes differ more than turns do, so many short rounds tell more than a few long ones."""
TELLING = 3
"""Processes of an arm that tell what a function returns. It is compared with other software if these agree."""
SPEAK_SECONDS = 10.0
HASH_SEED = "PYTHONHASHSEED"
PROCESSOR = 36
"""The place of the core among the fields of /proc/PROCESS/stat."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The session of pytest that the arms repeat."""

    folder: Path
    args: tuple[str, ...]
    options: Mapping[str, Any]
    """The values of all options, as the user's session has them."""
    told: Mapping[str, Any]
    """What plugins of the user's session tell the workers of pytest-xdist, for which they take the arms."""
    benchmark: bool = False
    """Whether `benchmark` is ours."""


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a session did not stand in a test."""

    how: str
    """`skipped`, `failed` or `missing`."""
    why: str
    error: WorkerError | None = None
    """How its process ended, if it did."""

    @property
    def broken(self) -> WorkerError | None:
        """What is wrong with its arm. That it has no such test, or skipped it, is no error."""
        if self.how == "skipped" or not self.why:
            return None
        return WorkerError("import_error" if self.how == "missing" else "error", str(self))

    def __str__(self) -> str:
        how = "is not there" if self.how == "missing" else self.how
        return f"its test {how}{f': {self.why}' if self.why else ''}"


class Caller(Stepper):
    """A session that stands in a test, stepped as a worker is. It goes on afterwards."""

    def __init__(self, arm: Arm, worker: Worker, core: int | None, *, once: bool) -> None:
        super().__init__(arm, contextlib.ExitStack())
        self._worker = worker
        self.reply = {"items": 1, "cold": once}
        known = arm.alone or not once  # what is called once has no warm steps that tell
        self._where = {"core": core} if core is not None and known else {}
        self._alone = False

    def describe(self) -> None:
        """Ask for its environment, which is the same in later rounds."""
        if self.arm.prove:
            self.environment = self.worker.ask("environment")

    def launch(self, counted: CountedTurns) -> Launch:
        """Without what only a process of its own could tell, such as its peak of memory."""
        launch = super().launch(counted)
        alone = {"alone": 1.0} if self._alone else {}
        return replace(launch, metrics=not_fresh(launch.metrics), gate={**launch.gate, **alone})

    def _sample(self, count: int, block: int, **more: int) -> dict[str, Any]:
        reply = super()._sample(count, block, **more)
        self._alone = reply["alone"]
        return reply

    def dismiss(self) -> None:
        """Nothing: the session has other tests."""


class ArmSession:
    """The session of one arm in a walk."""

    def __init__(self, suite: Suite, arms: Mapping[str, Arm], name: str, stack: contextlib.ExitStack) -> None:
        self.arms = arms
        self.gone: dict[str, Absence] = {}
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
        left = {name for name, place in self._order.items() if place >= self._order[test]} - self.gone.keys()
        try:
            self.worker = self._stack.enter_context(conditions.worker())
            self.worker.send(
                "session",
                folder=str(self._suite.folder),
                args=self._suite.args,
                options=self._suite.options,
                told=self._suite.told,
                benchmark=self._suite.benchmark,
                tests=sorted(left, key=self._order.__getitem__),
                device=self.arms[test].case.device,
                settings=asdict(conditions.settings),
                tools=sorted({sysconfig.get_path(kind) for kind in ("purelib", "platlib")}),
                name=self._name,
                uid=self._folder.name,
                basetemp=str(self._folder / "tmp"),
            )
        except WorkerError as error:
            self._lost(test, error)

    def arrive(self, test: str) -> None:
        """Wait until the session stands in a test. If it ends before it stood in any, where it was is to blame."""
        if self.worker is None:
            return
        try:
            reply = self.worker.receive()
        except WorkerError as error:
            place = test if self.at else self.worker.at if error.outcome not in ("error", "import_error") else ""
            if place and "::" not in place:
                error = WorkerError(error.outcome, f"importing {place}: {error.reason}", error.log)
            # A session that cannot be run at all, such as for its conftest, would not run for the next test either.
            for name in self._order:
                if place in ("", name, name.partition("::")[0]):
                    self._lost(name, error)
            return
        for name, how, why in reply["gone"]:
            self.gone.setdefault(name, Absence(how, redacted(why)))
        self.at, self.once = reply["test"], reply.get("once", False)
        if self.at is None:
            self.gone = {name: Absence("missing", "") for name in self._order} | self.gone

    def reach(self, test: str) -> bool:
        """Go on until it stands in this test or behind it. Returns whether it stands in it."""
        while self._alive and self.at is not None and self._order[self.at] < self._order[test]:
            self._go_on(test)
        while not self._alive and test not in self.gone:
            self.begin(test)
            self.arrive(test)
        return self._alive and self.at == test

    def absence(self, test: str) -> Absence | None:
        """Why it does not stand in this test, if it does not."""
        return None if self.at == test else self.gone.get(test, Absence("missing", ""))

    def finish(self) -> None:
        """Go through the tests that are left, so that fixtures are torn down."""
        while self._alive and self.at is not None:
            self._go_on(self.at)

    @property
    def _alive(self) -> bool:
        return self.worker is not None and not self.worker.killed

    def _go_on(self, test: str) -> None:
        assert self.worker is not None  # noqa: S101 - asked of those that are alive
        try:
            self.worker.send("next")
        except WorkerError as error:
            self._lost(test, error)
        else:
            self.arrive(test)

    def _lost(self, test: str, error: WorkerError) -> None:
        if self.worker is not None:
            self.worker.kill()
        stood, self.at = self.at, None
        # The test that it stood in may have ended it when that went on: `reach` asks a fresh one.
        if stood is None or error.outcome != "crashed":
            self.gone.setdefault(test, Absence("failed", error.reason, error))


Outcome = Round | tuple[Absence | None, ...]
"""What a walk finds of a test: its round, or why each arm did not stand in it."""


def walk(
    suite: Suite, tests: Mapping[str, Sequence[Arm]], number: int, chance: random.Random, say: Callable[[str], None]
) -> Iterator[tuple[str, Outcome]]:
    """Go through these tests once, each with its arms. Yields what was found of each as it comes.

    All sessions of a walk of this number hash alike, so that sets have one order in them. Another walk has another.
    """
    began = spoken = time.monotonic()
    once = functools.cache(say)
    with contextlib.ExitStack() as stack:
        count = len(next(iter(tests.values())))
        walkers = [
            ArmSession(
                suite, {test: _hashing(arms[place], number) for test, arms in tests.items()}, f"gw{place}", stack
            )
            for place in range(count)
        ]
        first = next(iter(tests))
        for walker in chance.sample(walkers, count):
            walker.begin(first)
        for walker in walkers:
            walker.arrive(first)
        worth = (time.monotonic() - began) / len(tests) if count > 1 else 0.0
        effort = replace(EFFORT, keep=count > 1, worth=worth)
        for place, (test, arms) in enumerate(tests.items()):
            if time.monotonic() - spoken > SPEAK_SECONDS:
                spoken = time.monotonic()
                say(Step(f"{place} of {units.plural(len(tests), 'test')} of this walk, now {test}"))
            for walker in chance.sample(walkers, count):  # one at a time: what a fixture builds takes all cores
                walker.reach(test)
            if any(gone := _gone(test, arms, walkers, once)):
                yield test, tuple(gone)
                continue
            there = [walker.worker for walker in walkers if walker.worker is not None]
            core = _core(chance.choice(there)) if count > 1 else None
            players = [
                Caller(arm, worker, core, once=walker.once)
                for arm, worker, walker in zip(arms, there, walkers, strict=True)
            ]
            for worker in there:
                worker.beside = [other for other in there if other is not worker]
            for player in players:
                with guarded(player):
                    player.describe()
            yield test, take_turns(players, effort, chance, say)
        for walker in walkers:
            walker.finish()


def _core(worker: Worker) -> int | None:
    """The core that a session ran on last. Cores differ: arms that take turns on different ones differ with them."""
    try:
        return int(kernel_files.stat_fields(worker.pid)[PROCESSOR])
    except OSError:  # it ended, which its next request tells
        return None


def _hashing(arm: Arm, seed: int) -> Arm:
    """The arm with a seed of its hashes, unless the user chose one."""
    conditions = arm.conditions
    variables = {HASH_SEED: os.environ.get(HASH_SEED, str(seed)), **conditions.variables}
    return replace(arm, conditions=replace(conditions, variables=variables))


def _gone(
    test: str, arms: Sequence[Arm], walkers: Sequence[ArmSession], say: Callable[[str], None]
) -> list[Absence | None]:
    """Why each arm does not stand in a test, or imports something else than its tree of files."""
    errors = alike.unlike(arms, [walker.worker for walker in walkers if walker.worker is not None], say)
    if any(errors):
        return [Absence("failed", error.reason, error) if error else None for error in errors]
    return [walker.absence(test) for walker in walkers]


class WalkContest(Contest):
    """Comparisons of the same tests in two arms: each walk is one pair of every test that is not decided yet."""

    def __init__(self, suite: Suite, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._suite = suite
        self._walks = 0

    def _parts(self, live: Sequence[Comparison]) -> list[list[Comparison]]:
        return [list(live)]

    def _play(self, live: Sequence[Comparison]) -> None:
        self._walks += 1
        self._say(Step(f"walk {self._walks}: {units.plural(len(live), 'test')}{self._left(live)}"))
        by_test = {comparison.b.case.model: comparison for comparison in live}
        tests = {
            test: [replace(arm, prove=_captures(comparison), accuracy=arm.index < TELLING) for arm in comparison.arms()]
            for test, comparison in by_test.items()
        }
        for test, found in walk(self._suite, tests, self._walks, self._chance, self._say):
            comparison = by_test[test]
            if isinstance(found, Round):
                self._take(comparison, found, 0, 1)
            elif blamed := _blamed(comparison, [gone.error if gone else None for gone in found]):
                comparison.fail(*blamed)
            else:
                comparison.ended = Ending(Why.ABSENT, _absent(comparison, found))
                alone = [gone.broken if gone and not all(found) else None for gone in found]
                comparison.failure = Failure(*blamed) if (blamed := _blamed(comparison, alone)) else None
            if self._conductor.spent():
                break
        if all(one.stop.why is Why.ABSENT for one in self._comparisons):  # green would mean: not slower
            for one in self._comparisons:
                if one.failure is not None:
                    one.fail(one.failure.arm, one.failure.error)

    def _left(self, live: Sequence[Comparison]) -> str:
        """How long these tests take."""
        if self._walks == 1:
            return ""
        each = (time.monotonic() - self._began) / (self._walks - 1) * len(live) / len(self._comparisons)
        least = min(live, key=lambda one: len(one.pairs) - one.policy.max_pairs)
        left = seconds_left(least.policy, len(least.pairs), each)
        return f", {units.seconds_between(*left)} more"

    def _take(self, comparison: Comparison, played: Round, first: int, second: int) -> None:
        broken = next((side for side in played.sides if side.error is not None), None)
        if broken is None or broken.error is None:
            if comparison.pairs:  # later captures tell how much their counts vary: one fingerprint is enough
                bare = (replace(side, launch=replace(side.launch, fingerprint=None)) for side in played.sides)
                played = replace(played, sides=tuple(bare))
            super()._take(comparison, played, first, second)
            return
        comparison.fail(comparison.a if broken is played.sides[first] else comparison.b, broken.error)


def _captures(comparison: Comparison) -> bool:
    """Whether the next pair captures what a call does, which takes as long as dozens of calls."""
    return not comparison.pairs or metrics.captures_tell(comparison.metrics, comparison.gate, comparison.policy.alpha)


def _blamed(comparison: Comparison, errors: Sequence[WorkerError | None]) -> tuple[Arm, WorkerError] | None:
    """The arm that is to blame, the user's own first, and its error."""
    sides = ((comparison.b, errors[1]), (comparison.a, errors[0]))
    return next(((arm, arm.blamed(error)) for arm, error in sides if error), None)


def _absent(comparison: Comparison, found: Sequence[Absence | None]) -> str:
    names = [arm.name or "this run" for arm in (comparison.a, comparison.b)]
    texts = dict.fromkeys(str(gone) for gone in found if gone)
    if len(texts) == 1 and all(found):
        return f"in both arms {next(iter(texts))}"
    return "; ".join(f"{name}: {gone}" for name, gone in zip(names, found, strict=True) if gone)


class WalkRun(GroupRun):
    """Measures the tests of a run by themselves. Rounds of one arm have no ratios."""

    def __init__(self, suite: Suite, request: GroupRequest, conductor: Conductor, say: Callable[[str], None]) -> None:
        super().__init__(request, conductor, say)
        self._suite = suite

    def _round(self, live: Sequence[OpenCase]) -> None:
        """Walk through the tests once. One that was taken on a busy machine comes again in the next walk."""
        self._number += 1
        most = self._number + max(entry.missing for entry in live) - 1
        self._say(Step(f"walk {self._number} of {most}: {units.plural(len(live), 'test')}"))
        by_test = {entry.case.model: entry for entry in live}
        tests = {test: [self._arm_of(entry)] for test, entry in by_test.items()}
        for test, found in walk(self._suite, tests, self._number, self._chance, self._say):
            entry = by_test[test]
            if isinstance(found, Round):
                retried = sum(one.outcome == "contended" for one in entry.launches)
                self._accept(entry, found.sides[0], final=retried >= RETRIES)
            elif found[0] and (error := found[0].error):
                ended = how_it_ended(error, registry.devices.get(entry.case.device).accelerator)
                self._take(entry, Launch(len(entry.launches), *ended, log=error.log))
            else:
                entry.cut = str(found[0])
        tell_repeated(self._repeated, "again, ", self._say)

    def _arm_of(self, entry: OpenCase) -> Arm:
        assert entry.conditions is not None  # noqa: S101 - only those that can be launched are asked
        number = self._numbers.get(entry.case, 0) + len(entry.launches)
        done = sum(one.outcome == "ok" for one in entry.launches)
        made = Arm(entry.case, entry.conditions, index=number, prove=not done, accuracy=done < TELLING)
        return replace(made, changed=self._request.changed)

    def _spent(self, entry: OpenCase) -> str:
        del entry
        return f"the budget (--perf-budget) was spent after {units.plural(self._number, 'walk')}"
