"""The gain of each ablated knob: lines below the table of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ipexperf.case import Case
from ipexperf.report.advice import UNSOUND
from ipexperf.report.speeds import Speeds
from ipexperf.result import PRIMARY

HEADING = "what each ablated knob is worth:"
NOTHING = "no share seen"


@dataclass(frozen=True, slots=True)
class Ablation:
    """A case and the same case with one knob changed, with the words that stand before their ratio."""

    whole: Case
    turned: Case
    words: str


def ratio_lines(speeds: Speeds, ablated: Sequence[str]) -> list[str]:
    """A heading and a line for each case that was ablated, or nothing."""
    lines: dict[Case, list[str]] = {}
    for case in speeds.by_case:
        for ablation in _ablations(case, ablated):
            if ablation.whole in speeds.by_case:
                ratio = speeds.compare(ablation.whole, ablation.turned, PRIMARY)
                share = f"not told: {UNSOUND}" if ratio is None else ratio.sentence("times the step time", NOTHING)
                lines.setdefault(ablation.whole, []).append(f"{ablation.words} {share}")
    return [HEADING, *(f"  {case.id}: {'; '.join(parts)}" for case, parts in lines.items())] if lines else []


def _ablations(case: Case, ablated: Sequence[str]) -> Iterator[Ablation]:
    """Pair each ablated case with the case that has the knob on."""
    for name, value in case.knobs:
        if name in ablated:
            yield Ablation(case.without(name), case, f"without {name}" if value == "off" else f"with {name}={value}")
