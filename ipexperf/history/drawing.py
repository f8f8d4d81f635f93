"""Format numbers, times and tables for a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ipexperf.judge.ratios import TOO_FEW, WIDE
from ipexperf.outcomes import OUTCOMES
from ipexperf.result import METRICS

SHORT = 13
"""Leading characters of a uid that hold the millisecond: enough to identify a run."""
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "bytes": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
}
_SCALES |= {
    unit: tuple((scale, prefix + unit) for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, "")))
    for unit in ("FLOP/s", "bytes/s")
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
    scale, name = next((x for x in scales if abs(value) >= x[0]), scales[-1])
    return f"{value / scale:.4g} {name}"


def table(*columns: str) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        drawn.add_column(column)
    return drawn


def row(drawn: Table, *cells: str) -> None:
    # Text, not str: the output of a worker is not markup.
    drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))


def stacked(drawn: Table) -> Group:
    """The rows of a table that is too wide: the first cell on a line of its own, and below it what is in the others."""
    names = [str(column.header) for column in drawn.columns]
    parts: list[Text | Padding] = []
    for cells in zip(*(column.cells for column in drawn.columns), strict=True):
        first, *rest = (cell for cell in cells if isinstance(cell, Text))
        told = [
            Text.assemble(f"{name} ", cell) for name, cell in zip(names[1:], rest, strict=True) if cell.plain != "-"
        ]
        parts += [first, Padding(Text(", ").join(told), (0, 0, 0, 4), expand=False)]
    return Group(*parts)


def moment(text: str) -> str:
    return text[:19].replace("T", " ")


def ratio(value: float | None) -> str:
    """Format a ratio with three decimals, or with an exponent where these would hide it or fill the screen."""
    if value is None:
        return "-"
    return f"{value:.3f}" if value == 0 or 1e-3 <= value < 1e6 else f"{value:.2e}"


def interval(lo: float | None, hi: float | None) -> str:
    """Format an interval. Empty for a single launch, and for an interval that is too wide to mean anything."""
    if lo is None or hi is None:
        return "-"
    return TOO_FEW if hi / lo > WIDE else f"{lo:.3f} to {hi:.3f}"


def share(metric: str, value: float | None) -> str:
    """Format an accuracy: shares in per cent, anything else with three digits."""
    if value is None:
        return "-"
    return f"{value:.1%}" if METRICS[metric].unit == "fraction" else f"{value:.3g}"
