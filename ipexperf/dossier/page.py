"""The page of a dossier, and its content as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jinja2

from ipexperf import units
from ipexperf.dashboard.writing import STYLE
from ipexperf.dossier.drawing import Row
from ipexperf.report.rerun import Search
from ipexperf.result import METRICS

TEMPLATE = Path(__file__).with_name("page.html")
MEASURE = "Measure it again"
VERSION = 1
"""Version of the JSON document."""


@dataclass(frozen=True, slots=True)
class Dossier:
    """All that both arms tell."""

    case: str
    lines: tuple[str, ...]
    """How much slower it is, what differs, and what that did."""
    block: str
    arms: tuple[str, ...]
    """The interpreters of both arms."""
    differs: tuple[str, ...]
    causes: tuple[tuple[str, str, str], ...]
    """The known causes that fit, each with its meaning and page."""
    changes: tuple[str, ...]
    counts: tuple[tuple[str, float, float], ...]
    """Metrics of a step in both arms."""
    own: tuple[Row, ...]
    """Operators, kernels and functions with their own seconds in a and b, and their calls in both."""
    allocated: tuple[Row, ...]
    """Who allocates more: bytes in a and b, and the number of allocations in both."""
    flames: tuple[str, str]
    missing: tuple[str, ...]
    source: tuple[tuple[str, str], ...]
    """The user's files that differ, each with its difference."""
    code: tuple[tuple[str, str], ...]
    """The same of generated code."""
    script: str
    script_said: str
    no_script: str
    searches: tuple[Search, ...]
    commands: Mapping[str, str]
    files: tuple[tuple[str, int], ...]
    """Each with its size in bytes."""

    def to_json(self) -> dict[str, Any]:
        """All but the drawings, which are made of the traces."""
        document = asdict(self)
        del document["flames"]
        files = [{"name": name, "size": size} for name, size in self.files]
        return {"version": VERSION, **document, "files": files}


def html(made: Dossier) -> str:
    """The page as one file of HTML, which loads nothing."""
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return page.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        style=STYLE.read_text(encoding="utf-8"),
        dossier=made,
        counts=[(name, amount(name, a), amount(name, b), change(a, b)) for name, a, b in made.counts],
        bars=list(_bars(made.counts)),
        own=[
            (name, units.seconds(a), units.seconds(b), change(a, b), _calls(*calls)) for name, a, b, *calls in made.own
        ],
        allocated=[(name, units.size(a), units.size(b), _calls(*calls)) for name, a, b, *calls in made.allocated],
        size=units.size,
    )


def _bars(counts: Sequence[tuple[str, float, float]]) -> Iterator[tuple[object, ...]]:
    """The time of a step and what moved beside it, each with the widths of its bars."""
    for name, a, b in [*counts[:1], *(count for count in counts[1:] if count[1] != count[2])]:
        widths = [f"{100 * value / (max(a, b) or 1):.1f}" for value in (a, b)]
        kind = "" if a == b else "slower" if b > a else "faster"
        yield name.replace("_", " "), amount(name, a), amount(name, b), change(a, b), widths, kind


def _calls(before: float, after: float) -> str:
    return " → ".join(f"{calls:,.0f}" if calls >= 1000 else f"{calls:g}" for calls in (before, after))


def amount(name: str, value: float) -> str:
    return units.amount(value, METRICS[name].unit)


def longer(times: float) -> str:
    """How much longer a call takes, in words."""
    if not math.isfinite(times):
        return "time that a does not spend"
    return f"{units.digits(times)} times as long" if times >= 2 else f"{units.percent(times)} time"


def change(a: float, b: float) -> str:
    return units.percent(b / a) if a else "new" if b else "-"
