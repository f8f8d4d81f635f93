"""The messages between a controller and the process on a host: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.compare.against import OtherSide
from ipexperf.compare.request import ArmRequest, GroupRequest, LockArm
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.gates import GateWish
from ipexperf.plan.groups import Group
from ipexperf.plan.options import Options
from ipexperf.result import Measurement, RoundRecord, Verdict
from ipexperf.tools import codec


@dataclass(frozen=True, slots=True)
class Open:
    """The first request: the options of the run, and the name of its journal on this host."""

    run: str
    """The name of the run, the same on all of its hosts."""
    options: Options
    lock: str = ""
    """The text of a lock, in whose environment this host measures. Empty: in its own."""
    kept: str = ""
    """The digest of the archive with its packages that no index has, or an empty text."""
    resume: str = ""
    """A run whose controller went away: groups that it completed on this host are not measured again."""
    collecting: bool = False
    """Whether tests are only collected, so that the host makes no environment."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure this group. Groups are measured in the order of their requests."""

    number: int
    request: GroupRequest

    @property
    def group(self) -> Group:
        return self.request.group


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare the cases of this group with another arm, in rounds of their own."""

    number: int
    group: Group
    wishes: tuple[GateWish, ...]
    """The wish of the test of each case, in their order."""
    lock: str = ""
    """The digest of the lock whose software the arm runs. Empty: it is the arm of `Opened`."""


@dataclass(frozen=True, slots=True)
class Key:
    """Return the machine_key of this device."""

    number: int
    device: str


@dataclass(frozen=True, slots=True)
class LockRequest:
    """Return the lock of the software that is measured."""

    number: int


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make the software of a lock an arm."""

    number: int
    request: ArmRequest
    kept: str = ""
    """As in `Open`."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the group in flight and leave out the others."""


@dataclass(frozen=True, slots=True)
class Bye:
    """End, and remove the journal, because everything has arrived."""


@dataclass(frozen=True, slots=True)
class OtherArm:
    """The arm of `--perf-against` as a host understands it."""

    words: ArmWords
    cases: tuple[tuple[Case, Case], ...]
    """Each planned case with the case that the arm runs for it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The answer to `Open`: a description of the host."""

    facts: Facts
    hardware: Mapping[str, Any]
    time: str
    """Its clock, in UTC."""
    against: OtherArm | None = None
    """None: the run compares with no other arm."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question: a text, or the arm that was made."""

    number: int
    content: str | LockArm


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A line of progress."""

    text: str


@dataclass(frozen=True, slots=True)
class Alive:
    """Sent every few seconds, whatever else is going on."""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """A group after a round: its measurements so far, and the rounds that are new."""

    number: int
    """The number of the group's request."""
    group: str
    """The group's name."""
    measurements: tuple[tuple[Case, Measurement], ...]
    """Each with the case as planned."""
    rounds: tuple[RoundRecord, ...]
    over: bool
    """Whether the group is complete, or was stopped."""
    verdicts: tuple[tuple[Verdict, PairPolicy], ...] = ()
    """The verdict on each measurement, in their order, if the group is compared with another arm."""
    others: tuple[tuple[Case, OtherSide], ...] = ()
    """The results of the other arm, once the group is complete, if it runs the software of a lock."""
    asked: str = ""
    """A digest of what was asked for: the request, and both arms if the group is compared with another one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The request cannot be met. The host goes on with the next one."""

    number: int
    """The number of the request, or 0."""
    reason: str
    of_lock: bool = False
    """Whether the software of a lock cannot be made."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The process on the host ended. The agent that started it sends this."""

    status: int
    log: str
    """The end of its log."""


Question = Key | LockRequest | Prepare
Request = Open | Measure | Compare | Question | Stop | Bye
Reply = Opened | Answer | ProgressLine | Alive | GroupProgress | Refused | Exited


def line(message: Request | Reply) -> str:
    """The message as a line, without its end. It names its class."""
    return json.dumps({"is": type(message).__name__, **codec.plain(message)}, separators=(",", ":"))


def read(text: str) -> Any:
    """The message that a line holds. Raises ValueError if it holds none."""
    document = json.loads(text)
    name = document.pop("is", None) if isinstance(document, dict) else None
    for kind in get_args(Request | Reply):
        if name == kind.__name__:
            return codec.record(kind, document)
    raise ValueError(f"no message is called {name!r}")
