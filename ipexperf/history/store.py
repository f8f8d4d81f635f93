"""The history, written case by case. Each case is committed when it ends."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, Row, Table, and_, bindparam, delete, exists, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ipexperf.errors import HistoryError
from ipexperf.history import bisections, database, rounds, rows
from ipexperf.history.query import Queries
from ipexperf.history.schema import (
    baseline,
    bisection,
    case,
    environment,
    launch,
    lock,
    measurement,
    run,
    samples,
    series,
    verdict,
)
from ipexperf.history.schema import policy as policies
from ipexperf.history.values import finite, now, run_uid, series_uid, utc
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from sqlalchemy import Engine
    from typing_extensions import Self

    from ipexperf.history.records import Accepted
    from ipexperf.judge.bisection import BisectionRecord
    from ipexperf.judge.policy import Constants
    from ipexperf.result import Measurement, RoundRecord
    from ipexperf.verdict import Verdict

Status = Literal["running", "finished", "interrupted", "failed"]

MOST_NAMED = 10_000
"""The most rows that a statement names: SQLite takes 32,766."""
# Statements that run for every case are built once: building takes as long as running them.
_RUN = (
    # Without `meta`: that of a run on many hosts has the names of all groups.
    select(*(column for column in run.columns if column.name != "meta"))
    .add_columns(environment.c.machine_key, environment.c.uid.label("environment_uid"))
    .join(environment, environment.c.id == run.c.environment_id)
    .where(run.c.uid == bindparam("uid"))
)
_META = select(run.c.meta).where(run.c.id == bindparam("run_id"))
_NAMED = {
    table: select(table.c.uid, table.c.id).where(table.c.uid.in_(bindparam("uids", expanding=True)))
    for table in (environment, lock, case, series, run, policies, baseline, bisection)
}
_SERIES = (
    select(case.c.id.label("case_id"), series.c.uid, series.c.id, measurement.c.run_id.is_not(None).label("measured"))
    .select_from(case)
    .outerjoin(series, series.c.uid.in_(bindparam("series", expanding=True)))
    .outerjoin(measurement, and_(measurement.c.series_id == series.c.id, measurement.c.run_id == bindparam("run_id")))
    .where(case.c.uid == bindparam("uid"))
)
"""A case with those of its series that are named, and whether a run has measured them. No row: the case is new.

