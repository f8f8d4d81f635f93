"""The outcomes of a case. `OUTCOMES` has a row for each, and everything that reads outcomes reads it there.

To add one: a name in `Outcome`, and a row. Terminal, markdown, JUnit, dashboard and `baseline accept` then know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal[
    "regressed",
    "failed",
    "invalid",
    "platform_shift",
    "inconclusive",
    "not_comparable",
    "no_baseline",
    "improved",
    "ok",
]
StructureGate = Literal["warn", "loss", "fail"]
"""The changes of structure that fail a test: none, those that can only cost time, or all."""
Tone = Literal["good", "cool", "warm", "bad", "quiet"]
"""Colours of the dashboard: fine, faster, slower, broken, and nothing to say."""


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """The meaning of an outcome, its effects, and how pages show it."""

    emoji: str
    """Its sign in markdown."""
    glyph: str
    """Its sign in the dashboard. Each outcome has its own, because some readers do not see colours."""
    tone: Tone
    meaning: str
    """Explains the outcome below the table on the terminal."""
    fine: bool = False
    """True if nothing became slower. The terminal only counts such cases, and `gate` lets them pass."""
    fails: bool = False
    """True if a case with this outcome fails its test."""
    numbers: bool = True
    """True if the numbers of the case count."""

    @property
    def moved(self) -> bool:
        """Whether it says that something became worse or better: an event of its case."""
        return self.tone not in ("good", "quiet")


OUTCOMES: dict[str, OutcomeRow] = {
    "regressed": OutcomeRow("🔴", "▼", "warm", "worse than the baseline or the other arm, beyond doubt", fails=True),
    "failed": OutcomeRow("❌", "✕", "bad", "nothing was measured", fails=True, numbers=False),
    "invalid": OutcomeRow("⚠️", "!", "bad", "measured, but the numbers do not count", fails=True, numbers=False),
    "platform_shift": OutcomeRow("🟠", "⇄", "warm", "moved together with the whole run"),
    "inconclusive": OutcomeRow("❔", "~", "quiet", "neither a slowdown nor its absence was proven"),
    "not_comparable": OutcomeRow("❔", "≠", "quiet", "the baseline is of other hardware or other work"),
    "no_baseline": OutcomeRow("⚪", "○", "quiet", "speed was measured, not judged"),
    "improved": OutcomeRow("🔵", "▲", "cool", "faster than the baseline or the other arm, beyond doubt", fine=True),
    "ok": OutcomeRow("🟢", "✓", "good", "not slower by more than the tolerance", fine=True),
}
"""All outcomes, the most urgent first."""
NEVER_BEGAN = "interrupted"
"""The history's word for a case that was planned and never began. It is no outcome, because it was not judged."""
_OTHER = OutcomeRow("", "…", "quiet", "")


def row(name: str) -> OutcomeRow:
    """Return the row of an outcome. Any other name, such as `NEVER_BEGAN`, has a plain row."""
    return OUTCOMES.get(name, _OTHER)


def place(name: str) -> int:
    """Return the place of an outcome in every list: the most urgent come first, unknown names last."""
    return [*OUTCOMES, name].index(name)


def title(name: str) -> str:
    """Return the name of an outcome for people."""
    return name.replace("_", " ")


def is_fine(name: str) -> bool:
    """Return True if the outcome means that nothing became slower."""
    return row(name).fine


def has_numbers(name: str) -> bool:
    """Return True if the numbers of a case with this outcome count."""
    return row(name).numbers


def without_numbers() -> tuple[str, ...]:
    """Return the outcomes of cases whose numbers do not count."""
    return tuple(name for name in OUTCOMES if not has_numbers(name))
