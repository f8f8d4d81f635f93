"""Fill a history with made-up measurements and time its queries.

The rows are like those of nightly runs: many runs of many cases, each with the same metrics. Samples, launches and
logs are left out because the timed queries do not read them, except `show`, which finds none. Appended runs have all
of them.

With `--into` the same rows are written to an empty database of a PostgreSQL server, which is queried instead.
"""

import argparse
import itertools
import math
import random
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from ipexperf.case import NetworkCase
from ipexperf.errors import HistoryError
from ipexperf.history import History, addresses, medians, schema
from ipexperf.history.changed import changes
from ipexperf.history.comparison import compare
from ipexperf.history.rows import case_row, environment_row, series_row
from ipexperf.history.values import canonical, content_uid, now
from ipexperf.result import Launch, Measurement, RoundRecord, Sample, SeatRecord
from ipexperf.verdict import Verdict

KEY = "made-up-2c-8g"
MEASURED = ("step_time", "throughput", "cpu_time", "peak_memory")
AXES = {
    "device": ("cpu",),
    "dtype": ("fp32", "bf16"),
    "mode": ("train", "infer", "infer_jit", "infer_compile", "realtime"),
    "stack": ("ipex", "stock"),
}
FIRST = datetime(2020, 1, 1, 2, tzinfo=timezone.utc)


def cases(models: int) -> Iterator[NetworkCase]:
    """Return every combination of the axes for this many models."""
    for number, axes in itertools.product(range(models), itertools.product(*AXES.values())):
        yield NetworkCase(f"model{number:04d}", **dict(zip(AXES, axes, strict=True)), batch=32, size=224, data="none")


def rows_of(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({names}) VALUES ({", ".join("?" * len(columns))})'  # noqa: S608 - names of the schema


def fill(path: Path, runs: int, models: int, seed: int) -> int:
    """Write this many runs of every case, and return the number of measurements."""
    History.open(path).close()
    chance = random.Random(seed)  # noqa: S311 - made-up numbers, no secret
    with closing(sqlite3.connect(path)) as connection, connection:
        # A made-up history need not survive a crash.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -400000")
        environment = environment_row({"machine_key": KEY, "software": {"torch": "2.8.0", "ipex": "2.8.0"}})
        values = (environment["uid"], environment["machine_key"], canonical(environment["doc"]))
        connection.execute(rows_of("environment", ("uid", "machine_key", "doc")), values)
        policy = {"policy": "made up"}
        connection.execute(rows_of("policy", ("uid", "doc")), (content_uid(policy), canonical(policy)))
        levels = list(_series(connection, models, chance))
        for number in range(runs):
            if number % 200 == 0:
                connection.commit()
            _run(connection, number)
            connection.executemany(
                rows_of(
                    "measurement",
                    ("series_id", "run_id", "n", "median", "mean", "mad", "lo", "hi", "outcome", "reason"),
                ),
                _measurements(number, levels, chance),
            )
            judged = ("series_id", "run_id", "policy_id", "outcome", "ratio", "p_value", "mde", "reason", "judged_at")
            said = canonical({"text": "made up", "lo": None, "hi": None, "baseline": None})
            connection.executemany(
                rows_of("verdict", judged),
                (
                    (one, number + 1, 1, "ok", 1.0, 0.5, 0.05, said, _moment(number))
                    for one, _, primary in levels
                    if primary
                ),
            )
    return runs * len(levels)


def _series(connection: sqlite3.Connection, models: int, chance: random.Random) -> Iterator[tuple[int, float, bool]]:
    """Write the cases and their series. Return id, level, and whether it is judged, of each series."""
    numbers = itertools.count(1)
    for index, case in enumerate(cases(models), 1):
        row = case_row(case, "nightly")
        connection.execute(rows_of("case", tuple(row)), [*list(row.values())[:-1], canonical(row["params"])])
        for metric in MEASURED:
            one = {"case_id": index, **series_row(case, KEY, metric)}
            connection.execute(rows_of("series", tuple(one)), list(one.values()))
            yield next(numbers), math.exp(chance.uniform(-6, 0)), metric == MEASURED[0]


def _run(connection: sqlite3.Connection, number: int) -> None:
    row = {
        "uid": f"00000000-0000-7000-8000-{number:012x}",
        "environment_id": 1,
        "started_at": _moment(number),
        "finished_at": _moment(number),
        "branch": "main" if number % 10 else "topic",
        "commit_sha": f"{number:040x}",
        "torch_version": "2.8.0",
        "ipex_version": "2.8.0",
        "status": "finished",
        "meta": canonical({"suite": "nightly"}),
    }
    connection.execute(rows_of("run", tuple(row)), list(row.values()))


def _measurements(
    number: int, levels: list[tuple[int, float, bool]], chance: random.Random
) -> Iterator[tuple[object, ...]]:
    for series, level, _ in levels:
        median = level * math.exp(chance.gauss(0, 0.02))
        yield (series, number + 1, 3, median, median, 0.0, median * 0.99, median * 1.01, "ok", "")


def _moment(number: int) -> str:
    return (FIRST + timedelta(hours=6 * number)).isoformat(timespec="microseconds")


def questions(history: History) -> dict[str, Callable[[], object]]:
    """Return the queries by name."""
    first = next(cases(1))
    axes = {name: getattr(first, name) for name in ("model", "device", "dtype", "mode", "stack")}
    newest = datetime.fromisoformat(history.find_run("last").started_at)
    every = [recorded.case for recorded in history.measurements("first")]
    month = (newest - timedelta(days=30)).date().isoformat()
    return {
        "newest 20 runs": history.runs,
        "show last": lambda: history.show("last"),
        "compare two runs": lambda: compare(history.show("last~1"), history.show("last")),
        "trend of a case, newest 30": lambda: history.trend(limit=30, **axes),
        "trend of a case, all": lambda: history.trend(**axes),
        "trend of a model, one metric": lambda: history.trend(model=first.model),
        "medians of one series": lambda: read_medians(history, **axes),
        "medians of a model's 20 series": lambda: read_medians(history, model=first.model),
        "changes since a month": lambda: changes(history, ["step_time", "throughput"], since=month),
        f"append a run of {len(every)} cases": lambda: append(history, every),
        "append three rounds of each group": lambda: append_rounds(history, every),
        "rounds of the last run and before": lambda: history.paired(history.measurements("last")),
    }


def read_medians(history: History, **filters: str) -> list[medians.Medians]:
    """Read whole series, as for change points."""
    with history.reading() as connection:
        return medians.read(connection, ["step_time"], past=sys.maxsize, **filters)


def append(history: History, every: list[NetworkCase]) -> None:
    """Append a run case by case, each committed, with three launches of twenty samples."""
    environment = {"machine_key": KEY, "software": {"torch": "2.8.0", "ipex": "2.8.0"}}
    uid = history.start_run(environment, {"suite": "nightly", "started_at": now()})
    for case in every:
        history.record(uid, measured(case, environment), Verdict("ok", "made up", policy="made up"))
    history.finish_run(uid, "finished")


def append_rounds(history: History, every: list[NetworkCase]) -> None:
    """Append three rounds of each group of four cases to the newest run, each committed."""
    uid = history.find_run("last").uid
    groups: dict[tuple[str, str], list[NetworkCase]] = {}
    for case in every:
        groups.setdefault((case.model, case.mode), []).append(case)
    for number, arms in itertools.product(range(3), groups.values()):
        seats = tuple(SeatRecord(case, "case", ((0.01,) * 12,), number) for case in arms)
        name = f"{arms[0].model} {arms[0].mode}"
        history.record_round(uid, RoundRecord(uuid.uuid4().hex, name, number, "together", seats, now(), 9.0, 12))


def measured(case: NetworkCase, environment: dict[str, Any]) -> Measurement:
    numbers = dict.fromkeys(MEASURED, 0.01)
    samples = tuple(Sample(0.01, 0.02, 0.0) for _ in range(20))
    launches = tuple(Launch(index, "ok", samples=samples, metrics=numbers) for index in range(3))
    return Measurement(case, launches, environment, now(), now())


def seconds(ask: Callable[[], object], rounds: int) -> float:
    """Return the median time of a query, without the first run with a cold cache if there are more."""
    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        ask()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:] or times)


