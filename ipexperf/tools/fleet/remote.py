"""The site of a run whose groups other hosts measure."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from ipexperf import lock as locks
from ipexperf.compare import against
from ipexperf.compare.against import Against, Judged, OtherSide
from ipexperf.compare.request import ArmRequest, GroupRequest, LockArm
from ipexperf.conduct.conductor import Conductor, now
from ipexperf.errors import HostLostError, LockError, UsageError
from ipexperf.judge import screen
from ipexperf.result import Launch, LaunchOutcome, Measurement, RoundRecord
from ipexperf.site import Comparing, Running, Site
from ipexperf.tools.fleet import code
from ipexperf.tools.fleet import hosts as naming
from ipexperf.tools.fleet.hosts import Host
from ipexperf.tools.fleet.labels import UNKNOWN
from ipexperf.tools.fleet.link import Inbox, Link, MessageBoard
from ipexperf.tools.fleet.messages import Compare, Key, LockRequest, Measure, Opened, Prepare

if TYPE_CHECKING:
    from ipexperf.bench.machine.facts import Facts
    from ipexperf.bench.machine.source import Replaced
    from ipexperf.case import Case
    from ipexperf.environments.sources import Kept
    from ipexperf.environments.store import Store
    from ipexperf.lock import Lock
    from ipexperf.plan.gates import GateWish
    from ipexperf.plan.groups import Group
    from ipexperf.plan.options import Options

CLOCK_SECONDS = 2.0
"""Smallest difference between the clocks of a host and of this one, in seconds, that is corrected."""
CARDS = ("device", "card", "driver")
"""Labels in which equal hosts agree."""
STAND_INS = 1
"""How often a group is given to another host after its host was lost."""


class RemoteSite(Site):
    """One host of a fleet, or several equal ones that share a matrix."""

    ahead = True

    def __init__(
        self,
        links: Sequence[Link],
        board: MessageBoard,
        run: str,
        source: Mapping[str, Any],
        store: Store | None = None,
    ) -> None:
        """`run` names the run on all of its hosts; `source` is the commit under test, which hosts do not know.

        `store` has packages that no index has.
        """
        self._links = {link.host.name: link for link in links}
        self.board = board
        self._run = run
        self._store = store
        self.source = source
        self._numbers = itertools.count(1)
        self._groups: list[RemoteGroup] = []
        self._moved: dict[str, str] = {}
        """Groups that were given to another host, for the rest of the run."""
        self.several = len(links) > 1

    @property
    def conductor(self) -> Conductor:
        raise UsageError("arms that are compared here cannot run on a fleet")

    def facts(self, options: Options) -> Facts:
        """The facts of the host, or of the first of several equal ones."""
        del options  # the host was opened with them
        described = {name: (link.host, link.wait_open()) for name, link in self._links.items()}
        first, *others = described
        for other in others:
            if differences := _differences(*described[first], *described[other]):
                raise UsageError(
                    f"--perf-spread share: {other} is not equal to {first}: {', '.join(differences)} "
                    "(--perf-hosts chooses among hosts, --perf-spread each measures on each)"
                )
        return described[first][1].facts

    def reserve(self, cases: Iterable[Case], seconds: float | None = None) -> None:
        """Nothing to do: the hosts take leases themselves."""

    def running(self, request: GroupRequest) -> Running:
        running = RemoteGroup(self, Measure(next(self._numbers), request), request)
        self._groups.append(running)
        return running

    def against(self, options: Options, cases: Sequence[Case]) -> Against | None:
        """The other arm as the host understands it, or the first of several equal ones."""
        other = self._first().wait_open().against
        if other is None:
            return against.find(options, cases, self.board.put)
        return against.of(other.words, dict(other.cases), options)

    def check(self, against: Against) -> None:
        """Nothing to do: each host has checked it when it was opened."""

    def comparing(self, against: Against, group: Group, wishes: Sequence[GateWish]) -> Comparing:
        running = RemoteComparison(self, Compare(next(self._numbers), group, tuple(wishes), against.lock), against)
        self._groups.append(running)
        return running

    def machine_key(self, device: str, facts: Facts) -> str:
        del facts  # the host has them
        key: str = self._first().ask(Key(next(self._numbers), device))()
        return key

    def software(self) -> Lock:
        """The lock of what the host measures, or the first of several equal ones."""
        return locks.parse(self._first().ask(LockRequest(next(self._numbers)))(), "the software of a host")

    def locked(self, request: ArmRequest, stores: Sequence[Store] = ()) -> LockArm:
        """Have each host make the environment, all at the same time. Return the arm of the first one.

        A host that is lost meanwhile measures nothing, unless no other one is left.
        """
        del stores  # that of the run has all packages
        lock = locks.parse(request.lock, "the lock of an arm")
        digest, archive = code.pack_kept(lock, self._store) if self._store else ("", b"")
        waiting = [(link, self._prepare(link, request, digest, archive)) for link in self._links.values()]
        arms: list[LockArm] = []
        for link, wait in waiting:
            with self._losing(link):
                arms.append(wait())
        if not arms:
            raise HostLostError(_why_lost(self._first()))
        return arms[0]

    def tree_of(self, kept: Kept) -> Replaced:
        """Hosts have the files of this run alone."""
        raise LockError(f"on a fleet the accepted source {kept.source.digest} is not run again")

    def _prepare(self, link: Link, request: ArmRequest, kept: str, archive: bytes) -> Callable[[], LockArm]:
        with self._losing(link):
            if archive:
                link.install(kept, archive)
        return link.ask(Prepare(next(self._numbers), request, kept))

    @contextlib.contextmanager
    def _losing(self, link: Link) -> Iterator[None]:
        """Go on without one of several hosts if it is lost. Name it if it cannot make an environment."""
        try:
            yield
        except LockError as error:
            raise LockError(f"host {link.host.name}: {error}" if self.several else str(error)) from None
        except HostLostError as error:
            if not self.several:
                raise
            self.board.put(f"{link.host.name} measures nothing: {error}")

    def _first(self) -> Link:
        """The host, or the first of several equal ones that is not lost, if there is one."""
        links = list(self._links.values())
        return next((link for link in links if not link.lost), links[0])

    def order(self, group: str) -> list[Link]:
        """The hosts that may measure a group, its own first."""
        names = naming.ranked(list(self._links), group)
        if group in self._moved:
            names.insert(0, self._moved[group])
        return [self._links[name] for name in dict.fromkeys(names)]

    def host_of(self, group: str) -> Link | None:
        """The host that measures a group: its own, unless that was lost. None: all are."""
        return next((link for link in self.order(group) if not link.lost), None)

    def own_host(self, group: str) -> Link:
        """The host that a group belongs to, lost or not."""
        return self.order(group)[0]

    def moved(self, group: str, to: Link) -> None:
        self._moved[group] = to.host.name

    def adapted(self, measurement: Measurement, link: Link, notes: Sequence[str]) -> Measurement:
        """Return a host's measurement with the commit under test and times by our clock."""
        launches = tuple(
            dataclasses.replace(launch, notes=tuple(dict.fromkeys((*launch.notes, *notes))))
            for launch in measurement.launches
        )
        # A host runs copies of the user's files, which have other names: nothing is known of them.
        known = {name: value for name, value in measurement.environment.items() if not name.startswith("source")}
        return dataclasses.replace(
            measurement,
            launches=launches,
            environment={**known, "git": dict(self.source)},
            started_at=shifted(measurement.started_at, link),
            finished_at=shifted(measurement.finished_at, link),
        )

    def meta(self) -> dict[str, object]:
        """The hosts of the run, and which groups each of them measured."""
        measured: dict[str, dict[str, None]] = {name: {} for name in self._links}
        for group in self._groups:
            if group.link is not None:
                measured[group.link.host.name][group.group] = None
        return {"fleet": {"run": self._run, "hosts": {name: list(groups) for name, groups in measured.items()}}}

    def close(self) -> None:
        """End the processes on the hosts. Groups that are still being measured are cut short."""
        busy = {group.link for group in self._groups if group.link is not None and not group.over}
        self.board.all_at_once(lambda link: link.close(stop=link in busy), self._links.values())


