"""Many writers on one PostgreSQL server over TCP: is a case lost or there twice, and how long does each wait?

Every writer is a process with a run of its own, which it records case by case as fast as it can: each case is one
transaction, with three launches of twelve samples. The server is private to the benchmark and keeps what it commits:
nothing is turned off. The first night adds every case to the history, the following ones find them there.

`--delay` puts a proxy between the writers and the server that passes everything on so much later, each way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "history"))

import postgres  # noqa: E402 - the server of the tests

from ipexperf.case import Case  # noqa: E402 - behind the path
from ipexperf.history import History  # noqa: E402
from ipexperf.history.values import now  # noqa: E402
from ipexperf.result import Launch, Measurement, Sample, Verdict  # noqa: E402

METRICS = ("step_time", "throughput", "cpu_time", "peak_memory", "held_memory", "prepare_time", "import_time")
LAUNCHES, SAMPLES = 3, 12
PIECE = 65536
SPARE = 10
"""Connections of the server beside those of the writers."""


@dataclass(frozen=True, slots=True)
class Night:
    """What one night's writers saw."""

    night: int
    writers: int
    cases: int
    lost: int
    twice: int
    failed: int
    """Appends that ended in an error."""
    seconds: float
    appends_per_second: float
    p50: float
    p99: float
    most: float
    writer_cpu_ms: float
    """CPU time of an append in its writer."""
    server_cpu_ms: float
    """The same in the server."""


def measured(case: Case, environment: dict[str, Any]) -> Measurement:
    samples = tuple(Sample(0.01 + 0.0001 * number, 0.02, 0.0) for number in range(SAMPLES))
    numbers = dict.fromkeys(METRICS, 0.01)
    launches = tuple(Launch(index, "ok", samples=samples, metrics=numbers) for index in range(LAUNCHES))
    return Measurement(case, launches, environment, now(), now())


def cases(number: int) -> list[Case]:
    """So many cases, the same for every writer."""
    return [Case(f"model{index:05d}", "cpu", "fp32", "infer", "stock", 1, 224) for index in range(number)]


def write(target: str, writer: int, hosts: int, every: int, results: Any, barrier: Any) -> None:
    """Record one run. Put its name, the time of each append, what failed, and the CPU seconds into the results."""
    key = f"made-up-{writer % hosts}"
    environment = {"machine_key": key, "software": {"torch": "2.8.0", "ipex": "2.8.0"}}
    verdict = Verdict("ok", "made up", policy="made up")
    times, errors = [], []
    with History.open(target) as history:
        barrier.wait()
        uid, cpu = history.start_run(environment, {"suite": "nightly", "writer": writer}), time.process_time()
        for case in cases(every):
            begin = time.perf_counter()
            try:
                history.record(uid, measured(case, environment), verdict)
            except Exception as error:  # noqa: BLE001 - whatever it is, it counts
                errors.append(str(error))
            times.append(time.perf_counter() - begin)
        cpu = time.process_time() - cpu
        history.finish_run(uid, "finished")
    results.put((uid, times, errors, cpu))


def cpu_of(pid: int) -> float:
    """The CPU seconds of a process and of those that it started, also of those that ended."""
    process = Path(f"/proc/{pid}")
    try:
        children = (process / "task" / str(pid) / "children").read_text().split()
        numbers = (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended: its seconds are among its parent's
        return 0.0
    own = sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_of, map(int, children)))


def night(number: int, direct: str, target: str, writers: int, hosts: int, every: int, server: int) -> Night:
    """Let all of them write at once, and count what is there. `server` is the process of the server."""
    fork = multiprocessing.get_context("fork")
    results, barrier = fork.Queue(), fork.Barrier(writers + 1)
    arguments = (hosts, every, results, barrier)
    processes = [fork.Process(target=write, args=(target, writer, *arguments)) for writer in range(writers)]
    for process in processes:
        process.start()
    barrier.wait()
    begin, cpu = time.perf_counter(), cpu_of(server)
    answers = [results.get() for _ in processes]
    seconds, cpu = time.perf_counter() - begin, cpu_of(server) - cpu
    for process in processes:
        process.join()
    times = sorted(one for _, own, _, _ in answers for one in own)
    failed = [error for _, _, errors, _ in answers for error in errors]
    for error, count in Counter(failed).most_common(3):
        sys.stderr.write(f"{count} times: {error}\n")
    lost, twice = compare(direct, [uid for uid, *_ in answers], every)
    return Night(
        number,
        writers,
        every,
        lost,
        twice,
        len(failed),
        round(seconds, 1),
        round(len(times) / seconds, 1),
        round(statistics.median(times), 4),
        round(times[math.ceil(0.99 * len(times)) - 1], 4),
        round(times[-1], 4),
        round(1000 * sum(own for *_, own in answers) / len(times), 2),
        round(1000 * cpu / len(times), 2),
    )


