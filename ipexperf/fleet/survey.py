"""What people see of a fleet: what each host is doing, how busy it was, and what it keeps. As text, JSON and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from ipexperf.fleet import choice
from ipexperf.fleet.hosts import Host
from ipexperf.fleet.looks import Look
from ipexperf.fleet.status import DAY, Status
from ipexperf.report import units

TEMPLATE = Path(__file__).with_name("hosts.html")
LOOK = Path(__file__).parents[1] / "dashboard" / "assets" / "look.css"
"""The style of the dashboard, which the page contains, so that it is one file."""
SILENT, GONE, FREE, TAKEN, ALONE = "does not answer", "gone", "free", "taken", "finishing"
"""States of a host beside those of its status. `taken`: by a run that only begins. `finishing`: its pytest is gone."""
OURS = ("host", "state", "reason", "doing", "busy", "busy_seconds", "keeps")
"""The fields of a row that are no labels."""
WIDTH = 480
"""The width of a day on the page."""


class Fleet(Protocol):
    """A fleet that can be looked at."""

    def hosts(self) -> list[Host]: ...
    def free(self) -> dict[str, bool]: ...
    def gone(self) -> dict[str, str]: ...
    def looks(self, hosts: Sequence[Host]) -> dict[str, Look | str]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """A host, and what was seen of it."""

    host: Host
    look: Look | None
    """None: it does not answer, or it died."""
    state: str
    reason: str = ""
    """Why there is no look."""


def make(fleet: Fleet, test: str | None = None) -> list[Seen]:
    """Look at the hosts that a test chooses, and without one also at those that died."""
    hosts = choice.chosen(fleet.hosts(), test)
    looks, free = fleet.looks(hosts), fleet.free()
    gone = fleet.gone()  # after the looks: one that dies while it is looked at is gone, and listed once
    seen = [
        Seen(host, None, GONE, gone[host.name])
        if host.name in gone
        else _seen(host, looks[host.name], free=free.get(host.name, False))
        for host in hosts
    ]
    if test is None:
        others = sorted(gone.keys() - {host.name for host in hosts})
        seen += [Seen(Host(name, ""), None, GONE, gone[name]) for name in others]
    return seen


def _seen(host: Host, look: Look | str, *, free: bool) -> Seen:
    if isinstance(look, str):
        return Seen(host, None, SILENT, look)
    doing = look.doing
    if doing is None:
        return Seen(host, look, FREE if free else TAKEN)
    return Seen(host, look, ALONE if doing.alone and doing.state != "quiet" else doing.state)


def rows(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """What was seen, as JSON."""
    return [_row(one) for one in seen]


def _row(one: Seen) -> dict[str, Any]:
    labels = {name: content for name, content in sorted(one.host.labels.items()) if name not in OURS}
    whole = {"host": one.host.name, "state": one.state, **labels}
    if one.look is None:
        return {**whole, "reason": one.reason}
    return {
        **whole,
        "doing": _doing(one.look.doing, one.look.now) if one.look.doing else None,
        "busy": float(f"{one.look.busy:.4g}"),  # a second of a day is no nothing
        "busy_seconds": round(one.look.seconds),
        "keeps": keeps(one.look),
    }


def keeps(look: Look) -> list[str]:
    """The runs of which a host keeps what it measured, and that nobody goes on with."""
    return [one.run for one in look.journals if not one.busy]


def _doing(doing: Status, now: float) -> dict[str, Any]:
    names = ("run", "group", "round", "rounds", "queue", "said")
    seconds = round(max(0.0, now - doing.since))
    return {**{name: getattr(doing, name) for name in names}, "since": _moment(doing.since), "seconds": seconds}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def lines(seen: Sequence[Seen]) -> list[str]:
    """What was seen, as text."""
    return [line for one in seen for line in _lines(one)]


def _lines(one: Seen) -> Iterator[str]:
    labels = "".join(f"  {name}={content}" for name, content in sorted(one.host.labels.items()))
    yield f"{one.host.name}  {one.state}{f': {one.reason}' if one.reason else ''}{labels}"
    if one.look is None:
        return
    if sentence := doing_text(one):
        yield f"    {sentence}"
    yield f"    {busy_text(one.look)}"
    for run in keeps(one.look):
        yield f"    keeps what it measured of a run that was cut off: --perf-resume {run}"


def busy_text(look: Look) -> str:
    """How busy a host was."""
    return f"measured {look.busy:.0%} of the last {units.seconds(look.seconds)}"


def doing_text(one: Seen) -> str:
    """What a host is doing, or an empty text."""
    look = one.look
    if look is None or look.doing is None:
        return ""
    doing = look.doing
    since = f"for {units.seconds(round(max(0.0, look.now - doing.since)))}"
    if not doing.group:
        return f"run {doing.run} has nothing for it to measure {since}"
    queue = f"; {units.plural(doing.queue, 'group')} to come" if doing.queue else ""
    queue = "; its pytest is gone" if one.state == ALONE else queue
    if doing.state == "waiting":
        reason = f" ({doing.said})" if doing.said else ""
        return f"run {doing.run}: {doing.group} waits for its devices {since}{reason}{queue}"
    return f"run {doing.run}: {doing.group}, round {doing.round} of {doing.rounds}, {since}{queue}"


@dataclass(frozen=True, slots=True)
class Bar:
    """A group on the day of a host."""

    left: float
    width: float
    text: str


def bars(look: Look) -> list[Bar]:
    """What a host measured in the last day. The end of the line is now."""
    begin = look.now - DAY
    return [
        Bar(
            round(max(0.0, one.begin - begin) / DAY * WIDTH, 2),
            # Wide enough to be seen, however short a group was.
            round(max(0.5, (min(one.end, look.now) - max(one.begin, begin)) / DAY * WIDTH), 2),
            f"{one.group}, run {one.run}, {_moment(one.begin)[:19]} to {_moment(one.end)[11:19]} UTC",
        )
        for one in look.stretches
    ]


def page(seen: Sequence[Seen], seconds: int | None = None) -> str:
    """What was seen, as a page for a browser, which loads it again every so many seconds."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    hosts: list[Mapping[str, Any]] = [
        {
            "name": one.host.name,
            "state": one.state,
            "doing": one.reason or doing_text(one),
            "busy": f"{one.look.busy:.0%} of {units.seconds(one.look.seconds)}" if one.look else "-",
            "bars": bars(one.look) if one.look else [],
            "keeps": ", ".join(keeps(one.look)) if one.look else "",
            "labels": ", ".join(f"{name}={content}" for name, content in sorted(one.host.labels.items())),
        }
        for one in seen
    ]
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    made = datetime.now(timezone.utc).isoformat(" ", "seconds").removesuffix("+00:00")
    look = LOOK.read_text(encoding="utf-8")
    return template.render(hosts=hosts, look=look, made=made, width=WIDTH, seconds=seconds)
