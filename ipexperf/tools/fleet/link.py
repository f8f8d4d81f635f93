"""The connection to the process on one host. A thread reads replies; the main thread waits for them on the board."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Protocol, TypeVar

from ipexperf.case import Case
from ipexperf.compare.against import OtherSide
from ipexperf.errors import HostLostError, LockError, UsageError
from ipexperf.judge.policy import PairPolicy
from ipexperf.result import Measurement, RoundRecord, Verdict
from ipexperf.tools.fleet import messages
from ipexperf.tools.fleet.hosts import Host
from ipexperf.tools.fleet.messages import (
    Alive,
    Answer,
    Bye,
    Compare,
    Exited,
    GroupProgress,
    Measure,
    Open,
    Opened,
    ProgressLine,
    Question,
    Refused,
    Reply,
    Request,
    Stop,
)

T = TypeVar("T")

POLL_SECONDS = 10.0
"""Longest wait for a reply in one call: longer than between two signs of life, as each call costs both sides."""
SILENT_SECONDS = 60.0
"""Longest silence after which a host counts as lost."""
OPEN_SECONDS = 300.0
"""Longest silence while a host opens. After it the host is left out."""
WAKE_SECONDS = 0.2


class Channel(Protocol):
    """Carries lines to and from the process on a host. Every method raises HostLostError if the host is gone."""

    def install(self, archive: bytes, digest: str) -> None:
        """Unpack an archive, unless this digest is there already."""

    def start(self, digest: str) -> None: ...
    def send(self, lines: list[str]) -> None: ...
    def receive(self, seconds: float) -> list[str]: ...
    def close(self) -> None: ...
    def abandon(self) -> None:
        """Close the connection to a lost host. Never raises."""


class MessageBoard:
    """Collects the messages of all hosts of a run. Only the main thread prints, judges and records them."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.changed = threading.Condition()
        self._say = say
        self._lines: list[str] = []

    def put(self, line: str) -> None:
        with self.changed:
            self._lines.append(line)
            self.changed.notify_all()

    def wait(self, until: Callable[[], bool]) -> None:
        """Print the lines of the hosts until this is true."""
        while True:
            with self.changed:
                over = until() or (self.changed.wait(WAKE_SECONDS) and until())
                lines, self._lines = self._lines, []
            for line in lines:
                self._say(line)
            if over:
                return

    def all_at_once(self, call: Callable[[T], None], arguments: Iterable[T]) -> None:
        """Call this for all arguments at the same time, and print the lines of the hosts. Raise the first error."""
        ended: list[Exception | None] = []

        def run(argument: T) -> None:
            error = None
            try:
                call(argument)
            except Exception as raised:  # noqa: BLE001 - raised again below, in the thread that waits
                error = raised
            with self.changed:
                ended.append(error)
                self.changed.notify_all()

        # Daemons, so that an interruption does not wait for a busy host.
        threads = [threading.Thread(target=run, args=(argument,), daemon=True) for argument in arguments]
        for thread in threads:
            thread.start()
        self.wait(lambda: len(ended) == len(threads))
        for error in filter(None, ended):
            raise error


@dataclass(frozen=True, slots=True)
class Inbox:
    """The results of one group that have arrived so far."""

    measurements: Mapping[Case, Measurement] = field(default_factory=dict)
    verdicts: Mapping[Case, tuple[Verdict, PairPolicy]] = field(default_factory=dict)
    """The verdicts on the measurements, if they are compared with another arm."""
    others: Mapping[Case, OtherSide] = field(default_factory=dict)
    """The results of that arm, once the group is complete, if it runs the software of a lock."""
    rounds: tuple[RoundRecord, ...] = ()
    news: int = 0
    """How often something arrived."""
    over: bool = False
    refused: str = ""