class RemoteGroup:
    """A group that a host measures. It begins when this object is made."""

    def __init__(self, site: RemoteSite, message: Measure | Compare, request: GroupRequest) -> None:
        self._site = site
        self._message = message
        self._request = request
        self._stood_in = 0
        self._notes: tuple[str, ...] = ()
        self._lost = ""
        """Why nothing more comes of the group, or an empty text."""
        self._ending: LaunchOutcome = "crashed"
        """How its cases end then: `refused` if its host is well and may not measure it."""
        self.group = request.group.name
        self.link = site.host_of(self.group)
        self._inbox = Inbox()
        """What was there when this last looked. What arrives while it is being recorded comes next."""
        if self.link is not None:
            self._send(self.link)

    def _send(self, link: Link) -> None:
        if self._site.several:
            self._notes = (*self._notes, f"measured on {link.host.name}")
        link.measure(self._message)

    @property
    def over(self) -> bool:
        """Whether nothing is being measured any more."""
        if self._lost or self.link is None or self.link.lost:
            return True
        inbox = self.link.arrived(self._message.number)
        return bool(inbox.over or inbox.refused)

    def play(self) -> Iterator[None]:
        """Wait for the host, and for another one if it is lost."""
        if self.link is None:
            self._lost = _why_lost(self._site.own_host(self.group))
            return
        number = self._message.number
        try:
            while True:
                link, news_before = self.link, self._inbox.news
                self._site.board.wait(lambda: link.arrived(number).news > news_before or self.over)  # noqa: B023 - called before the next turn
                lost = link.lost  # looked at first: the last report of a host may arrive just before it is lost
                inbox = self._inbox = link.arrived(number)
                if inbox.refused:
                    self._lost, self._ending = f"by the host {link.host.name}: {inbox.refused}", "refused"
                    return
                if inbox.over:
                    return
                if not lost:
                    yield
                elif not self._stand_in(link):
                    return
        except KeyboardInterrupt:
            self._inbox = self.link.arrived(number)
            raise

    def _stand_in(self, lost: Link) -> bool:
        """Give the group to another equal host, once. Return whether there is one."""
        reason = _why_lost(lost)
        other = self._site.host_of(self.group) if self._stood_in < STAND_INS else None
        if other is None:
            self._lost = reason
            self._site.board.put(f"{self.group}: {reason}")
            return False
        self._stood_in += 1
        self._site.board.put(f"{self.group}: {reason}: {other.host.name} measures it")
        self._site.moved(self.group, other)
        self._notes = (f"{lost.host.name} was lost before it had finished",)
        self.link, self._inbox = other, Inbox()
        self._send(other)
        return True

    def measurements(self, cut: str = "") -> dict[Case, Measurement]:
        link = self.link
        if link is None:
            return {case: self._failed(case, None) for case in self._request.group.cases}
        before = dict(self._request.before)
        measured = {
            case: measurement if measurement == before.get(case) else self._site.adapted(measurement, link, self._notes)
            for case, measurement in self._inbox.measurements.items()
        }
        if self._lost:
            return {case: self._failed(case, measured.get(case)) for case in self._request.group.cases}
        if cut and not self._inbox.over:
            return {
                case: dataclasses.replace(measurement, cut=measurement.cut or self._cut(measurement, cut))
                for case, measurement in measured.items()
            }
        return measured

    def _cut(self, measurement: Measurement, reason: str) -> str:
        ended = any(launch.outcome not in ("ok", "contended") for launch in measurement.launches)
        complete = sum(launch.outcome == "ok" for launch in measurement.launches) >= self._request.launches
        return "" if ended or complete else reason

    def _failed(self, case: Case, measured: Measurement | None) -> Measurement:
        """The measurement of a case that its host did not finish."""
        if measured is not None and not self._cut(measured, "unfinished"):
            return measured
        launches = measured.launches if measured else ()
        link = self.link or self._site.own_host(self.group)
        failed = Launch(len(launches), self._ending, self._lost or _why_lost(link))
        if measured is not None:
            return dataclasses.replace(measured, launches=(*launches, failed))
        hardware = dict(link.opened.hardware) if link.opened else {}
        environment = {
            "machine_key": hardware.get("machine_key", "unknown"),
            "hardware": {**hardware, "accelerator": None, "threads": None},
            "software": {"torch": None, "ipex": None},
            "variables": {},
            "git": dict(self._site.source),
        }
        return Measurement(case, (failed,), environment, now(), now())

    @property
    def rounds(self) -> Sequence[RoundRecord]:
        if self.link is None or (self._site.several and not (self._inbox.over or self._lost)):
            return ()  # another host may have to make all rounds of the group once more
        link = self.link
        return [
            dataclasses.replace(record, started_at=shifted(record.started_at, link)) for record in self._inbox.rounds
        ]


