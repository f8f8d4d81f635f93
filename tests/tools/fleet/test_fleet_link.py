"""A run and the replies of its hosts, also of hosts that are silent, die, differ or refuse."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from test_fleet_codec import CASE, FACTS, LAUNCH, MEASURED, ROUND

from ipexperf.compare.request import ArmRequest, GroupRequest, LockArm
from ipexperf.errors import HostLostError, LockError, UsageError
from ipexperf.judge.policy import PairPolicy
from ipexperf.lock import Lock
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.groups import Group
from ipexperf.plan.options import Options
from ipexperf.result import Measurement
from ipexperf.site import Running
from ipexperf.tools.fleet import link as links
from ipexperf.tools.fleet import messages, runs
from ipexperf.tools.fleet.hosts import Host
from ipexperf.tools.fleet.link import Link, MessageBoard
from ipexperf.tools.fleet.messages import (
    Answer,
    Bye,
    Exited,
    GroupProgress,
    Key,
    Measure,
    Open,
    Opened,
    Prepare,
    ProgressLine,
    Refused,
    Stop,
)
from ipexperf.tools.fleet.remote import RemoteSite

GROUP = Group("tiny fake spin 4x32", (CASE,))
HARDWARE = {"machine_key": "key", "host": "h"}


def opened(ahead: float = 0.0, **packages: str) -> Opened:
    time_there = datetime.now(timezone.utc) + timedelta(seconds=ahead)
    return Opened(replace(FACTS, packages=packages), HARDWARE, time_there.isoformat())


Script = Callable[[messages.Request], list[Any]]


class Scripted:
    """A channel to a host that answers from a script."""

    def __init__(self, answer: Callable[[messages.Request], list[Any]]) -> None:
        self.requests: list[messages.Request] = []
        self.closed = False
        self.lost = ""
        self._answer = answer
        self._replies: queue.Queue[str] = queue.Queue()

    def install(self, archive: bytes, digest: str) -> None:
        """It is there already."""
        del archive, digest
        self._check()

    def start(self, digest: str) -> None:
        """Nothing to start."""

    def send(self, lines: list[str]) -> None:
        self._check()
        for text in lines:
            request = messages.read(text)
            self.requests.append(request)
            for reply in self._answer(request):
                self.put(reply)

    def put(self, reply: messages.Reply) -> None:
        self._replies.put(messages.line(reply))

    def receive(self, seconds: float) -> list[str]:
        self._check()
        try:
            return [self._replies.get(timeout=min(seconds, 0.01))]
        except queue.Empty:
            return []

    def close(self) -> None:
        self._check()
        self.closed = True
        self.put(Exited(0, ""))

    def abandon(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.lost:
            raise HostLostError(self.lost)


def whole(request: messages.Request, host: str = "") -> list[Any]:
    """The replies of a host without problems."""
    if isinstance(request, Open):
        return [opened()]
    if isinstance(request, Measure):
        measured = replace(MEASURED, cut="", launches=(replace(LAUNCH, reason=host),))
        return [
            ProgressLine("round 1"),
            GroupProgress(request.number, GROUP.name, ((CASE, measured),), (ROUND,), over=True),
        ]
    return []


class Rack:
    """Hosts, each with a script."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.board = MessageBoard(self.said.append)
        self.channels: dict[str, Scripted] = {}
        self._links: list[Link] = []

    def site(self, labels: dict[str, dict[str, str]] | None = None, /, **scripts: Script) -> RemoteSite:
        for name, script in scripts.items():
            self.channels[name] = Scripted(script)
            one = Link(Host(name, name, labels=(labels or {}).get(name, {})), self.channels[name], self.board)
            one.open(Open("run", Options()), "here", b"")
            self._links.append(one)
        return RemoteSite(self._links, self.board, "run", {"commit": "abc"})

    def close(self) -> None:
        for channel in self.channels.values():
            channel.lost = channel.lost or "the test is over"


@pytest.fixture
def rack() -> Iterator[Rack]:
    rack = Rack()
    yield rack
    rack.close()


def running(site: RemoteSite, launches: int = 1) -> Running:
    return site.running(GroupRequest(GROUP, launches))


def run(one: Running) -> list[int]:
    """Run it; how many measurements there were after each round."""
    return [len(one.measurements()) for _ in one.play()]


def measured_by(site: RemoteSite) -> Measurement:
    """What becomes of the case of the group."""
    site.facts(Options())
    group = running(site)
    run(group)
    (measured,) = group.measurements().values()
    return measured


def rounds_of(one: Running) -> list[str]:
    return [record.uid for record in one.rounds]


