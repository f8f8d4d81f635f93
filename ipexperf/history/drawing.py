"""Format numbers, times and tables for a terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ipexperf.outcomes import OUTCOMES
from ipexperf.ratio import Ratio
from ipexperf.result import METRICS
from ipexperf.sentences import few

SHORT = 13
"""Leading characters of a uid that hold the millisecond: enough to identify a run."""
NAMED = 4
"""Most cases that are named in one line."""
UNBOUNDED = 500
"""Width of tables in files and pipes."""
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "bytes": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1.0, "FLOP/s")),
}
_GOOD, _BAD = "green", "red"
_STYLES = {
    **{name: _BAD for name, row in OUTCOMES.items() if row.fails},
    **{name: _GOOD for name, row in OUTCOMES.items() if row.fine},
    "worse": _BAD,
    "better": _GOOD,
}


def human(value: float | None, unit: str) -> str:
    """Format a number with four digits and a suitable scale of its unit. A failure has no number."""
    if value is None:
        return "-"
    scales = _SCALES.get(unit)
    if scales is None:
        return f"{value:.4g}"
    scale, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    return f"{value / scale:.4g} {name}"


class Columns:
    """A table that does without empty columns and its spare ones, the first of them first, where not all have room.

    Its rows are cells by the names of their columns, None where there is no such cell: a column without any is not
    there. Of spare columns with commas between them, none is shown without the others.
    """

    def __init__(self, rows: Iterable[Mapping[str, object]], spare: Sequence[str]) -> None:
        # Text, not str: the output of a worker is not markup.
        cells = [*rows]
        names = [name for name in cells[0] if any(row[name] is not None for row in cells)] if cells else []
        texts = ({name: "-" if row[name] is None else str(row[name]) for name in names} for row in cells)
        self._rows = [{name: Text(cell, style=_STYLES.get(cell, "")) for name, cell in row.items()} for row in texts]
        self._spare = spare

    def fitted(self, console: Console) -> tuple[Table | Group, Sequence[str]]:
        """What of it fits, and the columns that do not. Nothing is cut: people copy what they read."""
        whole = console.options.update(width=UNBOUNDED)
        names = list(self._rows[0])
        filled = [name for name in names if any(row[name].plain != "-" for row in self._rows)]
        spare = [group for group in self._spare if any(name in filled for name in group.split(", "))]
        for count in (None, *range(len(spare) + 1)):
            gone = ", ".join(spare[: count or 0]).split(", ")
            kept = names if count is None else [name for name in filled if name not in gone]
            table = Table(*kept, box=box.SIMPLE_HEAD)
            for row in self._rows:
                table.add_row(*(row[name] for name in kept))
            if console.measure(table, options=whole).maximum <= console.width:
                return table, spare[: count or 0]
        return self._stacked(), ()

    def _stacked(self) -> Group:
        """The first cell of each row on a line of its own, and below it what is in the others."""
        parts: list[Text | Padding] = []
        for row in self._rows:
            (_, first), *others = row.items()
            cells = [Text.assemble(f"{name} ", cell) for name, cell in others if cell.plain != "-"]
            parts += [first, Padding(Text(", ").join(cells), (0, 0, 0, 4), expand=False)]
        return Group(*parts)


def remarks(told: Iterable[tuple[str, str, str]], alike: Callable[[str], str] = str) -> Text:
    """What was remarked of which rows: one line for all with the same remark, as a column of it would be too wide.

    A row has a case, what else it is of, which is said where the case has several rows, and the remark. Of remarks that
    are `alike` only the first is shown.
    """
    rows = list(told)
    count = Counter(case for case, _, _ in rows)
    cases: dict[str, list[str]] = defaultdict(list)
    first: dict[str, str] = {}
    for case, of, remark in rows:
        if remark:
            cases[first.setdefault(alike(remark), remark)].append(f"{case}, {of}" if of and count[case] > 1 else case)
    return Text("\n".join(f"{few(list(dict.fromkeys(names)), NAMED)}: {remark}" for remark, names in cases.items()))


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
    """Format an accuracy: shares in per cent, anything else with three digits."""
    if metric is None or value is None:
        return "-"
    return f"{value:.1%}" if METRICS[metric].unit == "fraction" else f"{value:.3g}"
