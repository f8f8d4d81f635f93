"""The road that users walk, as figures: a network of one's own, one accepted run, an edit, and `pytest` alone.

    python benchmarks/main_road --minutes 60
    python benchmarks/main_road --unchanged 40

Each edit of `changes.py` is made in a fresh copy of the accepted project and judged by `pytest`. What should be
slower is timed before, outside ipexperf, in turns. Results are appended to `results.csv`, and what it has is not made
again. `--unchanged` runs `pytest` in a copy where nothing was edited. Ends with a table in Markdown.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import changes
import truth
from road import HERE, PYTEST, build, reason

FIELDS = ("kind", "variant", "wanted", "infer", "train", "exit", "seconds", "verdicts", "why")
SMALLEST = 1.05
"""A change that makes no mode slower by so much need not be caught for its time."""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def accepted(folder: Path, *more: str) -> None:
    """Make the project, measure it once and accept that."""
    shutil.copytree(HERE / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    build(folder)
    measured = run(folder, *PYTEST, *more)
    done = run(folder, sys.executable, "-m", "ipexperf.cli", "baseline", "accept", "last", "--reason", "first")
    if measured.returncode or done.returncode:
        raise SystemExit(f"the project could not be accepted:\n{measured.stdout}{done.stdout}{done.stderr}")


def verdicts(folder: Path) -> str:
    """What the last run said of each case, in a few words."""
    asked = """SELECT c.mode, v.outcome FROM verdict v JOIN series s ON s.id = v.series_id JOIN "case" c
        ON c.id = s.case_id WHERE s.metric = 'step_time' AND v.run_id = (SELECT max(id) FROM run) ORDER BY 1"""
    with closing(sqlite3.connect(folder / "ipexperf.db")) as connection:
        return "; ".join(f"{mode} {outcome}" for mode, outcome in connection.execute(asked))


def tried(base: Path, change: changes.Change | None, number: int, *more: str) -> dict[str, object]:
    """One edit, or none, judged by pytest."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        shutil.copytree(base, folder, symlinks=True)
        ratios: dict[str, float | None] = {"infer": None, "train": None}
        if change is not None:
            change.apply(folder)
            if change.wanted == "slower":
                ratios = {mode: round(truth.ratio(base, folder, mode), 3) for mode in ratios}
        begin = time.monotonic()
        ended = run(folder, *PYTEST, *more)
        seconds = round(time.monotonic() - begin)
        if ended.returncode not in (0, 1):
            raise SystemExit(f"{change}: pytest ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
        kind, wanted = (change.kind, change.wanted) if change else ("nothing", "")
        found = {
            "exit": ended.returncode,
            "seconds": seconds,
            "verdicts": verdicts(folder),
            "why": reason(ended.stdout),
        }
        return {"kind": kind, "variant": number, "wanted": wanted, **ratios, **found}


def table(rows: list[dict[str, str]]) -> str:
    """What was caught of each kind. A change that is wanted to be slower, and is not by 5 %, is left out."""
    lines = ["| change | tried | 5 % slower, or to be caught for another reason | caught | seconds of pytest |"]
    lines += ["|---|---|---|---|---|"]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        ours = [row for row in rows if row["kind"] == kind]
        due = [x for x in ours if x["wanted"] != "slower" or max(float(x["infer"]), float(x["train"])) >= SMALLEST]
        caught = sum(row["exit"] == "1" for row in due)
        times = sorted(int(row["seconds"]) for row in ours)
        wanted = "" if ours[0]["wanted"] else " (must be 0)"
        lines.append(f"| {kind} | {len(ours)} | {len(due)} | {caught}{wanted} | {times[0]} to {times[-1]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/main_road", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="begin nothing new after this time (default: 60)")
    parser.add_argument("--kind", action="append", choices=list(changes.KINDS), help="only this kind (repeatable)")
    parser.add_argument("--unchanged", type=int, default=0, metavar="N", help="instead: N runs where nothing changed")
    parser.add_argument("--results", type=Path, default=HERE / "results.csv", help="what rows are appended to")
    parser.add_argument("--table", action="store_true", help="only print the table of what is there")
    arguments, more = parser.parse_known_args()
    results: Path = arguments.results
    known = list(csv.DictReader(results.open())) if results.exists() else []
    done = {(row["kind"], int(row["variant"])) for row in known}
    if not arguments.table:
        plan = [(change, change.variant) for change in changes.every()]
        if arguments.unchanged:
            plan = [(None, number) for number in range(len(done), len(done) + arguments.unchanged)]
        wished = arguments.kind or [*changes.KINDS, "nothing"]
        end = time.monotonic() + 60 * arguments.minutes
        with tempfile.TemporaryDirectory() as place, results.open("a", newline="") as file:
            base = Path(place) / "base"
            print("measuring and accepting the project", file=sys.stderr)
            accepted(base, *more)
            writer = csv.DictWriter(file, FIELDS)
            if not known:
                writer.writeheader()
            for change, number in plan:
                kind = change.kind if change else "nothing"
                if (kind, number) in done or kind not in wished or time.monotonic() > end:
                    continue
                row = tried(base, change, number, *more)
                writer.writerow(row)
                file.flush()
                print(*row.values(), sep=", ", file=sys.stderr)
    print(table(list(csv.DictReader(results.open()))))


if __name__ == "__main__":
    main()
