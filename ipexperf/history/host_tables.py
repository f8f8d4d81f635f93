"""Tables of equal hosts for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from ipexperf.history.drawing import interval, ratio, row, table
from ipexperf.history.host_times import DAY
from ipexperf.judge.hosts import LEAST_HOSTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ipexperf.history.host_times import Kind
    from ipexperf.judge.hosts import HostVerdict

EXPLANATION = (
    "ratio: step times over those of the other hosts of its kind, the median over cases and nights; above 1 is slower. "
    "A host is odd if it lies farther from the others than they lie from one another."
)


def kinds_table(kinds: Sequence[Kind]) -> Table:
    drawn = table("machine", "host", "state", "ratio", "interval", "nights", "cases", "since")
    for kind in kinds:
        for one in kind.hosts:
            numbers = (ratio(one.ratio), interval(one.lo, one.hi), str(one.nights), str(one.cases))
            row(drawn, kind.machine_key, one.host, one.state, *numbers, one.since[:DAY])
    return drawn


def kinds_text(kinds: Sequence[Kind]) -> Text:
    """What is said of the hosts, and what the numbers mean."""
    return Text("\n".join([*sentences(kinds), EXPLANATION]))


def sentences(kinds: Sequence[Kind]) -> list[str]:
    """One sentence for each odd host, and one for kinds of which there are too few."""
    lines = [_sentence(one) for kind in kinds for one in kind.hosts if one.state in ("slower", "faster")]
    few = [kind.machine_key for kind in kinds if len(kind.hosts) < LEAST_HOSTS]
    if few:
        lines.append(f"{', '.join(few)}: with fewer than {LEAST_HOSTS} hosts nobody can say which one is odd.")
    return lines


def _sentence(one: HostVerdict) -> str:
    percent = abs(one.ratio - 1) * 100
    return (
        f"{one.host} is {percent:.1f} % {one.state} than its {one.equals} equals since {one.since[:DAY]}: "
        "the machine, not the software."
    )
