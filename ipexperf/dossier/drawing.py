"""Flame graphs as SVG, from what workers added up. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ipexperf import units

WIDTH, ROW, GAP = 1200.0, 18, 6
LETTER = 6.4
"""Width of a letter."""
SEEN = 0.6
"""Narrower calls are not drawn."""
NOTABLE = 0.02
"""A call that takes more or less time by this share of the step has a colour."""

Node = Sequence[Any]
"""A name, the seconds and calls a step, and the nodes inside."""
Row = tuple[str, float, float, float, float]
"""A name, with an amount and a number of calls in both arms."""


def flames(roots: Sequence[Node], longest: float, others: Sequence[Node] = ()) -> str:
    """Draw the calls of a step, as wide as they take: of its thread, and below it of the device and of other threads.

    What takes longer than in the `others` is warm, else cool. Empty if nothing was traced.
    """
    before = {path: seconds for root in others for path, seconds in _paths(root)}
    shapes: list[str] = []
    top = 0
    for root in roots:
        depth = 0
        for path, name, begin, seconds, calls in _placed(root, 0.0, ()):
            width = WIDTH * seconds / longest
            if width < SEEN:
                continue
            depth = max(depth, len(path))
            change = (seconds - before.get(path, 0.0)) / longest if others else 0.0
            against = f", {units.seconds(before.get(path, 0.0))} in the other arm" if others else ""
            title = f"{name}: {units.seconds(seconds)} a step, {calls:g} calls{against}"
            kind = "warm" if change > NOTABLE else "cool" if change < -NOTABLE else "plain"
            place = WIDTH * begin / longest, top + (len(path) - 1) * ROW
            shapes.append(_box(kind, *place, width, name, title))
        top += depth * ROW + GAP
    box = f'viewBox="0 0 {WIDTH:g} {top:g}"'
    return (
        f'<svg class="drawn" role="img" aria-label="flame graph of a step" {box}>{"".join(shapes)}</svg>'
        if shapes
        else ""
    )


def _placed(
    node: Node, begin: float, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str, float, float, float]]:
    name, seconds, calls, inside = node
    path = (*above, name)
    yield path, name, begin, seconds, calls
    for inner in inside:
        yield from _placed(inner, begin, path)
        begin += inner[1]


def _paths(node: Node) -> Iterator[tuple[tuple[str, ...], float]]:
    return ((path, seconds) for path, _, _, seconds, _ in _placed(node, 0.0, ()))


def slowed(roots: Sequence[Node], others: Sequence[Node], files: Collection[str]) -> tuple[str, float, float] | None:
    """The call in one of these files that takes most more time than in the others, with its seconds there and here."""
    before = {path: seconds for root in others for path, seconds in _paths(root)}
    calls = [
        (path[-1], before.get(path, 0.0), seconds)
        for root in roots
        for path, seconds in _paths(root)
        if path[-1].partition(": ")[0] in files
    ]
    return max(calls, key=lambda call: call[2] - call[1], default=None)


def _box(kind: str, x: float, y: float, width: float, name: str, title: str) -> str:
    room = int((width - 6) / LETTER)
    shown = name if len(name) <= room else f"{name[: room - 1]}…"
    text = f'<text x="{x + 3:.1f}" y="{y + 13}">{escape(shown)}</text>' if room > 2 else ""
    place = f'x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.3):.1f}" height="{ROW - 1}"'
    return f'<g class="{kind}"><title>{escape(title)}</title><rect {place}/>{text}</g>'


def lost(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]) -> list[Row]:
    """What each name takes in both arms, and how often: what grew most comes first."""
    rows: list[Row] = []
    for name in dict.fromkeys([*b, *a]):
        (old, before), (new, after) = a.get(name, (0.0, 0.0)), b.get(name, (0.0, 0.0))
        rows.append((name, old, new, before, after))
    return sorted(rows, key=lambda row: row[1] - row[2])
