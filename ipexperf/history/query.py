"""Queries of a history. Results are ordered by time, never by row id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, RowMapping, select

from ipexperf.errors import HistoryError
from ipexperf.history import (
    bisections,
    board,
    database,
    experiments,
    rounds,
    rows,
    selectors,
    statements,
)
from ipexperf.history.records import LaunchRecord, Recorded, RunDetail, RunRecord, Summary
from ipexperf.history.rows import case_of
from ipexperf.history.schema import case, environment, launch, lock, measurement, policy, run, samples, series, verdict
from ipexperf.history.values import evidence_of, unpack, utc
from ipexperf.proof import structure
from ipexperf.ratio import of_numbers
from ipexperf.result import METRICS, PRIMARY, Metric
from ipexperf.verdict import Level, SpeedVerdict, Structure, Verdict

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pandas as pd
    from sqlalchemy import Row

    from ipexperf.history.board import Board
    from ipexperf.history.records import Wanted
    from ipexperf.history.rounds import Paired
    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.bisection import BisectionRecord
    from ipexperf.proof.structure import Fingerprint
    from ipexperf.result import RoundRecord


class Queries:
    """The reading half of History. A run is selected by uid, `last~3`, date, branch or commit."""

    _engine: Engine
    _name: str

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a read transaction, for the modules of this package."""
        return database.reading(self._engine, self._name)

    def runs(self, limit: int | None = 20) -> list[RunRecord]:
        """Return the newest runs, newest first."""
        with self.reading() as connection:
            return _run_records(connection, connection.execute(statements.runs().limit(limit)).mappings().all())

    def find_run(self, selector: str) -> RunRecord:
        """Return the one run that a selector names."""
        with self.reading() as connection:
            return _run_records(connection, [_run_row(connection, selector)])[0]

    def show(self, selector: str) -> RunDetail:
        """Return a run with its environment, every case of it and its rounds."""
        with self.reading() as connection:
            row = _run_row(connection, selector)
            document = _environment_document(row["doc"], row["meta"])
            rounds_of_run = rounds.of_run(connection, row["id"])
            run_record, cases = _run_records(connection, [row])[0], _recorded(connection, row)
            searches = bisections.of_cases(
                bisections.every(connection), [recorded.case for recorded in cases], run_record.machine_key
            )
            return RunDetail(run_record, document, tuple(cases), rounds_of_run, tuple(searches))

    def bisections(self) -> list[BisectionRecord]:
        """Return what all searches for culprits found, oldest first."""
        with self.reading() as connection:
            return bisections.every(connection)

    def measurements(self, selector: str) -> list[Recorded]:
        """Return every case of a run with the values of its launches, from which baselines are accepted."""
        with self.reading() as connection:
            return _recorded(connection, _run_row(connection, selector))

    def cases(self, selectors: Sequence[str]) -> list[Recorded]:
        """Return every case of several runs. A run that is named twice is returned once."""
        uids = dict.fromkeys(self.find_run(selector).uid for selector in selectors)
        return [recorded for uid in uids for recorded in self.measurements(uid)]

    def trend(
        self,
        metric: str | None = PRIMARY,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
        **filters: Wanted,
    ) -> pd.DataFrame:
        """Return the points of every matching series as rows, oldest first. `limit` keeps the newest runs of each.

        A filter is one value or several: an axis, `test`, `machine` or `branch`. `since` and `until` are dates, moments
        or runs.
        """
        from ipexperf.history import points  # pandas is slow to import, and a run that is recorded needs none

        if metric is not None:
            known_metric(metric)
        with self.reading() as connection:
            span = selectors.between(connection, since, until)
            query = statements.trend(metric=metric, limit=limit, since=span["since"], before=span["before"], **filters)
            return points.read(connection, query)

    def experiments(self, case_uids: Collection[str]) -> dict[tuple[str, str, str], str]:
        """Return why runs of these cases were experiments, by uid of the case, machine and uid of the run."""
        with self.reading() as connection:
            return experiments.read(connection, case_uids)

    def work(self, case_uid: str, since: str) -> dict[str, int]:
        """Return the floating point operations of a case's step in each run since a moment that has counted them."""
        with self.reading() as connection:
            rows = connection.execute(statements.work(case_uid, since)).all()
            return {uid: int(text) for uid, text in rows}

    def accepted_fingerprint(self, baseline: CaseBaseline) -> Fingerprint | None:
        """Return the fingerprint behind the digest of a baseline, if this history has a session with it."""
        for session in sorted(baseline.sessions, key=lambda session: session.started_at, reverse=True):
            try:
                cases = self.measurements(session.run)
            except HistoryError:
                continue  # measured elsewhere, or pruned: the baseline file outlives it
            accepted = next((recorded.fingerprint for recorded in cases if recorded.case == baseline.case), None)
            if accepted is not None and baseline.fingerprint in (None, structure.name(accepted)):
                return accepted
        return None

    def environment(self, run_uid: str, case_uid: str) -> dict[str, Any]:
        """Return the environment of a case in a run: that of its first launch, else the run's."""
        with self.reading() as connection:
            row = _run_row(connection, run_uid)
            query = (
                select(environment.c.doc)
                .join(launch, launch.c.environment_id == environment.c.id)
                .join(case, case.c.id == launch.c.case_id)
                .where(launch.c.run_id == row["id"], case.c.uid == case_uid)
                .order_by(launch.c.launch)
            )
            stored = connection.execute(query.limit(1)).scalar_one_or_none()
            return _environment_document(row["doc"] if stored is None else stored, row["meta"])

    def lock(self, digest: str) -> str | None:
        """Return the text of a lock, or None if this history does not have it."""
        with self.reading() as connection:
            return connection.execute(select(lock.c.text).where(lock.c.uid == digest)).scalar_one_or_none()

    def span(self, since: str | None, until: str | None) -> dict[str, str | None]:
        """Return the first moment of a range of dates, moments or runs, and the first moment after it, in UTC."""
        with self.reading() as connection:
            return selectors.between(connection, since, until)

    def values(self, axis: str) -> tuple[str, ...]:
        """The values of one axis that the cases of this history have."""
        column = case.c[axis]
        values = select(column).where(column.is_not(None)).distinct().order_by(column)
        with self.reading() as connection:
            return tuple(connection.execute(values).scalars())

    def check_begun(self) -> None:
        """Raise HistoryError if the history has no runs."""
        with self.reading() as connection:
            selectors.check_begun(connection)

    def samples(self, selector: str, case_uid: str, metric: str = PRIMARY) -> dict[int, tuple[float, ...]]:
        """Return the samples of one case in one run, by launch that counts: `step_time`, `cpu_time` or `run_delay`."""
        with self.reading() as connection:
            query = (
                statements.samples_that_count()
                .join(case, case.c.id == series.c.case_id)
                .where(case.c.uid == case_uid, series.c.metric == metric)
                .where(samples.c.run_id == _run_row(connection, selector)["id"])
            )
            return {row.launch: unpack(row.data) for row in connection.execute(query)}

    def rounds_of_machine(
        self, machine_key: str, limit: int = rounds.RUNS, *, before: str | None = None
    ) -> tuple[RoundRecord, ...]:
        """Return the rounds of a machine's newest runs that have rounds, oldest first."""
        moment = utc(before) if before else None
        with self.reading() as connection:
            return rounds.of_machine(connection, machine_key, limit, moment)

    def paired(self, cases: Iterable[Recorded]) -> dict[tuple[str, str], Paired]:
        """Return the rounds of the runs of these cases and their usual spread, by run and machine."""
        wanted = dict.fromkeys((recorded.run_uid, recorded.machine_key) for recorded in cases)
        with self.reading() as connection:
            return {
                (uid, machine): pair
                for uid, machine in wanted
                if (pair := rounds.read_paired(connection, uid, machine)) is not None
            }

    def board(self, metrics: Sequence[str], limit: int) -> Board:
        """Return all cases of the newest runs, with these metrics through time."""
        with self.reading() as connection:
            return board.read(connection, metrics, limit)


