"""A moving window over the last runs of a branch, as a baseline beside the accepted one."""

from __future__ import annotations

import math
import statistics
from itertools import islice
from typing import TYPE_CHECKING

from ipexperf.history.recorded_fingerprints import fingerprint_of
from ipexperf.history.values import series_uid, utc
from ipexperf.judge import structure, yardstick
from ipexperf.judge.baseline import CaseBaseline, Session
from ipexperf.judge.environment import incomparable
from ipexperf.outcomes import has_numbers
from ipexperf.result import METRICS, accuracies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ipexperf.case import Case
    from ipexperf.history.records import Recorded
    from ipexperf.history.store import History

LAUNCHES = 2
"""Sessions with fewer launches have no spread and are left out."""


class Windows:
    """Windows for the cases of a history. Each run is read once."""

    def __init__(self, history: History, runs: int) -> None:
        self._history = history
        self._runs = runs
        self._read: dict[str, list[Recorded]] = {}
        self._tried: dict[str, Mapping[tuple[str, str, str], str]] = {}
        """Why runs of a case were experiments, by its uid."""

    def of(self, case: Case, environment: Mapping[str, Any], before: str | None = None) -> CaseBaseline | None:
        """Return the last runs of this case on the environment's branch and machine, or None if there are none."""
        metric, branch = yardstick.metric(environment), _branch(environment)
        # Sessions with other threads or another yardstick are not comparable. If there are only such, keep the newest:
        # the judge will report it as not comparable.
        alike = list(islice(self._good(case, environment, before, alike=True), self._runs))
        if alike:
            return _baseline(case, alike[::-1], metric, branch)
        newest = next(self._good(case, environment, before, alike=False), None)
        return _baseline(case, [newest], None, branch) if newest else None

    def _good(
        self, case: Case, environment: Mapping[str, Any], before: str | None, *, alike: bool
    ) -> Iterator[Recorded]:
        """Yield the last usable sessions, newest first. Runs that are left out are not read.

        A run that was resumed has copies of what the run that was cut off had measured: each is one session, and none
        if it is what began at `before`.
        """
        metric = yardstick.metric(environment)
        seen: set[tuple[object, ...]] = set()
        own = utc(before) if before else None
        uid = series_uid(case.uid, environment["machine_key"], metric)
        tried = self._experiments(case)
        for run in self._history.past(uid, branch=_branch(environment), before=before, launches=LAUNCHES):
            if run.spoilt or (alike and incomparable(run.environment, environment)):
                continue
            if (case.uid, environment["machine_key"], run.uid) in tried:
                continue
            recorded = self._recorded(run.uid, case)
            if recorded is None or not _sound(recorded, metric) or recorded.started_at == own:
                continue
            content = recorded.started_at, recorded.values[metric]
            if content not in seen:
                seen.add(content)
                yield recorded

    def _experiments(self, case: Case) -> Mapping[tuple[str, str, str], str]:
        if case.uid not in self._tried:
            self._tried[case.uid] = self._history.experiments([case.uid])
        return self._tried[case.uid]

    def _recorded(self, uid: str, case: Case) -> Recorded | None:
        if uid not in self._read:
            self._read[uid] = self._history.measurements(uid)
        return next((entry for entry in self._read[uid] if entry.case == case), None)


def _branch(environment: Mapping[str, Any]) -> str | None:
    branch: str | None = (environment.get("git") or {}).get("branch")
    return branch


def _sound(recorded: Recorded, metric: str) -> bool:
    values = recorded.values.get(metric, ())
    good = has_numbers(recorded.outcome) and all(0 < value < math.inf for value in values)
    return good and len(values) >= LAUNCHES


def _baseline(case: Case, recorded: Sequence[Recorded], metric: str | None, branch: str | None) -> CaseBaseline:
    newest = recorded[-1]
    state, fingerprint = fingerprint_of(newest)
    medians = [_of_run(entry) for entry in recorded]
    return CaseBaseline(
        case=case,
        sessions=tuple(_session(entry, metric or yardstick.metric(entry.environment)) for entry in recorded),
        accuracy={name: statistics.median(x[name] for x in medians if name in x) for name in _measured(medians)},
        reason=f"the last {len(recorded)} runs of {branch or 'all branches'}",
        accepted_by="the history",
        accepted_at=newest.started_at,
        expires=None,
        environment=newest.environment,
        fingerprint=structure.name(fingerprint) if state.outcome == "same" else None,
    )


def _session(recorded: Recorded, metric: str) -> Session:
    return Session(
        recorded.run_uid, recorded.started_at, recorded.commit or "", recorded.values[metric], _of_run(recorded)
    )


def _of_run(recorded: Recorded) -> dict[str, float]:
    return {name: METRICS[name].of_launches(values) for name, values in recorded.values.items() if values}


def _measured(medians: Sequence[Mapping[str, float]]) -> list[str]:
    return [name for name in accuracies() if any(name in of_run for of_run in medians)]
