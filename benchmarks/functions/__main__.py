"""A public suite of benchmarks, measured beside itself with slowdowns planted in some tests: which are caught.

    python benchmarks/functions SUITE --runs 10
    python benchmarks/functions SUITE --runs 1 --by pytest-benchmark
    python benchmarks/functions SUITE --runs 1 --by asv --busy

SUITE is a folder with a suite for pytest-benchmark, such as tensordict's `benchmarks/common`; it is copied. In each run
ten tests drawn by its number are 10 % slower in one arm and ten others 5 %; the rest is as it was. `--by` has others
judge the same: pytest-benchmark by its mean, median and minimum, or asv. `--busy`: a neighbour takes a core now and
then. Rows are appended to `results.csv`, and runs that it has are not made again. Ends with a table in Markdown.
"""

import argparse
import contextlib
import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asv_side

from ipexperf.history.store import History
from ipexperf.ratio import numbers

HERE = Path(__file__).parent
FIELDS = ("by", "run", "test", "planted", "outcome", "ratio", "lo", "hi", "pairs", "seconds")
PLANTED = {0.10: 10, 0.05: 10}
"""How many tests of a run become slower by each share."""
THRESHOLD = 0.05
"""That of pytest-benchmark's `compare-fail=mean:5%`."""
OF_ASV = 5
"""Tests without a slowdown that asv gets beside those with one."""
STATISTICS = ("mean", "median", "min")
NEIGHBOUR = """
import random, time
while True:
    until = time.monotonic() + random.uniform(0.2, 4)
    while time.monotonic() < until:
        pass
    time.sleep(random.uniform(0.2, 4))
"""


def prepared(folder: Path, suite: Path, pattern: str) -> list[str]:
    """Copy the suite with what plants. Returns the ids of its tests."""
    shutil.copytree(suite, folder / "suite", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "suite" / "conftest.py").open("a") as conftest:
        conftest.write("\n\n" + (HERE / "planting.py").read_text().replace("from __future__ import annotations\n", ""))
    (folder / "pytest.ini").write_text(f"[pytest]\npython_files = {pattern}\n")
    (folder / "planted.json").write_text("{}")
    listed = pytest(folder, "--collect-only", "-q").stdout.splitlines()
    return [line for line in listed if "::" in line]


