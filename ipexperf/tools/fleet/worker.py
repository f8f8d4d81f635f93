"""The process that measures on a host: it reads requests and measures one group after another.

If its controller is gone, it finishes the group in flight, which would be lost otherwise. It keeps the results that the
controller has not taken in a journal on this host.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import queue
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from ipexperf import lock as locks
from ipexperf import site
from ipexperf.bench import loading
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.process import environment as surroundings
from ipexperf.case import Case
from ipexperf.compare import against, locked
from ipexperf.compare.against import Against, OtherSide
from ipexperf.compare.request import GroupRequest
from ipexperf.conduct import interrupts
from ipexperf.environments.store import Store
from ipexperf.errors import IpexperfError, LockError, UsageError
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan import matrix
from ipexperf.plan.options import Options
from ipexperf.report.units import plural
from ipexperf.result import PRIMARY, RoundRecord, Verdict
from ipexperf.site import Comparing, LocalSite, Running
from ipexperf.tools import codec
from ipexperf.tools.fleet import code, messages, snapshots
from ipexperf.tools.fleet.journal import Journal, folder_of
from ipexperf.tools.fleet.messages import (
    Alive,
    Answer,
    Bye,
    Compare,
    GroupProgress,
    Key,
    LockRequest,
    Measure,
    Open,
    Opened,
    OtherArm,
    Prepared,
    ProgressLine,
    Question,
    Refused,
    Reply,
    Request,
    Stop,
)
from ipexperf.tools.fleet.status import GroupSpan, Status, StatusFile

HEARTBEAT_SECONDS = 5.0
UNFINISHED = "its comparison is not over"
"""The reason of cases that were not begun, while others of their group are being compared."""


class Pipe:
    """The connection to the controller. Once that is gone, replies are dropped."""

    def __init__(self, requests: IO[str], replies: IO[str]) -> None:
        self.waiting: queue.Queue[Request | None] = queue.Queue()
        """The requests that came, and at last None: the controller is gone."""
        self.stopped = threading.Event()
        """Set when the group in flight must end."""
        self._requests, self._replies = requests, replies
        self._writing = threading.Lock()
        self.gone = threading.Event()
        """Set when nobody listens any more."""
        self.noticed: Callable[[], None] = lambda: None
        """Called after a request came, and after the controller is gone."""

    def open(self) -> None:
        """Start a thread that reads requests and one that sends signs of life, because the main thread measures."""
        for work in (self._read, self._beat):
            threading.Thread(target=work, daemon=True).start()

    def send(self, reply: Reply) -> str:
        """Send a reply. Return its line."""
        text = messages.line(reply)
        with self._writing:
            try:
                if not self.gone.is_set():
                    self._replies.write(text + "\n")
                    self._replies.flush()
            except OSError:
                self.gone.set()
        return text

    def _read(self) -> None:
        for text in self._requests:
            request = messages.request(text)
            if isinstance(request, Stop) and not self.stopped.is_set():
                self.stopped.set()
                os.kill(os.getpid(), signal.SIGINT)
            self.waiting.put(request)
            self.noticed()
        self.gone.set()
        self.waiting.put(None)
        self.noticed()

    def groups(self) -> int:
        """How many groups wait to be measured."""
        with self.waiting.mutex:
            return sum(isinstance(request, Measure | Compare) for request in self.waiting.queue)

    def _beat(self) -> None:
        while not self.gone.wait(HEARTBEAT_SECONDS):
            self.send(Alive())


class HostServer:
    """Measures what a controller asks for."""

    def __init__(self, pipe: Pipe, folder: Path, loaded: Path) -> None:
        """`folder` keeps weights and journals. `loaded` has the code and is named by its digest."""
        self._pipe = pipe
        self._folder = folder
        self._loaded = loaded
        self._here: LocalSite | None = None
        self._run = ""
        self._code = ""
        """Names the code, and the environment if that is of a lock: what others measured is not taken over."""
        self._journal: Journal | None = None
        self._before: Journal | None = None
        """What this host keeps of a run whose controller went away."""
        self._against: Against | None = None
        """The other arm of the run, unless it runs the software of a lock."""
        self._locked: dict[str, Against] = {}
        """The arms that do, by the digests of their locks."""
        self._facts: Facts | None = None
        self._complete: list[GroupProgress] = []
        """The groups that it completed then."""
        self._status: StatusFile | None = None
        self._activity = snapshots.activity_of(folder)
        self._round = 0
        """The round of the group that is being measured."""
        self._unwritable: set[Path] = set()
        """The files of which it was said that they cannot be written."""

    def serve(self) -> int:
        """Answer requests until the controller says goodbye, or is gone and nothing is left to measure."""
        status = 0
        while True:
            try:
                request = self._pipe.waiting.get()
                if isinstance(request, Bye):
                    self._forget()
                    break
                if request is None or self._pipe.gone.is_set():
                    break
                self._answer(request)
                if self._pipe.waiting.empty() and self._here is not None:
                    self._here.conductor.give_back()  # another run may want the devices
            except KeyboardInterrupt:
                if not self._pipe.stopped.is_set():
                    status = 130
                    break
        if self._status is not None:
            self._status.remove()
        if self._here is not None:
            self._here.close()
        return status

    def _forget(self) -> None:
        """Remove the journal, because the controller has everything."""
        for journal in (self._journal, self._before):
            if journal is not None:
                journal.remove()

    def _answer(self, request: Request) -> None:
        try:
            if isinstance(request, Open):
                self._open(request)
            elif isinstance(request, Measure | Compare):
                self._measure(request)
            elif isinstance(request, Question):
                self._pipe.send(self._reply(request))
        except IpexperfError as error:
            self._pipe.send(Refused(0 if isinstance(request, Open | Stop | Bye) else request.number, str(error)))

    def _reply(self, question: Question) -> Answer | Prepared:
        if self._here is None or self._facts is None:
            raise UsageError("nothing was opened")
        if isinstance(question, Key):
            return Answer(question.number, self._here.machine_key(question.device, self._facts))
        if isinstance(question, LockRequest):
            return Answer(question.number, self._here.software().text)
        request = question.request
        try:
            prepared = self._here.locked(request, self._stores(question.wheels))
        except LockError as error:
            return Prepared(question.number, None, str(error))
        arm = locked.against(request, prepared, self._here.options)
        self._locked[arm.lock] = arm
        return Prepared(question.number, prepared)

    def _open(self, request: Open) -> None:
        load = tuple(str(self._loaded / name) if name.endswith(".py") else name for name in request.options.load)
        options = dataclasses.replace(request.options, load=load)
        loading.load(options.load)
        matrix.check_names(options)
        self._code = self._loaded.name
        if request.lock:
            lock = locks.parse(request.lock, "the lock of the run")
            stores = self._stores(request.wheels)
            options = site.in_environment(options, lock, self._folder, self._say, stores, collecting=request.collecting)
            self._code += f"-{lock.environment}"
        facts = self._facts = site.facts(options)
        other = self._other_arm(options, facts)
        if request.resume:
            self._resume(request.resume)
        self._run = request.run
        self._journal = Journal(folder_of(self._folder), request.run, self._code, only=True)
        self._status = StatusFile(self._journal.path, Status(request.run, "quiet", time.time()))
        if self._status.problem:
            self._cannot_write(self._status.path, self._status.problem)
        self._pipe.noticed = self._notice
        self._notice()
        self._here = LocalSite(options, self._folder, self._say)
        machine = surroundings.hardware()
        hardware = {**machine, "machine_key": surroundings.machine_key({**machine, "accelerator": None})}
        clock = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._pipe.send(Opened(facts, hardware, clock, other))

    def _stores(self, wheels: str) -> list[Store]:
        """The store that was sent in an archive of this digest, if any."""
        return [Store(self._loaded.with_name(wheels) / code.KEPT)] if wheels else []

    def _other_arm(self, options: Options, facts: Facts) -> OtherArm | None:
        """Find the other arm of the run, if it has one, for the cases that this host can run."""
        if options.arm is None:
            return None
        self._against = against.find(options, matrix.make(options, facts).cases)
        if self._against is None:
            return None
        self._against.check(options)
        return OtherArm(self._against.words, tuple(self._against.cases.items()))

    def _resume(self, run: str) -> None:
        self._before = Journal(folder_of(self._folder), run, self._code, self._say)
        self._complete = self._before.complete()
        self._say(f"{plural(len(self._complete), 'group')} of run {run}, complete and measured by this code, kept here")

    def _say(self, text: str) -> None:
        self._pipe.send(ProgressLine(text))
        self._show(said=text)

    def _show(self, **fields: Any) -> None:
        """Change the status that `ipexperf fleet hosts` shows."""
        if self._status is not None:
            self._status.change(**fields)

    def _notice(self) -> None:
        self._show(queue=self._pipe.groups(), alone=self._pipe.gone.is_set())

    def _measure(self, message: Measure | Compare) -> None:
        if self._here is None or self._journal is None:
            raise UsageError("nothing was opened")
        if self._pipe.stopped.is_set():
            return
        complete = next((progress for progress in self._complete if self._fits(progress, message)), None)
        if complete is not None:
            self._complete.remove(complete)
            # The history may have some of these rounds, of the run that was cut off. Each run has its own.
            rounds = tuple(dataclasses.replace(record, uid=uuid.uuid4().hex) for record in complete.rounds)
            self._keep(dataclasses.replace(complete, number=message.number, rounds=rounds))
            return
        group = message.group.name
        try:
            self._show(state="waiting", since=time.time(), group=group, rounds=self._planned_rounds(message), said="")
            self._notice()
            self._here.reserve(message.group.cases)
            began = time.time()
            self._round = 1
            self._show(state="measuring", since=began, round=1)
            running = self._prepare(self._here, message)
            cut = ""
            try:
                running.run(lambda: self._between_rounds(message, running))
            except KeyboardInterrupt:
                cut = "the run was interrupted before its other launches"
            with interrupts.deferred():
                self._report(message, running, over=True, cut=cut)
                self._remember(GroupSpan(began, time.time(), self._run, group))
        finally:
            self._show(state="quiet", since=time.time(), group="", round=0, rounds=0)
            self._notice()

    def _fits(self, complete: GroupProgress, message: Measure | Compare) -> bool:
        """Whether a completed group is the one that this message requests."""
        if complete.group != message.group.name or complete.comparison != self._comparison(message):
            return False
        return isinstance(message, Compare) or _suffices(complete, message.request)

    def _comparison(self, message: Measure | Compare) -> str:
        """Return a digest of both arms and of how they are judged, or an empty text if nothing is compared."""
        if isinstance(message, Measure):
            return ""
        arm = self._arm_of(message)
        parts = [dataclasses.replace(message, number=0), arm.words, arm.policy, arm.gate, arm.metrics]
        pairs = [arm.cases[case] for case in message.group.cases]
        text = json.dumps(codec.plain([*parts, *pairs]), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _prepare(self, here: LocalSite, message: Measure | Compare) -> Running | Comparing:
        if isinstance(message, Measure):
            return here.running(message.request)
        return here.comparing(self._arm_of(message), message.group, message.wishes)

    def _arm_of(self, message: Compare) -> Against:
        """Return the arm that a group is compared with."""
        arm = self._locked.get(message.lock) if message.lock else self._against
        if arm is None:
            raise UsageError("the run has no other arm")
        return arm

    def _planned_rounds(self, message: Measure | Compare) -> int:
        """The number of rounds planned for a group. For a comparison, the largest number."""
        if isinstance(message, Measure):
            return message.request.launches
        return self._arm_of(message).policy.max_pairs

    def _between_rounds(self, message: Measure | Compare, running: Running | Comparing) -> None:
        self._report(message, running, over=False)
        self._round += 1
        # One more than planned is made where the machine was busy, or a ratio is vague.
        self._show(round=self._round, rounds=max(self._round, self._planned_rounds(message)))

    def _remember(self, stretch: GroupSpan) -> None:
        """Record when this host measured, from which `busy` is computed."""
        if problem := self._activity.add(stretch):
            self._cannot_write(self._activity.path, problem)

    def _report(self, message: Measure | Compare, running: Running | Comparing, *, over: bool, cut: str = "") -> None:
        """Send the results of a group so far, and write them into the journal."""
        rounds: list[RoundRecord] = []
        running.hand_over(rounds.append)
        verdicts: list[tuple[Verdict, PairPolicy]] = []
        others: Mapping[Case, OtherSide] = {}
        if isinstance(running, Comparing):
            judged = running.judged(cut if over else UNFINISHED)
            measured = [(case, measurement) for case, (measurement, _, _) in judged.items()]
            verdicts = [(verdict, policy) for _, verdict, policy in judged.values()]
            if over and isinstance(message, Compare) and message.lock:
                others = running.other_sides()
        else:
            measured = list(running.measurements(cut).items())
        name = message.group.name
        content = (
            tuple(measured),
            tuple(rounds),
            over,
            tuple(verdicts),
            tuple(others.items()),
            self._comparison(message),
        )
        self._keep(GroupProgress(message.number, name, *content))

    def _keep(self, progress: GroupProgress) -> None:
        assert self._journal is not None  # noqa: S101 - the caller has looked
        if problem := self._journal.add(self._pipe.send(progress)):
            self._cannot_write(self._journal.path, problem)

    def _cannot_write(self, path: Path, problem: str) -> None:
        """Say once of a file that it cannot be written. The host measures on: what arrives is kept."""
        if path not in self._unwritable:
            self._unwritable.add(path)
            self._say(f"{path} cannot be written ({problem}): only what arrives is kept")


def _suffices(complete: GroupProgress, request: GroupRequest) -> bool:
    """Whether a completed group has the cases and launches that are requested now."""
    measured = dict(complete.measurements)
    if measured.keys() != set(request.group.cases) or request.before or request.numbers:
        return False
    return all(
        measurement.failure or len(measurement.values(PRIMARY)) >= request.launches for measurement in measured.values()
    )


def main() -> int:
    """Serve on this process's standard input and output, which nothing else in it uses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--loaded", type=Path, required=True)
    arguments = parser.parse_args()
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    pipe = Pipe(requests, replies)
    pipe.open()
    with interrupts.sigterm_as_interrupt():
        return HostServer(pipe, arguments.folder, arguments.loaded).serve()


if __name__ == "__main__":
    sys.exit(main())
