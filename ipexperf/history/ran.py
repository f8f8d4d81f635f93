"""What ran, as the history remembers it: of a case of a run, and of the session that a baseline was accepted from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipexperf.errors import HistoryError
from ipexperf.judge import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ipexperf.case import Case
    from ipexperf.history.records import Recorded
    from ipexperf.history.store import History
    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.structure import Fingerprint
    from ipexperf.result import Structure


def ran(recorded: Recorded) -> tuple[Structure, Fingerprint | None]:
    """The one fingerprint of a case's launches, and whether it is one."""
    return structure.of([launch.document.get("fingerprint") for launch in recorded.counted])


def roof(recorded: Recorded) -> Mapping[str, Any] | None:
    """The ceilings that a case was held against, or None."""
    return next((one for launch in recorded.counted if (one := launch.document.get("roof"))), None)


def medians(recorded: Recorded) -> dict[str, float | None]:
    """Each metric of a case, over its launches."""
    return {name: summary.median for name, summary in recorded.metrics.items()}


def accepted(history: History, known: CaseBaseline) -> Fingerprint | None:
    """What the digest of a baseline stands for, where the history has a session that ran so."""
    for session in sorted(known.sessions, key=lambda session: session.started_at, reverse=True):
        found = _of(history, session.run, known.case)
        if found is not None and known.fingerprint in (None, structure.name(found)):
            return found
    return None


def _of(history: History, run: str, case: Case) -> Fingerprint | None:
    try:
        found = history.measurements(run)
    except HistoryError:
        return None  # measured elsewhere, or pruned: the baseline's file outlives it
    return next((ran(recorded)[1] for recorded in found if recorded.case == case), None)
