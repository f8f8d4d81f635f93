"""Tables of equal hosts for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from ipexperf.history.drawing import interval, moment, ratio, remarks, row, table
from ipexperf.history.host_times import DAY
from ipexperf.judge.hosts import LEAST_HOSTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ipexperf.history.host_times import Kind
    from ipexperf.history.over_hosts import HostsComparison, HostShare, OverHosts
    from ipexperf.judge.hosts import HostVerdict

EXPLANATION = (
    "ratio: step times over those of the other hosts of its kind, the median over cases and nights; above 1 is slower. "
    "A host is odd if it lies farther from the others than they lie from one another."
)
OVER_HOSTS = (
    "ratio: time of the second over that of the first, on each host and over all of them; above 1 is slower. Intervals "
    "hold with 90 %. They come from how far the hosts lie from one another: what a host does from one day to the next "
    "is in them."
)
MANY = 6
"""More hosts than this have no ratio each in the table."""


def kinds_table(kinds: Sequence[Kind]) -> Table:
    names = ("host", "machine", "state", "ratio", "interval", "nights", "cases", "since")
    drawn = table(*names, spare=("cases", "nights", "since", "machine"))
    for kind in kinds:
        for verdict in kind.hosts:
            numbers = (ratio(verdict.ratio), interval(verdict.lo, verdict.hi), str(verdict.nights), str(verdict.cases))
            row(drawn, verdict.host, kind.machine_key, verdict.state, *numbers, verdict.since[:DAY])
    return drawn


def kinds_text(kinds: Sequence[Kind]) -> Text:
    """The sentences on the hosts, and an explanation of the numbers."""
    return Text("\n".join([*sentences(kinds), EXPLANATION]))


def sentences(kinds: Sequence[Kind]) -> list[str]:
    """One sentence for each odd host, and one for kinds of which there are too few."""
    lines = [_sentence(verdict) for kind in kinds for verdict in kind.hosts if verdict.state in ("slower", "faster")]
    few = [kind.machine_key for kind in kinds if len(kind.hosts) < LEAST_HOSTS]
    if few:
        lines.append(f"{', '.join(few)}: with fewer than {LEAST_HOSTS} hosts none can be called odd.")
    return lines


def _sentence(verdict: HostVerdict) -> str:
    percent = abs(verdict.ratio - 1) * 100
    return (
        f"{verdict.host} is {percent:.1f} % {verdict.state} than its {verdict.equals} equals "
        f"since {verdict.since[:DAY]}: the machine, not the software."
    )


def over_hosts_text(compared: HostsComparison) -> Text:
    """Describe both sides, with the notes on the comparison as a whole."""
    lines = []
    for name, side in (("first", compared.first), ("second", compared.second)):
        when = moment(side.begin) if side.begin == side.end else f"{moment(side.begin)} to {moment(side.end)}"
        hosts = ", ".join(side.hosts) or "shared hosts"
        runs = "1 run" if len(side.runs) == 1 else f"{len(side.runs)} runs"
        lines.append(f"{name:8} {side.selector}: {runs} on {hosts}, {when} UTC")
        lines += [f"{'':8} {software}" for software in side.software]
    return Text("\n".join([*lines, *compared.notes]))


def over_hosts_table(cases: Sequence[OverHosts]) -> Table:
    names = ("case", "batch", "machine", "verdict", "ratio", "interval", "host by host")
    drawn = table(*names, spare=("machine", "batch", "host by host"))
    for case in cases:
        numbers = (case.outcome or "-", ratio(case.ratio), interval(case.lo, case.hi), host_by_host(case.hosts))
        row(drawn, case.case_id, str(case.batch), case.machine_key, *numbers)
    return drawn


def reasons_text(cases: Sequence[OverHosts]) -> Text:
    return remarks((case.case_id, f"batch {case.batch}, {case.machine_key}", case.reason) for case in cases)


def host_by_host(hosts: Sequence[HostShare]) -> str:
    """The ratio of each host, or of many hosts the smallest and the largest."""
    ratios = sorted((host.ratio, host.host) for host in hosts if host.ratio is not None)
    if len(ratios) <= MANY:
        return ", ".join(f"{host.host} {ratio(host.ratio)}{' (odd)' * (host.note == 'odd')}" for host in hosts)
    (low, first), (high, last) = ratios[0], ratios[-1]
    return f"{len(ratios)} hosts, {ratio(low)} on {first} to {ratio(high)} on {last}"