class RemoteComparison(RemoteGroup):
    """A group that a host compares with another arm. It begins when this object is made."""

    def __init__(self, site: RemoteSite, message: Compare, against: Against) -> None:
        super().__init__(site, message, GroupRequest(message.group, launches=1))
        self._against = against
        self._wishes = dict(zip(message.group.cases, message.wishes, strict=True))

    def judged(self, cut: str = "") -> Mapping[Case, Judged]:
        judged: dict[Case, Judged] = {}
        for case, measurement in self.measurements(cut).items():
            verdict_and_policy = self._inbox.verdicts.get(case)
            if verdict_and_policy is not None and len(measurement.launches) == len(
                self._inbox.measurements[case].launches
            ):
                judged[case] = measurement, *verdict_and_policy
            else:  # its host was lost, or refused it
                policy = self._against.policy_of(self._wishes[case])
                failed = dataclasses.replace(measurement, case=self._against.recorded(case))
                judged[case] = failed, screen.judge_pairs(failed, None, None, policy), policy
        return judged

    def other_sides(self) -> Mapping[Case, OtherSide]:
        return self._inbox.others

    def _cut(self, measurement: Measurement, reason: str) -> str:
        return reason if measurement.cut else ""


def _why_lost(link: Link) -> str:
    return f"the host {link.host.name} was lost: {link.lost}"


def shifted(time: str, link: Link) -> str:
    """Convert a time of the host to our clock."""
    seconds = link.ahead
    if abs(seconds) < CLOCK_SECONDS:
        return time
    moved = datetime.fromisoformat(time) - timedelta(seconds=seconds)
    return moved.astimezone(timezone.utc).isoformat(timespec="milliseconds")


def _differences(host: Host, opened: Opened, other_host: Host, other_opened: Opened) -> list[str]:
    """The differences that keep two hosts from being equal. Their labels name their cards."""
    pairs = [("the machine key", opened.hardware["machine_key"], other_opened.hardware["machine_key"])]
    pairs += [(name, host.labels.get(name), other_host.labels.get(name)) for name in CARDS]
    names = sorted({*opened.facts.packages, *other_opened.facts.packages})
    pairs += [(name, opened.facts.packages.get(name), other_opened.facts.packages.get(name)) for name in names]
    differences = [f"{name} {b or 'absent'} instead of {a or 'absent'}" for name, a, b in pairs if a != b]
    if UNKNOWN in (host.labels.get("card"), other_host.labels.get("card")):
        differences.append("a card that torch could not describe when its host joined")
    return differences
