"""All cases of the newest runs through time, read in a few queries however many cases there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, case, select

from ipexperf.case import Case
from ipexperf.errors import HistoryError
from ipexperf.history import experiments, statements
from ipexperf.history.records import RunRecord
from ipexperf.history.rows import case_of
from ipexperf.history.schema import baseline, environment, launch, run, verdict
from ipexperf.history.selectors import check_begun
from ipexperf.history.values import evidence_of
from ipexperf.outcomes import OUTCOMES
from ipexperf.result import PRIMARY
from ipexperf.verdict import Evidence


class Spot(NamedTuple):
    """One metric of one case in one run. `run` is an index into `Board.runs`."""

    run: int
    n: int
    median: float | None
    lo: float | None
    hi: float | None
    outcome: str


class Judged(NamedTuple):
    """The newest verdict of a case in a run."""

    outcome: str
    ratio: float | None
    baseline: float | None
    """Step time of the baseline that it was judged against."""
    evidence: Evidence | None
    """What it was compared with, if the outcome says that something moved."""


@dataclass(frozen=True, slots=True)
class AcceptedSession:
    """A session of a case that became a baseline."""

    run: int
    at: str
    by: str
    reason: str
    superseded: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One case on one machine through time, oldest first. `number` is the row id of its case."""

    case: Case
    machine_key: str
    number: int
    spots: dict[str, list[Spot]] = field(default_factory=dict)
    verdicts: dict[int, Judged] = field(default_factory=dict)
    accepted: list[AcceptedSession] = field(default_factory=list)
    environments: dict[int, int] = field(default_factory=dict)
    """The environment of the case in each run, where it is known."""
    experiments: dict[int, str] = field(default_factory=dict)
    """Why its points of these runs are experiments, which are not its state."""

    @property
    def usual(self) -> list[Spot]:
        """Its step times without experiments."""
        return [spot for spot in self.spots[PRIMARY] if spot.run not in self.experiments]


@dataclass(frozen=True, slots=True)
class Board:
    """The newest runs, oldest first, with all their cases and environments."""

    runs: Sequence[RunRecord]
    """Without their outcomes."""
    run_ids: Sequence[int]
    """The row id of each run."""
    of_runs: Sequence[int]
    """The environment of each run."""
    lines: Sequence[Line]
    environments: Mapping[int, Mapping[str, Any]]
    """The documents of all environments, by row id."""
    older: int
    """Number of older runs that were left out."""


def read(connection: Connection, metrics: Sequence[str], limit: int) -> Board:
    """Read the newest runs with these metrics of every case. Raise HistoryError if the history has no runs."""
    check_begun(connection)
    rows = connection.execute(statements.runs().limit(limit)).mappings().all()[::-1]
    if not rows:
        raise HistoryError("the history is damaged: its runs lack their environments.")
    every = connection.execute(select(run.c.id)).all()
    lines, of_series = _lines(connection, metrics)
    places = {row["id"]: place for place, row in enumerate(rows)}
    _add_spots(connection, metrics, of_series, places)
    _add_verdicts(connection, of_series, places)
    _add_acceptances(connection, of_series, places)
    measured = [line for line in lines.values() if line.spots.get(PRIMARY)]
    _add_environments(connection, {(line.number, line.machine_key): line for line in measured}, places)
    of_runs = [row["environment_id"] for row in rows]
    wanted = {*of_runs, *(number for line in measured for number in line.environments.values())}
    documents = {
        row.id: row.doc for row in connection.execute(select(environment.c.id, environment.c.doc)) if row.id in wanted
    }
    runs = [RunRecord.of(row, {}) for row in rows]
    _mark_experiments(measured, runs, documents)
    return Board(runs, list(places), of_runs, measured, documents, len(every) - len(runs))


