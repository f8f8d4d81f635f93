"""The gain of each ablated knob: lines below the table of a run."""

from __future__ import annotations

from collections.abc import Sequence

from ipexperf.case import Case
from ipexperf.report.advice import UNSOUND
from ipexperf.report.speeds import Speeds
from ipexperf.result import PRIMARY

HEADING = "what each ablated knob is worth:"
NOTHING = "no share seen"


def ratio_lines(speeds: Speeds, ablated: Sequence[str]) -> list[str]:
    """A heading and a line for each case that was ablated, or nothing."""
    lines: dict[Case, list[str]] = {}
    for case in speeds.by_case:
        for name, value in case.knobs:
            whole = case.without(name)
            if name in ablated and whole in speeds.by_case:
                words = f"without {name}" if value == "off" else f"with {name}={value}"
                ratio = speeds.compare(whole, case, PRIMARY)
                share = f"not told: {UNSOUND}" if ratio is None else ratio.sentence("times the step time", NOTHING)
                lines.setdefault(whole, []).append(f"{words} {share}")
    return [HEADING, *(f"  {case.id}: {'; '.join(parts)}" for case, parts in lines.items())] if lines else []