def pytest(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PLANTED": str(folder / "planted.json"), **variables}
    command = [sys.executable, "-m", "pytest", "suite", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def drawn(tests: list[str], number: int) -> dict[str, float]:
    """The tests of a run that become slower, each with its share."""
    chosen = random.Random(number).sample(tests, sum(PLANTED.values()))  # noqa: S311 - no secret
    shares = [share for share, count in PLANTED.items() for _ in range(count)]
    return dict(zip(chosen, shares, strict=True))


def ours(folder: Path) -> Iterator[dict[str, Any]]:
    """One run of ours: its verdicts."""
    begin = time.monotonic()
    ended = pytest(folder, "--perf-benchmark", "--perf-against=PLANT=0", PLANT="1")
    seconds = time.monotonic() - begin
    database = folder / "ipexperf.db"
    if not database.exists():
        raise SystemExit(f"nothing was measured:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    with History.open(database) as history:
        for recorded in history.show("last").cases:
            verdict: Any = recorded.verdict
            pairs = len(getattr(verdict.evidence, "log_ratios", ()))
            yield {"by": "ipexperf", "test": recorded.case.name, "outcome": verdict.outcome, **numbers(verdict.ratio),
                   "pairs": pairs, "seconds": round(seconds)}  # fmt: skip
    database.unlink()


def theirs(folder: Path) -> Iterator[dict[str, Any]]:
    """One run of pytest-benchmark against another, judged by each of its statistics."""
    begin, stats = time.monotonic(), []
    for plant in ("0", "1"):
        pytest(folder, f"--benchmark-json=bench{plant}.json", PLANT=plant)
        found = json.loads((folder / f"bench{plant}.json").read_text())["benchmarks"]
        stats.append({one["fullname"]: one["stats"] for one in found})
    seconds = time.monotonic() - begin
    for name in STATISTICS:
        for test in stats[0].keys() & stats[1].keys():
            ratio = stats[1][test][name] / stats[0][test][name]
            outcome = "regressed" if ratio > 1 + THRESHOLD else "ok"
            yield {"by": f"pytest-benchmark, {name}:5%", "test": test, "outcome": outcome, "ratio": round(ratio, 4),
                   "seconds": round(seconds)}  # fmt: skip


def asvs(folder: Path) -> Iterator[dict[str, Any]]:
    """Two commits under asv, compared with its own factor. It gets few tests, because it is slow."""
    begin = time.monotonic()
    listed = pytest(folder, "--collect-only", "-q").stdout.splitlines()
    planted = json.loads((folder / "planted.json").read_text())
    others = [line for line in listed if "::" in line and line not in planted]
    tests = [*(test for test, share in planted.items() if share == max(PLANTED)), *others[:OF_ASV]]
    rows = list(asv_side.compared(folder, tests, {**os.environ, "PLANTED": str(folder / "planted.json")}))
    print(f"asv measured {len(rows)} of {len(tests)} tests", file=sys.stderr)
    for test, outcome, ratio in rows:
        yield {"by": "asv continuous, factor 1.1", "test": test, "outcome": outcome, "ratio": ratio,
               "seconds": round(time.monotonic() - begin)}  # fmt: skip


@contextlib.contextmanager
def neighbour(*, busy: bool) -> Iterator[None]:
    """Another process that takes a core now and then, if it is to."""
    if not busy:
        yield
        return
    other = subprocess.Popen([sys.executable, "-c", NEIGHBOUR])
    try:
        yield
    finally:
        other.kill()
        other.wait()


JUDGES = {"ipexperf": ours, "pytest-benchmark": theirs, "asv": asvs}
BUSY = ", beside a busy neighbour"


def table(rows: list[dict[str, str]]) -> Iterator[str]:
    yield "| judge | runs | tests | false alarms | 10 % caught | 5 % caught | not known | seconds a test and arm |"
    yield "|---|---|---|---|---|---|---|---|"
    for by in dict.fromkeys(row["by"] for row in rows):
        own = [row for row in rows if row["by"] == by and row["pairs"] != "0"]  # the others were skipped
        seconds = {row["run"]: float(row["seconds"]) for row in own}
        each = [seconds[run] / sum(row["run"] == run for row in own) / 2 for run in seconds]
        cells = [by, len(seconds), len(own)]
        for share in ("0", "0.1", "0.05"):
            some = [row for row in own if float(row["planted"]) == float(share)]
            cells.append(f"{sum(row['outcome'] == 'regressed' for row in some)} of {len(some)}")
        cells.append(sum(row["outcome"] == "inconclusive" for row in own))
        cells.append(f"{statistics.median(each):.1f}")
        yield f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--pattern", default="*_test.py", help="the files that are tests")
    parser.add_argument("--by", choices=JUDGES, default="ipexperf")
    parser.add_argument("--busy", action="store_true", help="beside a neighbour that takes a core now and then")
    parser.add_argument("--csv", type=Path, default=HERE / "results.csv")
    arguments = parser.parse_args()
    rows = list(csv.DictReader(arguments.csv.open())) if arguments.csv.exists() else []
    suffix = BUSY if arguments.busy else ""
    done = {
        row["run"] for row in rows if row["by"].startswith(arguments.by) and row["by"].endswith(BUSY) == arguments.busy
    }
    for number in range(1, arguments.runs + 1):
        if str(number) in done:
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            shares = drawn(prepared(folder, arguments.suite, arguments.pattern), number)
            (folder / "planted.json").write_text(json.dumps(shares))
            with neighbour(busy=arguments.busy):
                found = [
                    {"run": number, "planted": shares.get(one["test"], 0), **one, "by": one["by"] + suffix}
                    for one in JUDGES[arguments.by](folder)
                ]
            made = [{field: str(one.get(field, "")) for field in FIELDS} for one in found]
        rows += made
        with arguments.csv.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, FIELDS)
            if stream.tell() == 0:
                writer.writeheader()
            writer.writerows(made)
        print(
            f"run {number}: {len(made)} tests, {sum(one['outcome'] == 'regressed' for one in made)} regressed",
            file=sys.stderr,
        )
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