def test_a_group_measured_on_a_host_is_recorded_with_our_commit_and_clock(rack: Rack) -> None:
    site = rack.site(a=whole)
    assert site.facts(Options()).packages == {}
    group = running(site)
    assert run(group) == [], "what is complete is recorded once, by who waited for it"
    (measured,) = group.measurements().values()
    assert measured.environment["git"] == {"commit": "abc"}
    assert measured.launches == (LAUNCH,)
    assert rounds_of(group) == ["u"]
    assert rack.said == ["a: round 1"]
    assert site.meta() == {"fleet": {"run": "run", "hosts": {"a": [GROUP.name]}}}
    site.close()
    assert rack.channels["a"].closed
    assert rack.channels["a"].requests[-1] == Bye()
    assert Stop() not in rack.channels["a"].requests


def test_times_of_a_host_with_a_wrong_clock_are_corrected(rack: Rack) -> None:
    def ahead(request: messages.Request) -> list[Any]:
        return [opened(600)] if isinstance(request, Open) else whole(request)

    assert measured_by(rack.site(a=ahead)).started_at.startswith("2025-12-31T23:5")


def test_hosts_share_groups_only_if_they_are_equal(rack: Rack) -> None:
    def other(request: messages.Request) -> list[Any]:
        return [opened(torch="2.8.0")] if isinstance(request, Open) else whole(request)

    with pytest.raises(UsageError, match=r"b is not equal to a: torch 2\.8\.0 instead of absent"):
        rack.site(a=whole, b=other).facts(Options())


ARM = ArmRequest(ArmWords(text="baseline", lock="baseline"), Lock("3.11.7", "x").text, (CASE,), "--it", PairPolicy())
MADE = LockArm(ArmWords(text="baseline:1", python="/a/python"), ((CASE, CASE),), ())


def prepares(made: LockArm | None, problem: str = "") -> Script:
    """A host that can make the software of a lock, or cannot."""

    def script(request: messages.Request) -> list[Any]:
        if not isinstance(request, Prepare):
            return whole(request)
        return [Answer(request.number, made) if made else Refused(request.number, problem, of_lock=True)]

    return script


def test_equal_hosts_all_make_the_software_of_an_arm(rack: Rack) -> None:
    other = replace(MADE, words=replace(MADE.words, python="/b/python"))
    site = rack.site(a=prepares(MADE), b=prepares(other))
    assert site.locked(ARM) == MADE
    for channel in rack.channels.values():
        [asked] = [one for one in channel.requests if isinstance(one, Prepare)]
        assert asked.request == ARM


def test_an_equal_host_that_cannot_make_the_software_is_named(rack: Rack) -> None:
    site = rack.site(a=prepares(MADE), b=prepares(None, "pace 1.0 came from no index"))
    with pytest.raises(LockError, match=r"host b: pace 1\.0 came from no index"):
        site.locked(ARM)


def test_an_equal_host_that_is_lost_meanwhile_measures_nothing(rack: Rack) -> None:
    def dies(request: messages.Request) -> list[Any]:
        return [Exited(1, "it fell over")] if isinstance(request, Prepare) else whole(request)

    site = rack.site(a=dies, b=prepares(MADE))
    assert site.locked(ARM) == MADE
    group = running(site)
    run(group)
    assert [one.launches[0].reason for one in group.measurements().values()] == [""]
    with pytest.raises(HostLostError, match=r"the host a was lost: .*it fell over"):
        rack.site(a=dies, b=dies).locked(ARM)
    with pytest.raises(HostLostError, match="it fell over"):
        rack.site(a=dies).locked(ARM)


def test_a_host_answers_or_refuses_questions_of_a_run(rack: Rack) -> None:
    def script(request: messages.Request) -> list[Any]:
        if not isinstance(request, Key):
            return whole(request)
        return [
            Refused(request.number, "it has no such card")
            if request.device == "cuda"
            else Answer(request.number, f"key of {request.device}")
        ]

    site = rack.site(a=script)
    assert site.machine_key("xpu", opened().facts) == "key of xpu"
    with pytest.raises(UsageError, match="it has no such card"):
        site.machine_key("cuda", opened().facts)


@pytest.mark.parametrize(
    ("driver", "card", "reason"),
    [
        ("25.31", "Arc", r"b is not equal to a: driver 25\.31 instead of 25\.9"),
        ("25.9", "unknown", "a card that torch could not describe when its host joined"),
    ],
)
def test_hosts_with_other_or_unknown_cards_are_not_equal(rack: Rack, driver: str, card: str, reason: str) -> None:
    labels = {
        "a": {"device": "cpu_xpu", "driver": "25.9", "card": card},
        "b": {"device": "cpu_xpu", "driver": driver, "card": card},
    }
    with pytest.raises(UsageError, match=reason):
        rack.site(labels, a=whole, b=whole).facts(Options())


