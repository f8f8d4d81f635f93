"""A survey of a fleet for people: the work, load and journals of each host, as text, JSON and a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from ipexperf.dashboard import single_page
from ipexperf.report import units
from ipexperf.tools.fleet import hosts as naming
from ipexperf.tools.fleet.host_files import DAY, Snapshot, Status
from ipexperf.tools.fleet.hosts import Host

TEMPLATE = Path(__file__).with_name("hosts.html")
SILENT, GONE, FREE, TAKEN, ALONE = "does not answer", "gone", "free", "taken", "finishing"
"""States of a host beside those of its status. `taken`: by a run that only begins. `finishing`: its pytest is gone."""
OURS = ("host", "state", "reason", "doing", "busy", "busy_seconds", "keeps")
"""The fields of a row that are no labels."""
WIDTH = 480
"""The width of the line of a host on the page."""


class Fleet(Protocol):
    """A fleet that can be surveyed."""

    def hosts(self) -> list[Host]: ...
    def free(self) -> dict[str, bool]: ...
    def gone(self) -> dict[str, str]: ...
    def snapshots(self, hosts: Sequence[Host]) -> dict[str, Snapshot | str]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class HostView:
    """A host and its state at the time of the survey."""

    host: Host
    snapshot: Snapshot | None
    """None if it does not answer or died."""
    state: str
    reason: str = ""
    """Why there is no snapshot."""

    @property
    def labels(self) -> list[str]:
        return [f"{name}={content}" for name, content in sorted(self.host.labels.items())]


def make(fleet: Fleet, test: str | None = None) -> list[HostView]:
    """Survey the hosts that a test chooses, and without one also at those that died."""
    hosts = naming.chosen(fleet.hosts(), test)
    snapshots, free = fleet.snapshots(hosts), fleet.free()
    gone = fleet.gone()  # after the snapshots, so that a host that dies meanwhile is listed once, as gone
    views = [
        HostView(host, None, GONE, gone[host.name])
        if host.name in gone
        else _view(host, snapshots[host.name], free=free.get(host.name, False))
        for host in hosts
    ]
    if test is None:
        others = sorted(gone.keys() - {host.name for host in hosts})
        views += [HostView(Host(name, ""), None, GONE, gone[name]) for name in others]
    return views


def _view(host: Host, snapshot: Snapshot | str, *, free: bool) -> HostView:
    if isinstance(snapshot, str):
        return HostView(host, None, SILENT, snapshot)
    doing = snapshot.doing
    if doing is None:
        return HostView(host, snapshot, FREE if free else TAKEN)
    return HostView(host, snapshot, ALONE if doing.alone and doing.state != "quiet" else doing.state)


def row(view: HostView) -> dict[str, Any]:
    """A host as JSON."""
    labels = {name: content for name, content in sorted(view.host.labels.items()) if name not in OURS}
    whole = {"host": view.host.name, "state": view.state, **labels}
    if view.snapshot is None:
        return {**whole, "reason": view.reason}
    return {
        **whole,
        "doing": _doing(view.snapshot.doing, view.snapshot.now) if view.snapshot.doing else None,
        "busy": float(f"{view.snapshot.busy:.4g}"),  # a second of a day must not round to 0
        "busy_seconds": round(view.snapshot.seconds),
        "keeps": view.snapshot.keeps,
    }


def _doing(doing: Status, now: float) -> dict[str, Any]:
    names = ("run", "group", "round", "rounds", "queue", "said")
    seconds = round(max(0.0, now - doing.since))
    return {**{name: getattr(doing, name) for name in names}, "since": _moment(doing.since), "seconds": seconds}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def lines(view: HostView) -> Iterator[str]:
    """A host as text."""
    yield "  ".join([view.host.name, f"{view.state}{f': {view.reason}' if view.reason else ''}", *view.labels])
    if view.snapshot is None:
        return
    if sentence := doing_text(view):
        yield f"    {sentence}"
    yield f"    {busy_text(view.snapshot)}"
    for run in view.snapshot.keeps:
        yield f"    keeps what it measured of a run that was cut off: --perf-resume {run}"


def busy_text(snapshot: Snapshot) -> str:
    """The load of a host in words."""
    if not snapshot.seconds:
        return "has not measured for any run"
    return f"measured {snapshot.busy:.0%} of the last {units.seconds(snapshot.seconds)}"


def doing_text(view: HostView) -> str:
    """The work of a host in words, or an empty text."""
    snapshot = view.snapshot
    if snapshot is None or snapshot.doing is None:
        return ""
    doing = snapshot.doing
    since = f"for {units.seconds(round(max(0.0, snapshot.now - doing.since)))}"
    if not doing.group:
        return f"run {doing.run} has nothing for it to measure {since}"
    queue = f"; {units.plural(doing.queue, 'group')} to come" if doing.queue else ""
    queue = "; its pytest is gone" if view.state == ALONE else queue
    if doing.state == "waiting":
        reason = f" ({doing.said})" if doing.said else ""
        return f"run {doing.run}: {doing.group} waits for its devices {since}{reason}{queue}"
    return f"run {doing.run}: {doing.group}, round {doing.round} of {doing.rounds}, {since}{queue}"


@dataclass(frozen=True, slots=True)
class Bar:
    """A group on the line of a host."""

    left: float
    width: float
    text: str


def bars(snapshot: Snapshot, span: float) -> list[Bar]:
    """The groups that a host measured in the last `span` seconds. The line ends now."""
    begin = snapshot.now - span
    return [
        Bar(
            round(max(0.0, stretch.begin - begin) / span * WIDTH, 2),
            # Wide enough to be seen, however short a group was.
            round(max(0.5, (min(stretch.end, snapshot.now) - max(stretch.begin, begin)) / span * WIDTH), 2),
            f"{stretch.group}, run {stretch.run}, {_moment(stretch.begin)[:19]} to {_moment(stretch.end)[11:19]} UTC",
        )
        for stretch in snapshot.stretches
    ]


def page(views: Sequence[HostView], seconds: int | None = None) -> str:
    """The survey as a page, which a browser loads again after this many seconds.

    The lines begin when the first of the hosts joined, at most a day ago.
    """
    span = max((view.snapshot.seconds for view in views if view.snapshot), default=0.0) or DAY
    written_at = datetime.now(timezone.utc).isoformat(" ", "seconds").removesuffix("+00:00")
    return single_page.render(
        TEMPLATE,
        views=views,
        bars=lambda snapshot: bars(snapshot, span),
        doing=doing_text,
        duration=units.seconds,
        made=written_at,
        span=units.seconds(span),
        width=WIDTH,
        seconds=seconds,
    )