def _lines(
    connection: Connection, metrics: Sequence[str]
) -> tuple[dict[tuple[int, str], Line], dict[int, tuple[Line, str]]]:
    """Return the lines, and for each series its line and metric."""
    lines: dict[tuple[int, str], Line] = {}
    of_series = {}
    for row in connection.execute(statements.series_of(metric=metrics)).mappings():
        key = (row["id"], row["machine_key"])
        if key not in lines:
            lines[key] = Line(case_of(row), row["machine_key"], row["id"])
        of_series[row["series_id"]] = (lines[key], row["metric"])
    return lines, of_series


def _add_spots(
    connection: Connection,
    metrics: Sequence[str],
    of_series: Mapping[int, tuple[Line, str]],
    places: Mapping[int, int],
) -> None:
    for series_id, run_id, *numbers in connection.execute(statements.facts(*Spot._fields[1:], metric=metrics)):
        if run_id in places:
            line, metric = of_series[series_id]
            line.spots.setdefault(metric, []).append(Spot._make((places[run_id], *numbers)))
    for line, metric in of_series.values():
        line.spots.get(metric, []).sort()


def _add_verdicts(connection: Connection, of_series: Mapping[int, tuple[Line, str]], places: Mapping[int, int]) -> None:
    """Attach the newest verdict of each case and run. This is faster than sorting all verdicts in SQL."""
    facts = (verdict.c[name] for name in ("series_id", "run_id", "judged_at", "policy_id", "outcome", "ratio"))
    against = verdict.c.reason[("baseline", "step_time")].as_float()
    moved = case((verdict.c.outcome.in_([name for name, row in OUTCOMES.items() if row.moved]), verdict.c.reason))
    newest: dict[tuple[int, int], tuple[str, int]] = {}
    for series_id, run_id, judged_at, policy_id, *row, reason in connection.execute(select(*facts, against, moved)):
        if series_id not in of_series or run_id not in places or of_series[series_id][1] != PRIMARY:
            continue  # a case has its verdict in the series of its step time
        before = newest.get((series_id, run_id))
        if before is None or before < (judged_at, policy_id):
            newest[series_id, run_id] = judged_at, policy_id
            evidence = evidence_of(reason["baseline"]) if reason else None
            of_series[series_id][0].verdicts[places[run_id]] = Judged._make((*row, evidence))


def _mark_experiments(
    lines: Sequence[Line], runs: Sequence[RunRecord], documents: Mapping[int, Mapping[str, Any]]
) -> None:
    """Attach which runs of a case were experiments."""
    variables = {number: experiments.variables_of(document) for number, document in documents.items()}
    for line in lines:
        accepted = {session.run for session in line.accepted}
        places = [spot.run for spot in line.spots[PRIMARY]]
        ran = [
            experiments.Ran(
                runs[place].meta.get(experiments.SUBCOMMAND),
                variables[line.environments[place]] if place in line.environments else None,
                place in accepted,
            )
            for place in places
        ]
        line.experiments.update({places[number]: why for number, why in experiments.experiments(ran).items()})


def _add_acceptances(
    connection: Connection, of_series: Mapping[int, tuple[Line, str]], places: Mapping[int, int]
) -> None:
    for row in connection.execute(select(baseline).order_by(baseline.c.accepted_at)):
        if row.series_id in of_series and row.run_id in places:
            acceptance = (row.accepted_at, row.accepted_by, row.reason, row.superseded_by is not None)
            of_series[row.series_id][0].accepted.append(AcceptedSession(places[row.run_id], *acceptance))


def _add_environments(connection: Connection, lines: Mapping[tuple[int, str], Line], places: Mapping[int, int]) -> None:
    """Attach the environment of each case's first launch, which may differ from the run's, for example by placement."""
    query = (
        select(launch.c.run_id, launch.c.case_id, launch.c.environment_id, environment.c.machine_key)
        .join(environment, environment.c.id == launch.c.environment_id)
        .where(launch.c.launch == 0)
    )
    for row in connection.execute(query):
        line = lines.get((row.case_id, row.machine_key))
        if line is not None and row.run_id in places:
            line.environments[places[row.run_id]] = row.environment_id
