"""What a thousand hosts and a million cases a night would do: the controller, measured at growing sizes.

The plan, the runs, the links to hosts, the judge, the history and the report are those of a real run. The hosts are
not: they answer in this process, with made-up numbers, after as many seconds as a group takes them. Each size is
measured in a process of its own.

- `plan`: pytest collects so many cases.
- `dispatch`: hosts open, groups go to them and come back, are judged and recorded.
- `poll`: what Ray costs the controller for each call to an agent (needs Ray; starts a node of its own).
- `database`: rows and bytes of a night, and how many appends a second one controller makes.
- `report`: the pages of such a history.
"""

from __future__ import annotations

import argparse
import functools
import heapq
import itertools
import json
import os
import platform
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "fakes" / "fake.py"
MODES = 10
"""Most cases of a group."""
RACK = '''"""Models of a simulated rack: planned, never built."""
from ipexperf.bench import registry

Spin = type(registry.modes.get("spin"))
for number in range(1, {modes}):
    one = type(f"Spin{{number}}", (Spin,), {{"name": f"spin{{number}}"}})()
    registry.modes.add(one.name, one)


def build():
    raise NotImplementedError("this model is planned, never built")


for number in range({models}):
    registry.model(
        f"dummy{{number:06d}}", size=1, batch_train=1, batch_infer=1, version=1, data="none", needs=(), trained=False
    )(build)
'''
TEST = "import pytest\n\n\n@pytest.mark.perf\ndef test_it(perf):\n    perf()\n"
LAUNCHES, SAMPLES, ROUNDS, OPERATORS = 3, 12, 3, 30
METRICS = {
    "step_time": 0.01,
    "throughput": 100.0,
    "cpu_time": 0.02,
    "import_time": 1.5,
    "prepare_time": 0.2,
    "warm_time": 0.1,
    "page_faults": 3.0,
    "peak_memory": 4e8,
    "held_memory": 3e8,
    "fidelity": 1e-7,
}


def spent() -> float:
    """The CPU time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident(pid: int = 0) -> float:
    """The largest memory of this process, or of its ended children, in MiB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN if pid else resource.RUSAGE_SELF).ru_maxrss / 1024


def rack_file(folder: Path, models: int) -> Path:
    path = folder / "rack.py"
    path.write_text(RACK.format(models=models, modes=MODES))
    return path


def axes(models: tuple[str, ...], cases: int = MODES) -> dict[str, tuple[str, ...]]:
    modes = ("spin", *(f"spin{number}" for number in range(1, cases)))
    return {"model": models, "device": ("fake",), "dtype": ("fp32",), "mode": modes, "stack": ("plain",)}