def test_a_host_that_refuses_the_options_is_named(rack: Rack) -> None:
    site = rack.site(a=lambda request: [Refused(0, "no such model")] if isinstance(request, Open) else [])
    with pytest.raises(UsageError, match="no such model"):
        site.facts(Options())


def dies(rack: Rack, name: str, *replies: Any) -> Callable[[messages.Request], list[Any]]:
    """The script of a host that is lost while it measures, after these replies."""

    def script(request: messages.Request) -> list[Any]:
        if not isinstance(request, Measure):
            return whole(request)
        for reply in replies:
            rack.channels[name].put(reply)
        rack.channels[name].put(Exited(-9, "Killed\n"))
        return []

    return script


def test_a_lost_host_fails_its_unfinished_cases(rack: Rack) -> None:
    site = rack.site(a=dies(rack, "a", HALF))
    site.facts(Options())
    group = running(site, launches=2)
    run(group)
    (measured,) = group.measurements().values()
    assert [one.outcome for one in measured.launches] == ["ok", "crashed"]
    assert measured.failure == "crashed: the host a was lost: its process ended with status -9: Killed"
    assert rounds_of(group) == ["u"]
    measured = measured_by(site)
    assert measured.failure == "crashed: the host a was lost: its process ended with status -9: Killed"
    assert measured.environment["machine_key"] == "key"
    site.close()


def test_an_equal_host_measures_the_group_of_a_lost_one_once(rack: Rack) -> None:
    lost = replace(HALF, rounds=(replace(ROUND, uid="lost"),))
    site = rack.site(**{name: dies(rack, name, lost) for name in ("a", "b", "c")})
    first, second, _ = (one.host.name for one in site.order(GROUP.name))
    rack.channels[second]._answer = whole
    site.facts(Options())
    group = running(site, launches=1)
    run(group)
    (measured,) = group.measurements().values()
    assert measured.launches[0].notes[-2:] == (f"{first} was lost before it had finished", f"measured on {second}")
    assert measured.failure == ""
    assert rounds_of(group) == ["u"], "the rounds of the lost host are made again"
    again = running(site)
    run(again)
    assert site.meta()["fleet"]["hosts"][second] == [GROUP.name]  # type: ignore[index]


def arrives(site: RemoteSite, name: str, *replies: Any) -> None:
    """Have a host send this, and wait until it was read."""
    link = site._links[name]
    for reply in replies:
        link._channel.put(reply)  # type: ignore[attr-defined]
    last = replies[-1]
    until = time.monotonic() + 20
    while time.monotonic() < until and not (link.lost if isinstance(last, Exited) else link.arrived(1).over):
        time.sleep(0.01)
    assert time.monotonic() < until


HALF = GroupProgress(1, GROUP.name, ((CASE, replace(MEASURED, cut="")),), (ROUND,), over=False)
LAST = replace(HALF, measurements=whole(Measure(1, GroupRequest(GROUP, 1)))[1].measurements, over=True)


def half(request: messages.Request) -> list[Any]:
    """The replies of a host that still measures its group."""
    return [HALF] if isinstance(request, Measure) else whole(request)


def test_a_complete_group_is_not_measured_again_if_its_host_is_lost_afterwards(rack: Rack) -> None:
    """Its last report and the end of its host arrive while an earlier report is being recorded."""
    site = rack.site(a=half, b=half)
    site.facts(Options())
    first, second = (one.host.name for one in site.order(GROUP.name))
    group, recorded = running(site), []

    def record() -> None:
        recorded.append(group.measurements())
        arrives(site, first, replace(LAST, rounds=(replace(ROUND, uid="v"),)), Exited(-9, "Killed"))

    for _ in group.play():
        record()
    assert len(recorded) == 1
    (measured,) = group.measurements().values()
    assert measured.failure == ""
    assert rounds_of(group) == ["u", "v"]
    assert not [one for one in rack.channels[second].requests if isinstance(one, Measure)]
    assert site.meta()["fleet"]["hosts"][first] == [GROUP.name]  # type: ignore[index]


def test_a_report_that_arrives_while_another_is_recorded_is_recorded_next(rack: Rack) -> None:
    site = rack.site(a=half)
    site.facts(Options())
    group, recorded = running(site, launches=2), []

    def record() -> None:
        arrives(site, "a", replace(LAST, rounds=(replace(ROUND, uid="v"),)))
        recorded.append(([one.cut for one in group.measurements("unfinished").values()], rounds_of(group)))

    for _ in group.play():
        record()
    assert recorded == [(["unfinished"], ["u"])]
    assert rounds_of(group) == ["u", "v"]