def compare(target: str, runs: Sequence[str], every: int) -> tuple[int, int]:
    """How many cases of these runs are not whole on the server, and how many rows are there that nobody wrote.

    A case is whole with a row for each metric and launch, the samples of each launch and one verdict.
    """
    wanted = {"measurement": len(METRICS), "launch": LAUNCHES, "samples": 3 * LAUNCHES, "verdict": 1}
    query = """
        SELECT r.uid, c.uid, count(*) FROM {table} t JOIN run r ON r.id = t.run_id {join} GROUP BY r.uid, c.uid
    """
    by_series = 'JOIN series s ON s.id = t.series_id JOIN "case" c ON c.id = s.case_id'
    joins = {"launch": 'JOIN "case" c ON c.id = t.case_id'}
    lost, more = set[tuple[str, str]](), 0
    every_case = {(run, case.uid) for run in runs for case in cases(every)}
    with History.open(target, create=False) as history, history._engine.connect() as connection:  # noqa: SLF001 - it counts rows
        for table, count in wanted.items():
            rows = connection.execute(text(query.format(table=table, join=joins.get(table, by_series))))
            there = {(run, case): number for run, case, number in rows}
            lost |= {one for one in every_case if there.get(one, 0) < count}
            more += sum(max(0, there.get(one, 0) - count) for one in every_case)
        names = connection.execute(text('SELECT count(*), count(DISTINCT uid) FROM "case"')).one()
        more += names[0] - names[1]
    return len(lost), more


def size(target: str) -> dict[str, int]:
    """The bytes of the database, and the rows of each of its large tables."""
    with History.open(target, create=False) as history, history._engine.connect() as connection:  # noqa: SLF001 - as above
        counted = ("measurement", "launch", "samples", "verdict", "series")
        rows = {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in counted}  # noqa: S608 - names of tables
        rows["bytes"] = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    return rows


@contextmanager
def delayed(port: int, milliseconds: float) -> Iterator[int]:
    """A port that leads to this one, with a delay each way."""
    spawn = multiprocessing.get_context("fork")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(port, milliseconds / 1000, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def _serve(port: int, delay: float, ready: Any) -> None:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop, last = asyncio.get_running_loop(), None
        while data := await reader.read(PIECE):
            last = loop.call_later(delay, writer.write, data)  # in order: equal delays keep it
        if last is not None:
            await asyncio.sleep(delay)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(postgres.HERE, port)
        await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer), return_exceptions=True)

    async def serve() -> None:
        server = await asyncio.start_server(accept, postgres.HERE, 0, backlog=256)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--cases", type=int, default=500, help="that each of them records (default: %(default)s)")
    parser.add_argument("--hosts", type=int, default=4, help="kinds of machines among them (default: %(default)s)")
    parser.add_argument("--nights", type=int, default=2)
    parser.add_argument("--tls", action="store_true", help="encrypt, and check the server's certificate")
    parser.add_argument("--delay", type=float, default=0.0, metavar="MS", help="of the network, each way")
    arguments = parser.parse_args()
    programs = postgres.binaries()
    if programs is None:
        sys.exit("writers.py: no PostgreSQL server is installed here: initdb is not found")
    options = (f"listen_addresses={postgres.HERE}", f"max_connections={arguments.writers + SPARE}")
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    sys.stdout.write(json.dumps({**machine, **vars(arguments)}) + "\n")
    with postgres.running(programs, options, encrypts=arguments.tls) as server:
        query = {"sslmode": "disable"}
        if arguments.tls:
            query = {"sslmode": "verify-full", "sslrootcert": str(server.certificate)}
        direct = server.tcp(server.database(), **query)
        History.open(direct).close()
        with delayed(server.port, arguments.delay) if arguments.delay else _same(server.port) as port:
            target = direct.replace(f":{server.port}/", f":{port}/")
            for number in range(1, arguments.nights + 1):
                one = night(number, direct, target, arguments.writers, arguments.hosts, arguments.cases, server.pid)
                sys.stdout.write(json.dumps(asdict(one)) + "\n")
                sys.stdout.flush()
        sys.stdout.write(json.dumps(size(direct)) + "\n")


@contextmanager
def _same(port: int) -> Iterator[int]:
    yield port


if __name__ == "__main__":
    main()
