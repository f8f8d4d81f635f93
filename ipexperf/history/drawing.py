"""Format numbers, times and tables for a terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from ipexperf.outcomes import OUTCOMES
from ipexperf.ratio import Ratio
from ipexperf.result import METRICS
from ipexperf.sentences import few
from ipexperf.units import accuracy, amount

SHORT = 13
"""Leading characters of a uid that hold the millisecond: enough to identify a run."""
NAMED = 4
"""Most cases that are named in one line."""
UNBOUNDED = 500
"""Width of tables in files and pipes."""
GAP = "  "
ROOM = 16
"""Least width of a first column with long ids, for those that fit."""
_GOOD, _BAD = "green", "red"
_STYLES = {
    **{name: _BAD for name, row in OUTCOMES.items() if row.fails},
    **{name: _GOOD for name, row in OUTCOMES.items() if row.fine},
    "worse": _BAD,
    "better": _GOOD,
}


def human(value: float | None, unit: str) -> str:
    """A number with its unit. A failure has no number."""
    return "-" if value is None else amount(value, unit)


class Columns:
    """A table as wide as the terminal, without empty columns.

    Its rows are cells by the names of their columns, None where there is no such cell. A first cell that is too long
    has a line of its own, because people copy ids. Where there is still no room, spare columns go, the first of them
    first.
    """

    def __init__(self, rows: Iterable[Mapping[str, object]], spare: Sequence[str] = ()) -> None:
        cells = [*rows]
        texts = [{name: "-" if cell is None else str(cell) for name, cell in row.items()} for row in cells]
        self.names = [name for name in cells[0] if any(row[name] != "-" for row in texts)] if cells else []
        self._rows = texts
        self._spare = [name for name in spare if name in self.names]

    def fitted(self, width: int) -> tuple[Text, Sequence[str]]:
        """The lines of the table, and the columns that have no room."""
        for count in range(len(self._spare) + 1):
            widths = {name: self._width(name) for name in self.names if name not in self._spare[:count]}
            first = self.names[0]
            over = sum(widths.values()) + len(GAP) * (len(widths) - 1) - width
            room = min(widths[first], ROOM)
            widths[first] = max(widths[first] - max(over, 0), room)
            if over <= self._width(first) - room:
                break
        return self._lines(widths, first), self._spare[:count]

    def _width(self, name: str) -> int:
        return max(len(name), *(len(row[name]) for row in self._rows))

    def _lines(self, widths: Mapping[str, int], first: str) -> Text:
        lines = [Text(GAP.join(name.ljust(width) for name, width in widths.items()).rstrip())]
        lines.append(Text(GAP.join("-" * width for width in widths.values())))
        for row in self._rows:
            # Text, not str: the output of a worker is not markup.
            cells = [Text(row[name].ljust(width), _STYLES.get(row[name], "")) for name, width in widths.items()]
            if len(row[first]) > widths[first]:
                lines.append(Text(row[first]))
                cells[0] = Text(" " * widths[first])
            lines.append(Text(GAP).join(cells))
            lines[-1].rstrip()
        return Text("\n").join(lines)


def remarks(told: Iterable[tuple[str, str, str]]) -> str:
    """What was remarked of which rows: one line for all with the same remark, as a column of it would be too wide.

    A row has a case, what else it is of, which is said where the case has several rows, and the remark.
    """
    rows = list(told)
    count = Counter(case for case, _, _ in rows)
    cases: dict[str, list[str]] = defaultdict(list)
    for case, of, remark in rows:
        if remark:
            cases[remark].append(f"{case}, {of}" if of and count[case] > 1 else case)
    return "\n".join(f"{few(list(dict.fromkeys(names)), NAMED)}: {remark}" for remark, names in cases.items())


def moment(text: str) -> str:
    return text[:19].replace("T", " ")


def ratio(value: float | None) -> str:
    """Format a ratio with three decimals, or with an exponent where these would hide it or fill the screen."""
    if value is None:
        return "-"
    return f"{value:.3f}" if value == 0 or 1e-3 <= value < 1e6 else f"{value:.2e}"


def interval(over: Ratio | None) -> str:
    """Format the interval of a ratio, if it has one."""
    return "-" if over is None or over.lo is None else over.precise_bounds


def share(metric: str | None, value: float | None) -> str:
    """An accuracy, if there is one."""
    return "-" if metric is None or value is None else accuracy(value, METRICS[metric].unit)