def make(path: Path, least: int, models: int) -> None:
    """Fill a history with this many measurements, and print its size."""
    series = len(list(cases(models))) * len(MEASURED)
    # Comparing needs two runs.
    runs = max(2, -(-least // series))
    rows = fill(path, runs, models, seed=1)
    size = path.stat().st_size
    with closing(sqlite3.connect(path)) as connection:
        verdicts = connection.execute("SELECT count(*) FROM verdict").fetchone()[0]
    told = f"{size} bytes with {verdicts} verdicts, {size / (rows + verdicts):.0f} a row"
    print(f"{rows} measurements: {runs} runs of {series} series, {told}", flush=True)


def empty(url: str) -> None:
    """Create the tables of a history on a server. Refuse one with runs."""
    if addresses.file_of(url) is not None:
        raise HistoryError("--into takes the URL of a server; a file is made by --keep")
    with History.open(url) as history:
        if history.runs(1):
            raise HistoryError("there are runs in that database already: made-up numbers never join real ones")


def copy(path: Path, url: str) -> None:
    """Copy the rows of a history into an empty database of a server."""
    server = create_engine(addresses.url_of(url)).raw_connection()
    with closing(sqlite3.connect(path)) as source, closing(server) as connection:
        cursor: Any = connection.cursor()
        for table in schema.metadata.sorted_tables:
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            with cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as rows:
                for row in source.execute(f'SELECT {names} FROM "{table.name}"'):  # noqa: S608 - names of the schema
                    rows.write_row(row)
            if "id" in table.columns:
                # Appended rows must follow these.
                told = f"pg_get_serial_sequence('\"{table.name}\"', 'id'), (SELECT max(id) FROM \"{table.name}\")"  # noqa: S608 - the same
                cursor.execute(f"SELECT setval({told})")
        connection.commit()
        cursor.execute("ANALYZE")
        cursor.execute("SELECT pg_database_size(current_database())")
        size = cursor.fetchone()[0]
        connection.commit()
    print(f"on the server: {size} bytes", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="measurements, at least (default: %(default)s)")
    parser.add_argument("--models", type=int, default=5, help="models, each of 20 cases (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is asked (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the history; it must not exist")
    parser.add_argument("--of", type=Path, metavar="FILE", help="ask a history that an earlier --keep left; it grows")
    parser.add_argument("--into", metavar="URL", help="put it into this empty PostgreSQL database, and ask that")
    told = parser.parse_args()
    if min(told.rows, told.models, told.rounds) < 1:
        parser.error("--rows, --models and --rounds must be at least 1")
    if told.keep is not None and told.keep.exists():
        parser.error(f"{told.keep} exists already")
    with tempfile.TemporaryDirectory() as folder:
        if told.into is not None:
            try:
                empty(told.into)
            except HistoryError as error:
                sys.exit(f"queries.py: {error}")
        path = told.of or told.keep or Path(folder) / "history.db"
        if told.of is None:
            make(path, told.rows, told.models)
        if told.into is not None:
            copy(path, told.into)
        with History.open(told.into or path, create=False) as history:
            for name, ask in questions(history).items():
                print(f"{name:32} {1000 * seconds(ask, told.rounds):10.2f} ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