def test_replies_of_a_host_after_it_was_lost_are_ignored(rack: Rack) -> None:
    """Another host may have its group."""
    site = rack.site(a=half)
    site.facts(Options())
    group = running(site, launches=2)
    link = site._links["a"]

    def lose() -> None:
        link._lose("it did not answer within 60 s")
        link._take(LAST)

    for _ in group.play():
        lose()
    (measured,) = group.measurements().values()
    assert measured.failure == "crashed: the host a was lost: it did not answer within 60 s"
    assert rounds_of(group) == ["u"]


def test_a_group_is_not_given_to_a_third_host(rack: Rack) -> None:
    site = rack.site(**{name: dies(rack, name) for name in ("a", "b", "c")})
    assert "was lost" in measured_by(site).failure
    measuring = [name for name, one in rack.channels.items() if any(isinstance(x, Measure) for x in one.requests)]
    assert len(measuring) == 2


def test_a_silent_host_is_lost_after_a_time_limit(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SILENT_SECONDS", 0.2)
    site = rack.site(a=lambda request: whole(request) if isinstance(request, Open) else [])
    site.facts(Options())
    group = running(site)
    began = time.monotonic()
    run(group)
    assert time.monotonic() - began < 20
    (measured,) = group.measurements().values()
    assert "no sign of life for 0 s" in measured.failure


@pytest.mark.parametrize("text", ["[]", "{", '{"is":"ProgressLine","text":7}'])
def test_a_host_with_an_invalid_reply_is_lost(rack: Rack, text: str) -> None:
    site = rack.site(a=lambda request: whole(request) if isinstance(request, Open) else [])
    site.facts(Options())
    group = running(site)
    rack.channels["a"]._replies.put(text)
    run(group)
    (measured,) = group.measurements().values()
    assert "what it says cannot be read" in measured.failure


class Cluster:
    """A cluster of these hosts, each reached by a channel that a test makes, or by none."""

    def __init__(self, names: str, channel: Callable[[str], Scripted]) -> None:
        self._names, self._channel = names, channel
        self.looks = 0

    def hosts(self) -> list[Host]:
        self.looks += 1
        return [Host(name, f"{name}{number}", "10.0.0.1") for number, name in enumerate(self._names)]

    def channel(self, host: Host, say: Callable[[str], None], *, wait: bool) -> Scripted:
        del wait
        say(f"{host.name} is asked")
        return self._channel(host.name)

    def close(self) -> None:
        """Nothing to close."""


def start(folder: Path, cluster: Cluster, options: Options | None = None) -> list[str]:
    """Start runs on a cluster that can have none. What was said, and last of all the refusal."""
    said: list[str] = []
    with pytest.raises(UsageError) as refused:
        runs.start(options or Options(), folder, said.append, cluster)
    return [*said, str(refused.value)]


@pytest.mark.process
def test_a_host_that_dies_before_it_opens_is_not_waited_for(tmp_path: Path) -> None:
    channel = Scripted(whole)
    channel.lost = "its node has died"
    began = time.monotonic()
    assert start(tmp_path, Cluster("a", lambda _: channel))[-1] == "host a: its node has died"
    assert time.monotonic() - began < 60


@pytest.mark.process
def test_hosts_are_started_at_the_same_time(tmp_path: Path) -> None:
    """A busy one delays no other, and each that takes no part has its reason."""
    all_asked = threading.Barrier(3, timeout=20)

    def busy(name: str) -> Scripted:
        all_asked.wait()
        raise UsageError(f"{name} is busy")

    *said, refusal = start(tmp_path, Cluster("abc", busy))
    assert refusal == "host a: a is busy"
    assert sorted(said[-3:]) == [f"{name} is asked" for name in "abc"]


@pytest.mark.process
def test_a_host_gets_no_password_of_the_history(tmp_path: Path) -> None:
    """Only the controller records."""
    channel = Scripted(lambda _: [Refused(0, "not today")])
    options = Options(db="postgresql://writer:secret@server/history")
    assert start(tmp_path, Cluster("a", lambda _: channel), options)[-1] == "host a: not today"
    assert "secret" not in messages.line(channel.requests[0])


def test_a_run_waits_until_ray_lists_a_host_that_joined_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(runs, "GHOST_SECONDS", 0.1)
    cluster = Cluster("aa", lambda _: Scripted(whole))
    said, refusal = start(tmp_path, cluster)
    assert said == "fleet: a joined again: waiting until Ray has noticed that the earlier one is gone"
    assert refusal.startswith("two hosts of the fleet are called a")
    assert cluster.looks > 1
