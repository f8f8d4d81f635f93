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
from ipexperf.compare.request import LockArm
from ipexperf.conduct import interrupts
from ipexperf.environments.store import Store
from ipexperf.errors import IpexperfError, LockError, UsageError
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan import matrix
from ipexperf.plan.options import Options
from ipexperf.report.units import plural
from ipexperf.result import Verdict
from ipexperf.site import Comparing, Running, Site
from ipexperf.tools import codec
from ipexperf.tools.fleet import code, host_files, messages
from ipexperf.tools.fleet.host_files import GroupSpan, Journal
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
    ProgressLine,
    Question,
    Refused,
    Reply,
    Request,
    Stop,
)

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
        try:
            for text in self._requests:
                request = messages.read(text)
                if isinstance(request, Stop) and not self.stopped.is_set():
                    self.stopped.set()
                    os.kill(os.getpid(), signal.SIGINT)
                self.waiting.put(request)
                self.noticed()
        finally:  # also if a request cannot be read, or this process would wait for ever
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

    def __init__(self, pipe: Pipe, folder: Path, loaded: Path, opening: Open) -> None:
        """Open a run. Raise IpexperfError if this host cannot take part.

        `folder` keeps weights and journals. `loaded` has the code and is named by its digest.
        """
        self._pipe, self._folder, self._loaded, self._run = pipe, folder, loaded, opening.run
        self._journal: Journal | None = None
        self._before: Journal | None = None
        """What this host keeps of a run whose controller went away."""
        self._complete: list[GroupProgress] = []
        """The groups that it completed then."""
        self._against: Against | None = None
        """The other arm of the run, unless it runs the software of a lock."""
        self._locked: dict[str, Against] = {}
        """The arms that do, by the digests of their locks."""
        self._round, self._sent = 0, 0
        """The round of the group that is being measured, and how many of its rounds were sent."""
        self._unwritable = False
        """Whether it was said that the journal cannot be written."""
        options = opening.options
        load = tuple(str(loaded / name) if name.endswith(".py") else name for name in options.load)
        options = dataclasses.replace(options, load=load)
        loading.load(options.load)
        matrix.check_names(options)
        measured_by = loaded.name  # and the environment if that is of a lock: what others measured is not taken over
        if opening.lock:
            lock = locks.parse(opening.lock, "the lock of the run")
            stores = self._stores(opening.kept)
            options = site.in_environment(options, lock, folder, self._say, stores, collecting=opening.collecting)
            measured_by += f"-{lock.environment}"
        self._facts = site.facts(options)
        other = self._other_arm(options, self._facts)
        journals = host_files.runs_of(folder)
        if opening.resume:
            self._before = Journal(journals, opening.resume, measured_by, self._say)
            self._complete = self._before.complete()
            count = plural(len(self._complete), "group")
            self._say(f"{count} of run {opening.resume}, complete and measured by this code, kept here")
        self._journal = Journal(journals, opening.run, measured_by, only=True)
        self._here = Site(options, folder, self._say)
        pipe.noticed = self._notice
        self._notice()
        machine = surroundings.hardware()
        hardware = {**machine, "machine_key": surroundings.machine_key({**machine, "accelerator": None})}
        clock = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        pipe.send(Opened(self._facts, hardware, clock, other))

    def serve(self) -> int:
        """Answer requests until the controller says goodbye, or is gone and nothing is left to measure."""
        status = 0
        while True:
            try:
                request = self._pipe.waiting.get()
                if isinstance(request, Bye):  # the controller has everything
                    for journal in filter(None, (self._journal, self._before)):
                        journal.remove()
                    break
                if request is None or self._pipe.gone.is_set():
                    break
                self._answer(request)
                if self._pipe.waiting.empty():
                    self._here.conductor.give_back()  # another run may want the devices
            except KeyboardInterrupt:
                if not self._pipe.stopped.is_set():
                    status = 130
                    break
        self._here.close()
        if self._journal is not None:
            self._journal.close()
        return status

    def _answer(self, request: Request) -> None:
        try:
            if isinstance(request, Measure | Compare):
                self._measure(request)
            elif isinstance(request, Question):
                self._pipe.send(Answer(request.number, self._answer_to(request)))
        except IpexperfError as error:
            number = 0 if isinstance(request, Open | Stop | Bye) else request.number
            self._pipe.send(Refused(number, str(error), isinstance(error, LockError)))

    def _answer_to(self, question: Question) -> str | LockArm:
        if isinstance(question, Key):
            return self._here.machine_key(question.device, self._facts)
        if isinstance(question, LockRequest):
            return self._here.software().text
        prepared = self._here.locked(question.request, self._stores(question.kept))
        arm = locked.against(question.request, prepared, self._here.options)
        self._locked[arm.lock] = arm
        return prepared

    def _stores(self, kept: str) -> list[Store]:
        """The store that was sent in an archive of this digest, if any."""
        return [Store(self._loaded.with_name(kept) / code.KEPT)] if kept else []

    def _other_arm(self, options: Options, facts: Facts) -> OtherArm | None:
        """Find the other arm of the run, if it has one, for the cases that this host can run."""
        if options.arm is None:
            return None
        self._against = against.find(options, matrix.make(options, facts).cases, self._say)
        if self._against is None:
            return None
        self._against.check(options)
        return OtherArm(self._against.words, tuple(self._against.cases.items()))

    def _say(self, text: str) -> None:
        self._pipe.send(ProgressLine(text))
        self._show(said=text)

    def _show(self, **fields: Any) -> None:
        """Change the status that `ipexperf fleet hosts` shows."""
        if self._journal is not None:
            self._journal.show(**fields)

    def _notice(self) -> None:
        self._show(queue=self._pipe.groups(), alone=self._pipe.gone.is_set())

    def _measure(self, message: Measure | Compare) -> None:
        if self._pipe.stopped.is_set():
            return
        complete = next((progress for progress in self._complete if progress.asked == self._asked(message)), None)
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
            self._round, self._sent = 1, 0
            self._show(state="measuring", since=began, round=1)
            running = self._prepare(message)
            cut = ""
            try:
                for _ in running.play():
                    self._between_rounds(message, running)
            except KeyboardInterrupt:
                cut = "the run was interrupted before its other launches"
            with interrupts.deferred():
                self._report(message, running, over=True, cut=cut)
                host_files.remember(self._folder, GroupSpan(began, time.time(), self._run, group))
        finally:
            self._show(state="quiet", since=time.time(), group="", round=0, rounds=0)
            self._notice()

    def _asked(self, message: Measure | Compare) -> str:
        """Return a digest of what a message asks for, of both arms and of how they are judged."""
        parts: list[Any] = [dataclasses.replace(message, number=0)]
        if isinstance(message, Compare):
            arm = self._arm_of(message)
            parts += [arm.words, arm.policy, arm.gate, arm.metrics]
            parts += [arm.cases[case] for case in message.group.cases]
        text = json.dumps(codec.plain(parts), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _prepare(self, message: Measure | Compare) -> Running | Comparing:
        if isinstance(message, Measure):
            return self._here.running(message.request)
        return self._here.comparing(self._arm_of(message), message.group, message.wishes)

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

    def _report(self, message: Measure | Compare, running: Running | Comparing, *, over: bool, cut: str = "") -> None:
        """Send the results of a group so far, and write them into the journal."""
        rounds = running.rounds[self._sent :]
        self._sent += len(rounds)
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
        self._keep(
            GroupProgress(
                message.number,
                message.group.name,
                tuple(measured),
                tuple(rounds),
                over,
                tuple(verdicts),
                tuple(others.items()),
                self._asked(message),
            )
        )

    def _keep(self, progress: GroupProgress) -> None:
        assert self._journal is not None  # noqa: S101 - the caller has looked
        line = self._pipe.send(progress)
        try:
            self._journal.add(line)
        except OSError as error:
            if not self._unwritable:  # said once, and the host measures on
                self._unwritable = True
                self._say(f"{self._journal.path} cannot be written ({error.strerror}): only what arrives is kept")


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
        opening = pipe.waiting.get()
        if not isinstance(opening, Open):
            return 0  # the controller is gone already
        try:
            server = HostServer(pipe, arguments.folder, arguments.loaded, opening)
        except IpexperfError as error:
            pipe.send(Refused(0, str(error)))
            return 0
        return server.serve()


if __name__ == "__main__":
    sys.exit(main())
