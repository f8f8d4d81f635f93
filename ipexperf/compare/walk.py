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

from ipexperf import scratch, units
from ipexperf.bench.machine import kernel_files
from ipexperf.compare import alike
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import CountedTurns, WorkerPlayer, guarded
from ipexperf.compare.round import Absence, Effort, Round
from ipexperf.compare.together import take_turns
from ipexperf.conduct.conductor import now
from ipexperf.conduct.launch import not_fresh
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.redaction import redacted
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
    workerinput: Mapping[str, Any]
    """What plugins of the user's session tell the workers of pytest-xdist, for which they take the arms."""
    benchmark: bool = False
    """Whether `benchmark` is ours."""


class SessionPlayer(WorkerPlayer):
    """A session that stands in a test, stepped as a worker is. It goes on afterwards."""

    def __init__(self, arm: Arm, worker: Worker, core: int | None, *, once: bool) -> None:
        super().__init__(arm, contextlib.ExitStack())
        self.workers = [worker]
        self.reply = {"items": 1, "cold": once}
        known = arm.alone or not once  # what is called once has no warm steps that tell
        self._where = {"core": core} if core is not None and known else {}
        """On which core its steps are to stay, if they work in one thread."""
        self._alone = False

    def start(self) -> None:
        """Nothing: the session stands in the test."""

    def started(self) -> None:
        """Nothing, as above."""

    def prepare(self) -> None:
        """Ask for its environment, which is the same in later rounds."""
        if self.arm.prove:
            self.environment = self.worker.ask("environment")

    def launch(self, counted: CountedTurns) -> Launch:
        """Without what only a process of its own could tell, such as its peak of memory."""
        launch = super().launch(counted)
        alone = {"alone": 1.0} if self._alone else {}
        return not_fresh(launch, **alone)

    def _sample(self, count: int, block: int, **more: int) -> dict[str, Any]:
        reply = super()._sample(count, block, **more, **self._where)
        self._alone = reply["alone"]
        return reply

    def dismiss(self) -> None:
        """Nothing: the session has other tests."""


class ArmSession:
    """The session of one arm in a walk."""

    def __init__(self, suite: Suite, arms: Mapping[str, Arm], name: str, stack: contextlib.ExitStack) -> None:
        self.arms = arms
        self.absences: dict[str, Absence] = {}
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
        left = {name for name, place in self._order.items() if place >= self._order[test]} - self.absences.keys()
        try:
            self.worker = self._stack.enter_context(conditions.worker())
            self.worker.send(
                "session",
                folder=str(self._suite.folder),
                args=self._suite.args,
                options=self._suite.options,
                workerinput=self._suite.workerinput,
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
            if place and place not in self._order:
                error = WorkerError(error.outcome, f"importing {place}: {error.reason}", error.log)
            # A session that cannot be run at all, such as for its conftest, would not run for the next test either.
            for name in self._order:
                if place in ("", name) or name.startswith(f"{place}::"):
                    self._lost(name, error)
            return
        for name, how, why in reply["gone"]:
            self.absences.setdefault(name, Absence(how, redacted(why)))
        self.at, self.once = reply["test"], reply.get("once", False)
        if self.at is None:
            self.absences = {name: Absence("missing", "") for name in self._order} | self.absences

    def reach(self, test: str) -> None:
        """Go on until it stands in this test or behind it."""
        while self._alive and self.at is not None and self._order[self.at] < self._order[test]:
            self._go_on(test)
        while not self._alive and test not in self.absences:
            self.begin(test)
            self.arrive(test)

    def absence(self, test: str) -> Absence | None:
        """Why it does not stand in this test, if it does not."""
        return None if self.at == test else self.absences.get(test, Absence("missing", ""))

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
            self.absences.setdefault(test, Absence("failed", error.reason, error))


class Walk:
    """The schedule of the tests of a suite: a session for each arm goes through all of them.

    Each walk begins with fresh sessions, and makes one round of every test.
    """

    def __init__(self, suite: Suite, stop: Callable[[], bool]) -> None:
        """Plan walks through these tests. Once `stop` says so, a walk ends before its next test."""
        self._suite = suite
        self._stop = stop
        self._walks = 0

    def play(
        self, rounds: Sequence[Sequence[Arm]], chance: random.Random, say: Callable[[str], None]
    ) -> Iterator[Round]:
        """Go through these tests once, each with its arms.

        All sessions of a walk hash alike, so that sets have one order in them. Another walk has another.
        """
        self._walks += 1
        began = spoken = time.monotonic()
        once = functools.cache(say)
        tests = {arms[0].case.name: arms for arms in rounds}
        with contextlib.ExitStack() as stack:
            count = len(rounds[0])
            sessions = [
                ArmSession(
                    self._suite,
                    {test: _hashing(arms[place], self._walks) for test, arms in tests.items()},
                    f"gw{place}",
                    stack,
                )
                for place in range(count)
            ]
            first = next(iter(tests))
            for session in chance.sample(sessions, count):
                session.begin(first)
            for session in sessions:
                session.arrive(first)
            worth = (time.monotonic() - began) / len(tests) if count > 1 else 0.0
            effort = replace(EFFORT, keep=count > 1, worth=worth)
            for place, (test, arms) in enumerate(tests.items()):
                if place and self._stop():
                    return
                if time.monotonic() - spoken > SPEAK_SECONDS:
                    spoken = time.monotonic()
                    say(Step(f"{place} of {units.plural(len(tests), 'test')} of this walk, now {test}"))
                for session in chance.sample(sessions, count):  # one at a time: what a fixture builds takes all cores
                    session.reach(test)
                absences = tuple(_absences(test, arms, sessions, once))
                if any(absences):
                    yield Round((), "together", now(), absences=absences)
                else:
                    yield _round(arms, sessions, effort, chance, say)
            for session in sessions:
                session.finish()


def _round(
    arms: Sequence[Arm],
    sessions: Sequence[ArmSession],
    effort: Effort,
    chance: random.Random,
    say: Callable[[str], None],
) -> Round:
    """The round of the test that all sessions stand in."""
    workers = [session.worker for session in sessions if session.worker is not None]
    core = _core(chance.choice(workers)) if len(workers) > 1 else None
    players = [
        SessionPlayer(arm, worker, core, once=session.once)
        for arm, worker, session in zip(arms, workers, sessions, strict=True)
    ]
    for worker in workers:
        worker.beside = [other for other in workers if other is not worker]
    for player in players:
        with guarded(player):
            player.prepare()
    return take_turns(players, effort, chance, say)


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


def _absences(
    test: str, arms: Sequence[Arm], sessions: Sequence[ArmSession], say: Callable[[str], None]
) -> list[Absence | None]:
    """Why each arm does not stand in a test, or imports something else than its tree of files."""
    errors = alike.unlike(arms, [session.worker for session in sessions if session.worker is not None], say)
    if any(errors):
        return [Absence("failed", error.reason, error) if error else None for error in errors]
    return [session.absence(test) for session in sessions]