def plan(folder: Path, size: int) -> dict[str, Any]:
    """Let pytest collect so many cases."""
    test = folder / "test_rack.py"
    test.write_text(TEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-c", str(folder / "pytest.ini"), str(test)]
    chosen = axes(("all",))
    command += ["-p", "no:cacheprovider", *(f"--perf-{name}={','.join(values)}" for name, values in chosen.items())]
    command += [f"--perf-load={FAKE}", f"--perf-load={rack_file(folder, size // MODES)}"]
    begin = time.perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    seconds = time.perf_counter() - begin
    last = (ended.stdout.strip().splitlines() or [ended.stderr])[-1]
    if ended.returncode:
        sys.exit(last)
    return {"cases": int(last.split()[0]), "seconds": round(seconds, 2), "memory_mib": round(resident(1))}


class Hosts:
    """The hosts of a simulated rack. One thread makes all of them answer in time."""

    def __init__(self, names: list[str], seconds: float, *, alike: bool) -> None:
        """`seconds`: how long a group takes a host. `alike`: whether all have one machine key."""
        from ipexperf.tools.fleet.worker import HEARTBEAT_SECONDS

        self.names, self.seconds, self.alike = names, seconds, alike
        self._beat = HEARTBEAT_SECONDS
        self.sent = 0
        """Bytes of the replies."""
        self.channels: list[Channel] = []
        self._due: list[tuple[float, int, Channel, str]] = []
        self._number = itertools.count()
        self._changed = threading.Condition()
        self._over = False
        threading.Thread(target=self._run, daemon=True).start()

    def hosts(self) -> list[Any]:
        from ipexperf.tools.fleet.hosts import Host

        return [Host(name, name, name, {"device": "cpu"}) for name in self.names]

    def channel(self, host: Any, say: Callable[[str], None], *, wait: bool) -> Channel:
        del say, wait
        channel = Channel(self, "made-up" if self.alike else f"made-up-{host.name}")
        self.channels.append(channel)
        self.at(time.monotonic() + self._beat, channel, BEAT)
        return channel

    def at(self, moment: float, channel: Channel, line: str) -> None:
        """Have a line arrive at a moment."""
        with self._changed:
            heapq.heappush(self._due, (moment, next(self._number), channel, line))
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._over and (not self._due or self._due[0][0] > time.monotonic()):
                    self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
                if self._over:
                    return
                moment, _, channel, line = heapq.heappop(self._due)
            if line == BEAT and not channel.closed:
                self.at(moment + self._beat, channel, BEAT)
            self.sent += len(line)
            channel.lines.put(line)


BEAT = '{"is":"Alive"}'


class Channel:
    """The line to one simulated host."""

    def __init__(self, rack: Hosts, machine_key: str) -> None:
        self.lines: queue.Queue[str] = queue.Queue()
        self.closed = False
        self.groups = 0
        """How many this host was given."""
        self._rack, self._key, self._free_at = rack, machine_key, 0.0

    def install(self, archive: bytes, digest: str) -> None:
        """It is there already."""

    def start(self, digest: str) -> None:
        """Nothing to start."""

    def send(self, lines: list[str]) -> None:
        for text in lines:
            request = json.loads(text)
            if request["is"] == "Open":
                self.lines.put(opened(self._key))
            elif request["is"] == "Measure":
                self.groups += 1
                self._free_at = max(self._free_at, time.monotonic()) + self._rack.seconds
                self._rack.at(self._free_at, self, progress(request["number"], request["request"]["group"], self._key))

    def receive(self, seconds: float) -> list[str]:
        replies: list[str] = []
        try:
            replies.append(self.lines.get(timeout=seconds))
            while True:
                replies.append(self.lines.get_nowait())
        except queue.Empty:
            return replies

    def close(self) -> None:
        self.closed = True
        self.lines.put('{"is":"Exited","status":0,"log":""}')

    def abandon(self) -> None:
        self.closed = True


def opened(machine_key: str) -> str:
    from ipexperf.bench.machine.facts import Facts
    from ipexperf.tools.fleet import messages

    facts = Facts("/usr/bin/python", {}, frozenset({"avx2"}), cores=2)
    when = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return messages.line(messages.Opened(facts, {"machine_key": machine_key, "cpu": "made up"}, when))


def progress(number: int, group: dict[str, Any], machine_key: str) -> str:
    """The last line of a group, made of texts: what a host works is no work of the controller."""
    whole = f'"launches":{launch_texts()},"environment":{environment_text(machine_key)},{MOMENTS},"cut":""'
    cases = [json.dumps(case, separators=(",", ":")) for case in group["cases"]]
    measured = ",".join(f'[{case},{{"case":{case},{whole}}}]' for case in cases)
    rounds = ",".join(round_text(group["name"], one, cases) for one in range(ROUNDS)) if len(cases) > 1 else ""
    head = f'{{"is":"GroupProgress","number":{number},"group":{json.dumps(group["name"])}'
    return f'{head},"measurements":[{measured}],"rounds":[{rounds}],"over":true}}'


MOMENTS = '"started_at":"2026-11-25T10:00:00.000+00:00","finished_at":"2026-11-25T10:01:00.000+00:00"'
UIDS = itertools.count(1)


def round_text(group: str, number: int, cases: list[str]) -> str:
    times = json.dumps([[0.01 + 0.0001 * turn for turn in range(SAMPLES)]])
    seats = ",".join(f'{{"case":{case},"role":"case","times":{times},"launch":{number}}}' for case in cases)
    head = f'{{"uid":"{next(UIDS):032x}","group":{json.dumps(group)},"number":{number},"schedule":"together"'
    tail = f'"started_at":"2026-11-25T10:00:00.000+00:00","seconds":9.0,"turns":{SAMPLES},"dropped":0'
    return f'{head},"seats":[{seats}],{tail}}}'


def environment(machine_key: str) -> dict[str, Any]:
    return {
        "machine_key": machine_key,
        "hardware": {"cpu": "made up", "cores": 2, "memory": 2**34, "threads": 2, "flags": ["avx2", "fma"]},
        "software": {"torch": "2.8.0", "ipex": "2.8.0", "python": "3.11"},
        "variables": {"OMP_NUM_THREADS": "2"},
        "inventory": {f"package{number}": "1.0" for number in range(60)},
    }


def environment_text(machine_key: str) -> str:
    return json.dumps(environment(machine_key), separators=(",", ":"))


FINGERPRINT = {
    "version": 1,
    "digest": "00" * 32,
    "structure": {
        "operators": [
            {
                "operator": f"aten::operator{number}",
                "calls": 2,
                "types": {"float32": 2},
                "shapes": "0011aabb",
                "inside": {"": 2},
            }
            for number in range(OPERATORS)
        ]
    },
    "times": {"operators": [0.001] * OPERATORS},
    "beside": {},
    "unsteady": [],
    "unstable": [],
    "missing": {},
    "unparsed": [],
    "seconds": 0.1,
}


def launch(index: int) -> Any:
    from ipexperf.result import Check, Launch, Sample

    samples = tuple(Sample(0.01 + 0.0001 * number, 0.02, 0.0) for number in range(SAMPLES))
    proof = tuple(Check(name, ok=True, found="as expected", expected="as expected") for name in ("device", "dtype"))
    return Launch(
        index,
        "ok",
        samples=samples,
        metrics=METRICS,
        proof=proof,
        accuracy=proof,
        gate={"load": 0.1, "steal": 0.0, "others": 0.0},
        fingerprint=FINGERPRINT,
        notes=("a note on how the numbers were taken",),
    )


@functools.cache
def launch_texts() -> str:
    from ipexperf.tools import codec

    return json.dumps([codec.plain(launch(index)) for index in range(LAUNCHES)], separators=(",", ":"))


def dispatch(
    folder: Path, hosts: int, groups: int, cases: int, seconds: float, *, share: bool, record: str, judged: bool
) -> dict[str, Any]:
    """Give so many groups of so many cases to hosts: in all if they share them, else to each.

    `judged`: whether there are accepted baselines.
    """
    from ipexperf import invocation
    from ipexperf.plan.gates import AS_ALL
    from ipexperf.plan.options import Options
    from ipexperf.tools.fleet import runs

    rack = Hosts([f"host{number:04d}" for number in range(hosts)], seconds, alike=share)
    runs.connect = lambda _, __: rack  # type: ignore[assignment]
    options = Options(
        **axes(tuple(f"dummy{number:06d}" for number in range(groups)), cases),
        load=(str(FAKE), str(rack_file(folder, groups))),
        fleet="simulated",
        spread="share" if share else "each",
        db=str(folder / "history.db"),
        without=("record",) if record == "none" else (),
        baselines=folder / "baselines",
        cache=folder / "cache",
        twin="off",
        launches=LAUNCHES,
    )
    marks, cpu = [time.perf_counter()], spent()
    inside = invocation.Invocation(options, folder, lambda _: None)
    marks.append(time.perf_counter())
    if judged:
        accept(options.baselines, inside.cases, alike=share)
    marks.append(time.perf_counter())
    inside.open(())
    inside.expect((planned, AS_ALL) for planned in inside.cases)
    marks.append(time.perf_counter())
    for planned in inside.cases:
        inside.runs[planned.host].measure(planned.case, AS_ALL)
    marks.append(time.perf_counter())
    inside.finish("finished")
    lines = len(inside.summary({}))
    marks.append(time.perf_counter())
    rack.close()
    begun, _, expected, measured, ended = (b - a for a, b in itertools.pairwise(marks))
    number = groups if share else groups * hosts
    return {
        "hosts": hosts,
        "groups": number,
        "cases": len(inside.cases),
        "start_s": round(begun, 2),
        "expect_s": round(expected, 2),
        "measure_s": round(measured, 2),
        "finish_s": round(ended, 2),
        "ms_a_group": round(1000 * (expected + measured) / number, 2),
        "largest_share": round(max(channel.groups for channel in rack.channels) / number, 3),
        "cpu_s": round(spent() - cpu, 1),
        "memory_mib": round(resident()),
        "received_mb": round(rack.sent / 1e6, 1),
        "summary_lines": lines,
        "recorded": 0 if "record" in options.without else cases_of(folder / "history.db"),
    }


def accept(folder: Path, cases: Any, *, alike: bool) -> None:
    """Write baselines of these cases, as if they had been accepted from three runs."""
    from ipexperf.judge import baseline

    sessions = tuple(
        baseline.Session(f"run{number}", "2026-11-20T10:00:00+00:00", "", (0.01, 0.01, 0.01), dict(METRICS))
        for number in range(3)
    )
    by_key: dict[str, list[baseline.CaseBaseline]] = {}
    for planned in cases:
        key = "made-up" if alike else f"made-up-{planned.host}"
        words = ("accepted", "somebody", "2026-11-21T10:00:00+00:00", None, environment(key))
        by_key.setdefault(key, []).append(
            baseline.CaseBaseline(planned.case, sessions, {"fidelity": METRICS["fidelity"]}, *words)
        )
    for key, own in by_key.items():
        baseline.write(folder, baseline.Baselines(key, tuple(own)))


def cases_of(path: Path) -> int:
    """How many cases of runs that ended are in a history."""
    from ipexperf.history import History

    with History.open(path, create=False) as history:
        return sum(sum(run.outcomes.values()) for run in history.runs(None) if run.status == "finished")


def poll(agents: int, seconds: float) -> dict[str, Any]:
    """What it costs the controller to ask so many agents on a real Ray node for their lines, once a second each."""
    # No token: Ray would leave it in the home folder.
    os.environ.update({"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "RAY_AUTH_MODE": "disabled"})
    import ray

    from ipexperf.tools.fleet.agent import Agent
    from ipexperf.tools.fleet.cluster import RayChannel
    from ipexperf.tools.fleet.link import POLL_SECONDS

    ray.init("local", num_cpus=0, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        remote = ray.remote(Agent).options(num_cpus=0, max_concurrency=4)
        begin, channels = time.perf_counter(), []
        for _ in range(agents):  # one after the other, as a run does
            channels.append(RayChannel(ray, remote.remote(str(Path.cwd()), {})))
            channels[-1].has("nothing")
        start = (time.perf_counter() - begin) / agents
        calls, until = [0] * agents, time.monotonic() + seconds

        def ask(number: int) -> None:
            while time.monotonic() < until:
                channels[number].receive(POLL_SECONDS)
                calls[number] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(agents)]
        cpu = spent()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cpu = spent() - cpu
        begin = time.perf_counter()
        for _ in range(200):
            channels[0].has("nothing")
        trip = (time.perf_counter() - begin) / 200
    finally:
        ray.shutdown()
    ms = 1000 * cpu / sum(calls)
    return {
        "agents": agents,
        "start_s_an_agent": round(start, 2),
        "calls": sum(calls),
        "cpu_ms_a_call": round(ms, 3),
        "round_trip_ms": round(1000 * trip, 2),
    }


def database(folder: Path, groups: int, nights: int, url: str) -> Iterator[dict[str, Any]]:
    """Record whole runs of so many groups, as a run does: each case after its last round, and each round."""
    from ipexperf.case import Case
    from ipexperf.history import History
    from ipexperf.history.values import now
    from ipexperf.result import Measurement, RoundRecord, SeatRecord, Verdict

    target = url or str(folder / "history.db")
    document = environment("made-up")
    launches = tuple(launch(index) for index in range(LAUNCHES))
    verdict = Verdict("ok", "made up", policy="made up")
    times = (tuple(0.01 + 0.0001 * turn for turn in range(SAMPLES)),)
    with History.open(target) as history:
        for night in range(1, nights + 1):
            begin, cpu = time.perf_counter(), spent()
            uid = history.start_run(document, {"suite": "nightly"})
            for number in range(groups):
                cases = [
                    Case(f"model{number:06d}", "cpu", "fp32", f"infer{one}", "stock", 1, 224) for one in range(MODES)
                ]
                for case in cases:
                    history.record(uid, Measurement(case, launches, document, now(), now()), verdict)
                for one in range(ROUNDS):
                    seats = tuple(SeatRecord(case, "case", times, one) for case in cases)
                    name = f"model{number:06d} cpu infer 1x224"
                    record = RoundRecord(
                        f"{night:08x}{number * ROUNDS + one:024x}", name, one, "together", seats, now(), 9.0
                    )
                    history.record_round(uid, replace(record, turns=SAMPLES))
            history.finish_run(uid, "finished")
            seconds, appends = time.perf_counter() - begin, groups * (MODES + ROUNDS)
            rows, size = counted(history, target)
            yield {
                "night": night,
                "cases": groups * MODES,
                "seconds": round(seconds, 1),
                "appends_a_second": round(appends / seconds),
                "cpu_ms_an_append": round(1000 * (spent() - cpu) / appends, 2),
                "rows": rows,
                "bytes": size,
                "bytes_a_case": round(size / (groups * MODES * night)),
                "rows_a_case": round(rows / (groups * MODES * night), 1),
            }


def counted(history: Any, target: str) -> tuple[int, int]:
    """All rows of a history, and its bytes."""
    from sqlalchemy import func, select, text

    from ipexperf.history import schema

    with history._engine.connect() as connection:  # noqa: SLF001 - it counts rows
        tables = schema.metadata.sorted_tables
        rows = sum(connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables)
        if "://" in target:
            return rows, connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    files = (Path(f"{target}{ending}") for ending in ("", "-wal"))
    return rows, sum(path.stat().st_size for path in files if path.exists())


def report(folder: Path, groups: int) -> dict[str, Any]:
    """Draw the pages of two nights."""
    from ipexperf.dashboard import writing
    from ipexperf.history import History

    for _ in database(folder, groups, 2, ""):
        pass
    with History.open(folder / "history.db") as history:
        begin = time.perf_counter()
        written = writing.write(history, folder / "pages")
        seconds = time.perf_counter() - begin
    files = [path for path in (folder / "pages").rglob("*") if path.is_file()]
    return {
        "cases": written.cases,
        "seconds": round(seconds, 1),
        "ms_a_case": round(1000 * seconds / written.cases, 1),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "overview_bytes": written.index.stat().st_size,
        "memory_mib": round(resident()),
    }


def rack_database(folder: Path, groups: int, nights: int, *, server: bool) -> Iterator[dict[str, Any]]:
    """The same, in a file or on a PostgreSQL server of its own over TCP."""
    if not server:
        yield from database(folder, groups, nights, "")
        return
    sys.path.insert(0, str(ROOT / "tests" / "history"))
    import postgres

    programs = postgres.binaries()
    if programs is None:
        sys.exit("rack.py: no PostgreSQL server is installed here: initdb is not found")
    with postgres.running(programs, (f"listen_addresses={postgres.HERE}",)) as running:
        yield from database(folder, groups, nights, running.tcp(running.database(), sslmode="disable"))


def child(words: list[str]) -> None:
    """Measure one size, and print a line of JSON for each answer."""
    part, *more = words
    with tempfile.TemporaryDirectory(prefix="ipexperf-rack-") as name:
        folder = Path(name)
        if part == "plan":
            answers: Iterator[dict[str, Any]] = iter([plan(folder, int(more[0]))])
        elif part == "dispatch":
            hosts, groups, cases, seconds, spread, record, known = more
            numbers = (int(hosts), int(groups), int(cases), float(seconds))
            kind = {"share": spread == "share", "record": record, "judged": known == "judged"}
            answers = iter([dispatch(folder, *numbers, **kind)])
        elif part == "poll":
            answers = iter([poll(int(more[0]), float(more[1]))])
        elif part == "database":
            answers = rack_database(folder, int(more[0]), int(more[1]), server=more[2] == "server")
        else:
            answers = iter([report(folder, int(more[0]))])
        for answer in answers:
            sys.stdout.write(json.dumps({"part": part, "asked": more, **answer}) + "\n")
            sys.stdout.flush()


DEFAULTS = {
    "plan": ["1000", "10000", "100000"],
    "dispatch": [
        "1,400,1,0.2,share,file,new",  # one host and four, which share as many groups
        "4,400,1,0.2,share,file,new",
        "1,1000,1,0,share,file,judged",  # hosts that take no time: all that is left is the controller's
        "1,10000,1,0,share,file,judged",
        "1,10000,1,0,share,none,new",
        "10,10,10,0,each,file,judged",
        "100,10,10,0,each,file,judged",
        "1000,1,10,0,each,file,new",
    ],
    "poll": ["1,20", "8,20"],
    "database": ["100,2,file", "1000,2,file", "100,2,server", "1000,2,server"],
    "report": ["10", "100", "1000"],
}
"""The sizes of each part. `dispatch`: hosts, groups, cases and seconds of each, spread, where it is recorded, and
whether there are baselines."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=tuple(DEFAULTS), action="append", help="only this one (repeatable)")
    parser.add_argument("--size", action="append", help="of the part, in place of the usual ones (repeatable)")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return
    sys.stdout.write(json.dumps({"machine": platform.machine(), "cores": os.cpu_count()}) + "\n")
    for part in arguments.part or DEFAULTS:
        for size in arguments.size or DEFAULTS[part]:
            sys.stdout.flush()
            command = [sys.executable, __file__, "--child", part, *size.split(",")]
            subprocess.run(command, check=False, stdout=sys.stdout)


if __name__ == "__main__":
    main()