Named, because a case that a thousand hosts measure has ten thousand series.
"""


class History(Queries):
    """A database of runs. Several processes may write to it at once; each case is one transaction."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._suites: dict[str, str] = {}
        """The suite of each run that this process writes, by the uid of the run."""

    @classmethod
    def open(cls, target: str | os.PathLike[str], *, create: bool = True) -> Self:
        """Open a file or SQLAlchemy URL and migrate its schema. Raise HistoryError if the schema is newer."""
        return cls(*database.open_engine(target, create=create))

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start_run(self, environment: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
        """Begin a run and return its uid. `meta` can hold the `suite` and, for an import, `started_at`."""
        uid = run_uid()
        git = environment.get("git") or {}
        document = finite({**meta, "git": git} if git else meta)
        begun = utc(meta["started_at"]) if "started_at" in meta else now()
        values = {"uid": uid, "started_at": begun, "status": "running", "meta": document}
        with self.writing() as connection:
            number = environment_of(connection, environment)
            connection.execute(insert(run).values(environment_id=number, **values, **rows.versions(environment)))
        return uid

    def record(
        self,
        run_uid: str,
        measurement: Measurement,
        verdict: Verdict,
        policy: Constants | None = None,
        *,
        again: bool = False,
    ) -> None:
        """Commit one case with its launches, samples and verdict, completely or not at all.

        The constants of the policy are stored with the verdict. A run records a case once; `again` replaces what it
        recorded before.
        """
        with self.writing() as connection:
            row = self._run(connection, run_uid)
            if again:
                withdraw(connection, row.id, measurement.case.uid)
            _record(connection, row, self._suite(connection, row), measurement, verdict, policy)

    def record_round(self, run_uid: str, record: RoundRecord) -> None:
        """Commit one round with the ratio of each two arms. It stays if one of its cases is recorded again."""
        with self.writing() as connection:
            row = self._run(connection, run_uid)
            suite = self._suite(connection, row)
            seats = {seat.case: rows.case_row(seat.case, suite) for seat in record.seats}
            ids = identify_all(connection, case, seats.values())
            cases = {seat: ids[document["uid"]] for seat, document in seats.items()}
            rounds.write(connection, row.id, row.environment_id, record, cases)

    def writing(self) -> AbstractContextManager[Connection]:
        """Open a transaction that writes, for the modules of this package."""
        return database.writing(self._engine, self._name)

    def record_bisection(self, search: BisectionRecord, suite: str) -> None:
        """Commit the end of a search. Repeating it from recorded answers changes nothing."""
        with self.writing() as connection:
            for lock_row in bisections.lock_rows(search):
                identify(connection, lock, lock_row)
            case_id = identify(connection, case, rows.case_row(search.case, suite))
            identify(connection, bisection, {"case_id": case_id, **bisections.row(search)})

    def settle(
        self, run_uid: str, settled: Mapping[str, Any], verdicts: Mapping[str, Verdict], policy: Constants
    ) -> None:
        """Commit the verdict on a run as a whole: in the run's `meta`, and one more verdict for each given case uid."""
        document = finite(settled)
        with self.writing() as connection:
            row = self._run(connection, run_uid)
            meta = {**_meta(connection, row.id), "settled": document}
            connection.execute(update(run).where(run.c.id == row.id).values(meta=meta))
            query = (
                select(case.c.uid, series.c.metric, measurement.c.series_id)
                .join(series, series.c.id == measurement.c.series_id)
                .join(case, case.c.id == series.c.case_id)
                .where(measurement.c.run_id == row.id)
                .where(series.c.metric.in_([judged.metric for judged in verdicts.values()]))
            )
            ids = {(item.uid, item.metric): item.series_id for item in connection.execute(query)} if verdicts else {}
            _judge(connection, row.id, [(ids[uid, item.metric], item) for uid, item in verdicts.items()], policy)

    @contextmanager
    def accepting(self, sessions: Iterable[Accepted]) -> Iterator[None]:
        """Write accepted baselines, and commit them at the end of the block. Roll back on an exception."""
        with self.writing() as connection:
            for accepted in sessions:
                _accept(connection, accepted, self._run(connection, accepted.run_uid).id)
            yield

    def finish_run(self, run_uid: str, status: Status) -> None:
        """Record how a run ended."""
        with self.writing() as connection:
            row = self._run(connection, run_uid)
            connection.execute(update(run).where(run.c.id == row.id).values(status=status, finished_at=now()))

    def _run(self, connection: Connection, uid: str) -> Row[Any]:
        row = connection.execute(_RUN, {"uid": uid}).one_or_none()
        if row is None:
            raise HistoryError(f"the {self._name} has no run {uid!r}; start it before recording into it.")
        return row

    def _suite(self, connection: Connection, row: Row[Any]) -> str:
        """The suite of a run. It never changes."""
        if row.uid not in self._suites:
            self._suites[row.uid] = str(_meta(connection, row.id).get("suite", ""))
        return self._suites[row.uid]


def _meta(connection: Connection, run_id: int) -> dict[str, Any]:
    meta: dict[str, Any] = connection.execute(_META, {"run_id": run_id}).scalar_one()
    return meta


def _record(
    connection: Connection,
    run_row: Row[Any],
    suite: str,
    measured: Measurement,
    judged: Verdict,
    policy: Constants | None,
) -> None:
    """Write one case of one run."""
    environment_id = _learned_environment(connection, run_row, measured)
    numbers = dict(rows.metric_rows(measured))
    blobs = [(launched.index, *blob) for launched in measured.launches for blob in rows.sample_blobs(launched)]
    metrics = dict.fromkeys((*numbers, *(metric for _, metric, _ in blobs), judged.metric))
    case_id, ids = _series_ids(connection, run_row, suite, measured, metrics)
    key = {"case_id": case_id, "environment_id": environment_id}
    for table, values in (
        (measurement, [{"series_id": ids[metric], **value} for metric, value in numbers.items()]),
        (launch, [{**key, **rows.launch_row(measured, launched)} for launched in measured.launches]),
        (samples, [{"series_id": ids[metric], "launch": n, "data": data} for n, metric, data in blobs]),
    ):
        if values:
            connection.execute(insert(table), [{"run_id": run_row.id, **row} for row in values])
    _judge(
        connection, run_row.id, [(ids[of_metric.metric], of_metric) for of_metric in (judged, *judged.others)], policy
    )


def _learned_environment(connection: Connection, run_row: Row[Any], measured: Measurement) -> int:
    """Return the environment of a case. The first one also becomes that of the run, which only a worker knows."""
    document = measured.environment
    if "machine_key" not in document or rows.environment_row(document)["uid"] == run_row.environment_uid:
        return int(run_row.environment_id)
    environment_id = environment_of(connection, document)
    versions: dict[str, Any] = rows.versions(document)
    first = not connection.execute(select(exists().where(measurement.c.run_id == run_row.id))).scalar_one()
    if run_row.torch_version is None or (first and versions["torch_version"] is not None):
        versions["branch"] = run_row.branch or versions["branch"]
        versions["commit_sha"] = run_row.commit_sha or versions["commit_sha"]
        git, meta = document.get("git"), _meta(connection, run_row.id)
        if git and "git" not in meta:
            versions["meta"] = {**meta, "git": finite(git)}
        changed = update(run).where(run.c.id == run_row.id)
        connection.execute(changed.values(environment_id=environment_id, **versions))
    return environment_id


def _series_ids(
    connection: Connection, run_row: Row[Any], suite: str, measured: Measurement, metrics: Iterable[str]
) -> tuple[int, dict[str, int]]:
    """Return the id of the case and that of its series for each metric. Insert what is new.

    Facts are append-only: a second measurement of a case needs a second run.
    """
    measured_case = measured.case
    # A worker that died early has no environment: use the run's.
    machine_key = measured.environment.get("machine_key", run_row.machine_key)
    values = [rows.series_row(measured_case, machine_key, metric) for metric in metrics]
    # The run may have recorded the case on its own machine, if the worker died before it said where it ran.
    names = {row["uid"] for row in values} | {series_uid(measured_case.uid, run_row.machine_key, PRIMARY)}
    named = {"uid": measured_case.uid, "series": sorted(names), "run_id": run_row.id}
    existing = connection.execute(_SERIES, named).all()
    if any(row.measured for row in existing):
        raise HistoryError(f"the run {run_row.uid} has {measured_case.id} already; record it in a run of its own.")
    case_id = existing[0].case_id if existing else identify(connection, case, rows.case_row(measured_case, suite))
    ids = {row.uid: row.id for row in existing if row.uid is not None}
    if new := [{"case_id": case_id, **row} for row in values if row["uid"] not in ids]:
        ids |= identify_all(connection, series, new)
    return case_id, {row["metric"]: ids[row["uid"]] for row in values}


def withdraw(connection: Connection, run_id: int, case_uid: str) -> None:
    """Delete what an unfinished run recorded of a case."""
    of_case = select(case.c.id).where(case.c.uid == case_uid)
    its_series = select(series.c.id).where(series.c.case_id.in_(of_case))
    for table in (verdict, samples, measurement):
        connection.execute(delete(table).where(table.c.run_id == run_id, table.c.series_id.in_(its_series)))
    connection.execute(delete(launch).where(launch.c.run_id == run_id, launch.c.case_id.in_(of_case)))


def _judge(
    connection: Connection, run_id: int, verdicts: Sequence[tuple[int, Verdict]], policy: Constants | None
) -> None:
    """Write verdicts of a run, each with the id of its series."""
    if not verdicts:
        return
    judged_by = [rows.policy_row(judged, policy) for _, judged in verdicts]
    ids = identify_all(connection, policies, judged_by)
    values = [
        {"series_id": series_id, "run_id": run_id, "policy_id": ids[row["uid"]], **rows.verdict_row(judged)}
        for (series_id, judged), row in zip(verdicts, judged_by, strict=True)
    ]
    connection.execute(insert(verdict), values)


def _accept(connection: Connection, accepted: Accepted, run_id: int) -> None:
    """Write one session, and mark those that are no longer in its baseline as superseded."""
    uids = [series_uid(version.uid, accepted.machine_key, PRIMARY) for version in (accepted.case, accepted.former)]
    query = select(series.c.uid, series.c.id).where(series.c.uid.in_(uids))
    ids = {row.uid: row.id for row in connection.execute(query)}
    if uids[0] not in ids:
        raise HistoryError(f"the history is damaged: {accepted.case.id} does not have the uid of its content.")
    values = {**rows.baseline_row(accepted), "series_id": ids[uids[0]], "run_id": run_id}
    mine = identify(connection, baseline, values)
    others = (baseline.c.series_id.in_(list(ids.values())), baseline.c.id != mine, baseline.c.superseded_by.is_(None))
    query_of_runs = select(run.c.id).where(run.c.uid.in_(accepted.current_runs - {accepted.run_uid}))
    gone = update(baseline).where(*others, baseline.c.run_id.not_in(query_of_runs))
    connection.execute(gone.values(superseded_by=mine))
    # The same acceptance twice within a second: it is valid again.
    connection.execute(update(baseline).where(baseline.c.id == mine).values(superseded_by=None))


def environment_of(connection: Connection, document: Mapping[str, Any]) -> int:
    """Return the id of an environment. Insert it with its lock if it is new."""
    if locked := rows.lock_row(document):
        identify(connection, lock, locked)
    return identify(connection, environment, rows.environment_row(document))


def identify(connection: Connection, table: Table, values: Mapping[str, Any]) -> int:
    """Return the id of a row that is identified by its content. Insert it if it is new."""
    return identify_all(connection, table, [values])[values["uid"]]


def identify_all(connection: Connection, table: Table, documents: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the ids of such rows by their uids. Insert those that are new,"""
    wanted = {values["uid"]: values for values in documents}
    ids = _named(connection, table, wanted)
    if new := [values for uid, values in wanted.items() if uid not in ids]:
        connection.execute(insert_missing(connection, table), new)
        ids = _named(connection, table, wanted)
    return ids


def _named(connection: Connection, table: Table, uids: Iterable[str]) -> dict[str, int]:
    every = list(uids)
    ids = {}
    for first in range(0, len(every), MOST_NAMED):
        named = {"uids": every[first : first + MOST_NAMED]}
        ids.update({row.uid: row.id for row in connection.execute(_NAMED[table], named)})
    return ids


def insert_missing(connection: Connection, table: Table) -> Any:
    """The statement that inserts rows, but those that are there."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()