class Link:
    """The line to one host for one run."""

    def __init__(self, host: Host, channel: Channel, board: MessageBoard) -> None:
        self.host = host
        self.lost = ""
        """Why the host is lost, or an empty text. Nothing arrives after that: what it still measures, it keeps."""
        self.opened: Opened | None = None
        self.ahead = 0.0
        """By how many seconds the host's clock is ahead of ours."""
        self._channel = channel
        self._board = board
        self._inboxes: dict[int, Inbox] = {}
        self._environment: Mapping[str, Any] = {}
        """Of the last measurement: that of the next one is usually equal."""
        self._answers: dict[int, Future[Any]] = {}
        """The answer to each question, which a thread may wait for.

        A thousand threads that waited for the board would all wake at each message.
        """
        self._refused = ""
        self._exited: Exited | None = None
        self._closing = False
        self._heard = self._said = time.monotonic()

    def open(self, request: Open, digest: str, archive: bytes) -> None:
        """Start the process with this code. `wait_open` waits for its answer, so that all hosts open at once."""
        self.install(digest, archive)
        try:
            self._channel.start(digest)
        except HostLostError as error:
            self._lose(str(error))
            raise
        self._heard = time.monotonic()
        threading.Thread(target=self._pump, daemon=True).start()
        self._send(request)

    def wait_open(self) -> Opened:
        """Wait for the description of the host. Raise UsageError if it cannot take part."""
        self._said = time.monotonic()
        self._board.wait(
            lambda: bool(self.opened or self._refused or self.lost) or time.monotonic() - self._said > OPEN_SECONDS
        )
        if self.opened is None:
            raise UsageError(self._refused or self.lost or f"it did not answer within {OPEN_SECONDS:.0f} s")
        return self.opened

    def measure(self, request: Measure | Compare) -> None:
        """Have a group measured or compared, after those that were sent before it."""
        with self._board.changed:
            self._inboxes[request.number] = Inbox()
        self._send(request)

    def arrived(self, number: int) -> Inbox:
        """The results so far of the group whose request has this number."""
        return self._inboxes.get(number, Inbox())

    def ask(self, question: Question) -> Callable[[], Any]:
        """Send a question, and return a function that waits for the answer. Any thread may call it: it prints nothing.

        The function raises UsageError or LockError if the host refuses, and HostLostError if it is lost.
        """
        answer: Future[Any] = Future()
        with self._board.changed:
            self._answers[question.number] = answer
            if self.lost:
                self._give_up_answers()
        self._send(question)
        return answer.result

    def install(self, digest: str, archive: bytes) -> None:
        """Have the host unpack an archive, unless it has it."""
        try:
            self._channel.install(archive, digest)
        except HostLostError as error:
            self._lose(str(error))
            raise

    def close(self, *, stop: bool) -> None:
        """End the process. With `stop`, cut a group short that is still being measured."""
        if self.lost:
            self._channel.abandon()
            return
        self._closing = True
        self._send(Stop() if stop else Bye())
        if stop:
            self._send(Bye())
        try:
            self._channel.close()
        except HostLostError as error:
            self._lose(str(error))

    def _send(self, request: Request) -> None:
        try:
            self._channel.send([messages.line(request)])
        except HostLostError as error:
            self._lose(str(error))

    def _lose(self, reason: str) -> None:
        with self._board.changed:
            self.lost = self.lost or reason
            self._give_up_answers()
            self._board.changed.notify_all()

    def _give_up_answers(self) -> None:
        """Have all who wait for an answer of a lost host raise HostLostError."""
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(HostLostError(self.lost))

    def _pump(self) -> None:
        """Read until the process ends or the host is lost."""
        try:
            while not self.lost and self._exited is None:
                self._receive()
        except HostLostError as error:
            self._lose(str(error))
        except ValueError as error:
            self._lose(f"what it says cannot be read: {error}")

    def _receive(self) -> None:
        lines = self._channel.receive(POLL_SECONDS)
        for text in lines:
            self._take(messages.read(text))
        if lines:
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > SILENT_SECONDS:
            self._lose(f"no sign of life for {SILENT_SECONDS:.0f} s")

    def _take(self, reply: Reply) -> None:
        name = self.host.name
        if isinstance(reply, Alive):
            return
        if isinstance(reply, ProgressLine):
            self._said = time.monotonic()
            self._board.put(f"{name}: {reply.text}")
            return
        with self._board.changed:
            if self.lost:
                return  # its group may have been given to another host
            if isinstance(reply, Opened):
                self.opened = reply
                self.ahead = (datetime.fromisoformat(reply.time) - datetime.now(timezone.utc)).total_seconds()
            elif isinstance(reply, Answer):
                self._answers[reply.number].set_result(reply.content)
            elif isinstance(reply, Refused):
                self._refuse(reply)
            elif isinstance(reply, GroupProgress):
                before = self.arrived(reply.number)
                measurements = {case: self._deduplicated(measurement) for case, measurement in reply.measurements}
                self._inboxes[reply.number] = Inbox(
                    measurements,
                    dict(zip(measurements, reply.verdicts, strict=True)) if reply.verdicts else {},
                    dict(reply.others),
                    before.rounds + reply.rounds,
                    before.news + 1,
                    reply.over,
                )
            else:
                self._exited = reply
                if not self._closing:
                    last = (reply.log.strip().splitlines() or ["no message"])[-1]
                    self.lost = f"its process ended with status {reply.status}: {last}"
                    self._give_up_answers()
            self._board.changed.notify_all()

    def _deduplicated(self, arrived: Measurement) -> Measurement:
        """Return the measurement, sharing its environment with the one before: a run keeps all of them in memory."""
        if self._environment != arrived.environment:
            self._environment = arrived.environment
        return replace(arrived.lean, environment=self._environment)

    def _refuse(self, reply: Refused) -> None:
        if reply.number in self._answers:
            self._answers[reply.number].set_exception((LockError if reply.of_lock else UsageError)(reply.reason))
        elif reply.number in self._inboxes:
            self._inboxes[reply.number] = replace(self._inboxes[reply.number], refused=reply.reason)
        else:
            self._refused = reply.reason
