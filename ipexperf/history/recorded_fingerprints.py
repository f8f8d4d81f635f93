"""Fingerprints in the history: of a case in a run, and of the session that a baseline was accepted from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipexperf.errors import HistoryError
from ipexperf.judge import structure

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.history.records import Recorded
    from ipexperf.history.store import History
    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.structure import Fingerprint
    from ipexperf.result import Structure


def fingerprint_of(recorded: Recorded) -> tuple[Structure, Fingerprint | None]:
    """Return the fingerprint of a case's launches, and whether all launches have the same."""
    return structure.common([launch.document.get("fingerprint") for launch in recorded.counted])


def medians(recorded: Recorded) -> dict[str, float | None]:
    """Return the median of each metric of a case over its launches."""
    return {name: summary.median for name, summary in recorded.metrics.items()}


def accepted(history: History, baseline: CaseBaseline) -> Fingerprint | None:
    """Return the fingerprint behind the digest of a baseline, if the history has a session with it."""
    for session in sorted(baseline.sessions, key=lambda session: session.started_at, reverse=True):
        recorded = _of(history, session.run, baseline.case)
        if recorded is not None and baseline.fingerprint in (None, structure.name(recorded)):
            return recorded
    return None


def _of(history: History, run: str, case: Case) -> Fingerprint | None:
    try:
        measurements = history.measurements(run)
    except HistoryError:
        return None  # measured elsewhere, or pruned: the baseline file outlives it
    return next((fingerprint_of(recorded)[1] for recorded in measurements if recorded.case == case), None)
