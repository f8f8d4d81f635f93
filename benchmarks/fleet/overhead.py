"""What a fleet costs a measured host: the same case on a Ray host of this machine, and without Ray, in turns.

Each pair is two runs of pytest, in random order, with as many launches each. Ray runs during both, as it does on a
host; `--without-ray` ends it during the runs that do not use it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]


def a_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def fleet(*words: str) -> str:
    """Run `ipexperf fleet`."""
    command = [sys.executable, "-m", "ipexperf.cli", "fleet", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    return ended.stdout


def step_time(folder: Path, number: int, cell: list[str], *more: str) -> float:
    """Measure the case in a run of its own; its median step time."""
    import sqlite3

    database = folder / f"{number}.db"
    base = [sys.executable, "-m", "pytest", "suites/", "-q", "-p", "no:cacheprovider", f"--perf-db={database}"]
    ended = subprocess.run(
        [*base, *cell, "--perf-rounds=off", "--perf-twin=off", *more],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    with closing(sqlite3.connect(database)) as history:
        rows = history.execute(
            "SELECT m.median FROM measurement m JOIN series s ON s.id = m.series_id WHERE s.metric = 'step_time'"
        ).fetchall()
    (median,) = [value for (value,) in rows]
    return float(median)


def idle(port: int, seconds: float) -> dict[str, float]:
    """What Ray's processes of a host do while nothing is asked of them."""
    from ipexperf.fleet import membership

    fleet("up", f"--port={port}", "--name=here")
    try:
        time.sleep(30)
        before = used(membership.members())
        time.sleep(seconds)
        pids = membership.members()
        cpu = used(pids) - before
        memory = sum(resident(pid) for pid in pids)
    finally:
        fleet("down")
    return {"processes": len(pids), "share_of_a_core": round(cpu / seconds, 4), "resident_mib": round(memory / 2**20)}


def used(pids: list[int]) -> float:
    """The CPU seconds that these processes have used."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids)
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """The memory that is a process's own."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--without-ray", action="store_true", help="end Ray during runs that do not use it")
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="measure Ray's idle processes instead")
    parser.add_argument("--launches", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--mode", default="infer_jit")
    parser.add_argument("--stack", default="stock")
    arguments = parser.parse_args()
    cell = [f"--perf-launches={arguments.launches}"]
    cell += [f"--{axis}={getattr(arguments, axis)}" for axis in ("model", "dtype", "mode", "stack")]
    chance = random.Random(arguments.seed)  # noqa: S311 - an order, no secret
    port = a_port()
    if arguments.idle:
        sys.stdout.write(json.dumps(idle(port, arguments.idle)) + "\n")
        return
    ratios: list[float] = []
    with tempfile.TemporaryDirectory(prefix="ipexperf-fleet-") as name:
        folder = Path(name)
        fleet("up", f"--port={port}", "--name=here")
        up = True
        try:
            for pair in range(arguments.pairs):
                times: dict[bool, float] = {}
                for with_fleet in chance.sample([True, False], 2):
                    if with_fleet != up and arguments.without_ray:
                        fleet("up", f"--port={port}", "--name=here") if with_fleet else fleet("down")
                        up = with_fleet
                    more = [f"--perf-fleet=127.0.0.1:{port}"] if with_fleet else []
                    times[with_fleet] = step_time(folder, 2 * pair + with_fleet, cell, *more)
                ratios.append(math.log(times[True] / times[False]))
                sys.stderr.write(f"pair {pair + 1} of {arguments.pairs}: {times[True] / times[False]:.4f}\n")
        finally:
            fleet("down")
    from scipy.stats import t

    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(len(ratios))
    half = float(t.ppf(0.975, len(ratios) - 1)) * error
    answer = {
        "pairs": len(ratios),
        "ratio": round(math.exp(mean), 4),
        "median": round(math.exp(statistics.median(ratios)), 4),
        "lo": round(math.exp(mean - half), 4),
        "hi": round(math.exp(mean + half), 4),
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