def known_metric(name: str) -> Metric:
    """Look up a metric by name. Raise HistoryError with the valid names if there is none."""
    if name not in METRICS:
        raise HistoryError(f"there is no metric {name!r}; it must be one of {', '.join(METRICS)}.")
    return METRICS[name]


def _run_row(connection: Connection, selector: str) -> RowMapping:
    uid = selectors.resolve(connection, selector)
    return connection.execute(statements.runs().add_columns(environment.c.doc).where(run.c.uid == uid)).mappings().one()


def _run_records(connection: Connection, rows: Sequence[RowMapping]) -> list[RunRecord]:
    counts: dict[int, dict[str, int]] = {row["id"]: {} for row in rows}
    for run_id, outcome, count in connection.execute(statements.outcomes(list(counts))):
        counts[run_id][outcome] = count
    return [RunRecord.of(row, counts[row["id"]]) for row in rows]


def _environment_document(stored: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """Add the commit to an environment. It is stored with the run, so that commits do not make new environments."""
    return {**stored, "git": meta["git"]} if "git" in meta else dict(stored)


def _recorded(connection: Connection, row: RowMapping) -> list[Recorded]:
    """Assemble the cases of a run from metrics, launches and verdicts, ordered by name."""
    facts = (
        select(case, series.c.machine_key, series.c.metric, series.c.unit, series.c.higher_is_better, measurement)
        .select_from(measurement)
        .join(series, series.c.id == measurement.c.series_id)
        .join(case, case.c.id == series.c.case_id)
        .where(measurement.c.run_id == row["id"])
    )
    metrics: dict[int, dict[str, Summary]] = {}
    cases: dict[int, RowMapping] = {}
    for fact in connection.execute(facts).mappings():
        cases[fact["id"]] = fact
        summary = Summary(**{name: fact[name] for name in Summary.__dataclass_fields__})
        metrics.setdefault(fact["id"], {})[fact["metric"]] = summary
    launches = _launches(connection, row["id"])
    verdicts, tested = _verdicts(connection, row["id"])
    answer = []
    for case_id, fact in cases.items():
        case_launches = launches.get(case_id, [])
        judged = verdicts.get(case_id)
        values = _values([record for record, _ in case_launches])
        needed = {PRIMARY, *values}  # a damaged history may lack their rows
        answer.append(
            Recorded(
                run_uid=row["uid"],
                case=case_of(fact),
                outcome=judged.outcome if judged else fact["outcome"],
                verdict=judged,
                values=values,
                metrics={
                    name: metrics[case_id][name] for name in METRICS if name in metrics[case_id] or name in needed
                },
                launches=tuple(record for record, _ in case_launches),
                environment=_environment_document(case_launches[0][1] if case_launches else row["doc"], row["meta"]),
                machine_key=fact["machine_key"],
                started_at=case_launches[0][0].document["started_at"] if case_launches else row["started_at"],
                commit=row["commit"],
                tested=tested.get(case_id),
            )
        )
    return sorted(answer, key=lambda recorded: (recorded.case.id, recorded.case.uid))


def _launches(connection: Connection, run_id: int) -> dict[int, list[tuple[LaunchRecord, dict[str, Any]]]]:
    """Return the launches of every case of a run, each with its environment."""
    query = (
        select(launch, environment.c.doc.label("environment"))
        .join(environment, environment.c.id == launch.c.environment_id)
        .where(launch.c.run_id == run_id)
        .order_by(launch.c.case_id, launch.c.launch)
    )
    by_measurement: dict[int, list[tuple[LaunchRecord, dict[str, Any]]]] = {}
    for row in connection.execute(query):
        record = LaunchRecord(row.launch, row.outcome, row.reason, row.doc, row.log)
        by_measurement.setdefault(row.case_id, []).append((record, row.environment))
    return by_measurement


def _values(launches: list[LaunchRecord]) -> dict[str, tuple[float, ...]]:
    good = [record.document["metrics"] for record in launches if record.outcome == "ok"]
    values = {name: tuple(metrics[name] for metrics in good if metrics.get(name) is not None) for name in METRICS}
    return {name: numbers for name, numbers in values.items() if numbers}


def _verdicts(connection: Connection, run_id: int) -> tuple[dict[int, Verdict], dict[int, str]]:
    """Return the newest verdict of every case, and the outcome that decided its test."""
    query = (
        select(verdict, series.c.case_id, series.c.metric, policy.c.doc, policy.c.uid)
        .join(series, series.c.id == verdict.c.series_id)
        .join(policy, policy.c.id == verdict.c.policy_id)
        .where(verdict.c.run_id == run_id)
        .order_by(verdict.c.judged_at, verdict.c.policy_id)
    )
    records = connection.execute(query).all()
    newest = {(row.case_id, row.metric): row for row in records}
    others: dict[int, list[Verdict]] = {}
    for (case_id, metric), row in newest.items():
        if metric != PRIMARY:
            others.setdefault(case_id, []).append(_verdict(row))
    of_speed = {case_id: row for (case_id, metric), row in newest.items() if metric == PRIMARY}
    # `platform_shift` is set when the run is judged as a whole, after all tests have ended.
    tested = {row.case_id: row.outcome for row in records if row.metric == PRIMARY and row.outcome != "platform_shift"}
    return {case_id: _verdict(row, others.get(case_id, ())) for case_id, row in of_speed.items()}, tested


def _verdict(row: Row[Any], others: Sequence[Verdict] = ()) -> Verdict:
    speed, level, bounds = (row.reason.get(name) for name in ("speed", "level", "bounds"))
    return Verdict(
        outcome=row.outcome,
        reason=row.reason["text"],
        metric=row.metric,
        ratio=of_numbers({"ratio": row.ratio, **row.reason}),
        p_value=row.p_value,
        mde=row.mde,
        policy=rows.policy_label(row),
        evidence=evidence_of(row.reason["baseline"]),
        structure=_structure(row.reason.get("structure")),
        others=tuple(sorted(others, key=lambda other: list(METRICS).index(other.metric))),
        contended=bool(row.reason.get("contended")),
        host_changed=bool(row.reason.get("host_changed")),
        speed=SpeedVerdict(**speed) if speed else None,
        level=Level(**level) if level else None,
        bounds=tuple(bounds) if bounds else None,
    )


def _structure(row: dict[str, Any] | None) -> Structure | None:
    """Return the comparison of fingerprints in a verdict. Verdicts of older versions have none."""
    if not row:
        return None
    lists = {name: tuple(row.get(name, ())) for name in ("changes", "losses")}
    return Structure(**{**row, **lists})
