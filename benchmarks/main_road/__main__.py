"""The road that users walk, as figures: a network of one's own, one accepted run, an edit, and `pytest` alone.

    python benchmarks/main_road --minutes 60
    python benchmarks/main_road --unchanged 40

Each edit of `changes.py` is made in a fresh copy of the accepted project and judged by `pytest`. What should be
slower is timed before, outside ipexperf, in turns. Results are appended to `results.csv`, and what it has is not made
again. `--unchanged` runs `pytest` in a copy where nothing was edited. Ends with a table in Markdown.
"""

import argparse
import csv
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import truth
from changes import KINDS, Kind, apply, every

HERE = Path(__file__).parent
PYTEST = (sys.executable, "-m", "pytest", "-p", "ipexperf.short_options")
ACCEPT = (sys.executable, "-m", "ipexperf.cli", "baseline", "accept", "last", "--reason=first")
FIELDS = ("kind", "variant", "wanted", "infer", "train", "exit", "seconds", "verdicts", "why")
SMALLEST = 1.05
"""A change that makes no mode slower by so much need not be caught for its time."""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def made(folder: Path, *more: str) -> Path:
    """Make the project, measure it once and accept that."""
    shutil.copytree(HERE / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    apply((), folder)
    accept(folder, *more)
    return folder


def accept(folder: Path, *more: str, under: str = "") -> None:
    measured = run(folder, *under.split(), *PYTEST, *more)
    keep = ("--keep",) if under else ()  # a package of a folder
    done = run(folder, *under.split(), *ACCEPT, "--regression-ok", "--replace", *keep)
    if measured.returncode not in (0, 1) or done.returncode:
        raise SystemExit(f"the project could not be accepted:\n{measured.stdout}{done.stdout}{done.stderr}")


def tried(base: Path, kind: Kind, number: int, *more: str) -> dict[str, Any]:
    """One variant of a change, judged by pytest."""
    with tempfile.TemporaryDirectory() as place:
        before, folder = base, Path(place) / "project"
        if kind.first:
            before = shutil.copytree(base, Path(place) / "before", symlinks=True)
        for edits in kind.first:
            apply(edits, before)
            accept(before, *more, under=kind.under)
        shutil.copytree(before, folder, symlinks=True)
        apply(kind.edits(number), folder)
        modes = ("infer", "train")
        slower = kind.wanted == "slower"
        ratios = {mode: round(truth.ratio(before, folder, mode), 3) if slower else None for mode in modes}
        begin = time.monotonic()
        ended = run(folder, *kind.under.split(), *PYTEST, *more)
        seconds = round(time.monotonic() - begin)
        if ended.returncode not in (0, 1):
            raise SystemExit(f"pytest ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
        found = {"seconds": seconds, "verdicts": verdicts(folder), "why": reason(ended.stdout)}
        return {"wanted": kind.wanted, **ratios, "exit": ended.returncode, **found}


def verdicts(folder: Path) -> str:
    """What the last run said of each case, in a few words."""
    asked = """SELECT c.mode, v.outcome FROM verdict v JOIN series s ON s.id = v.series_id JOIN "case" c
        ON c.id = s.case_id WHERE s.metric = 'step_time' AND v.run_id = (SELECT max(id) FROM run) ORDER BY 1"""
    with closing(sqlite3.connect(folder / "ipexperf.db")) as connection:
        return "; ".join(f"{mode} {outcome}" for mode, outcome in connection.execute(asked))


def reason(output: str) -> str:
    """What the first failed test said, or the last line that says how cases were judged."""
    block = re.search(r"^_{3,} .* _{3,}\n(.*(?:\n {4}\S.*)*)", output, re.MULTILINE)
    judged = re.findall(r"^(?:judged|slower than the baseline).*", output, re.MULTILINE)
    return " ".join((block.group(1) if block else "; ".join(judged)).split())[:200]


def table(rows: list[dict[str, str]]) -> str:
    """What was caught of each kind. A change that is wanted to be slower, and is not by 5 %, is left out."""
    groups = [(kind, [row for row in rows if row["kind"] == kind]) for kind in dict.fromkeys(x["kind"] for x in rows)]
    groups += [("all", [row for row in rows if row["wanted"]]), ("all harmless", [x for x in rows if not x["wanted"]])]
    lines = [
        "| change | tried | 5 % slower, or to be caught for another reason | caught | seconds of pytest (median) |"
    ]
    lines += ["|---|---|---|---|---|"]
    for name, ours in groups:
        due = [x for x in ours if x["wanted"] != "slower" or max(float(x["infer"]), float(x["train"])) >= SMALLEST]
        caught = sum(row["exit"] == "1" for row in due)
        seconds = f"{statistics.median(int(row['seconds']) for row in ours):.0f}" if ours else ""
        harmless = " (must be 0)" if not all(row["wanted"] for row in ours) else ""
        lines.append(f"| {name} | {len(ours)} | {len(due)} | {caught}{harmless} | {seconds} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/main_road", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="begin nothing new after this time (default: 60)")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind (repeatable)")
    parser.add_argument("--unchanged", type=int, default=0, metavar="N", help="instead: N runs where nothing changed")
    parser.add_argument("--results", type=Path, default=HERE / "results.csv", help="what rows are appended to")
    parser.add_argument("--table", action="store_true", help="only print the table of what is there")
    arguments, more = parser.parse_known_args()
    results: Path = arguments.results
    known = list(csv.DictReader(results.open())) if results.exists() else []
    done = {(row["kind"], int(row["variant"])) for row in known}
    if not arguments.table:
        plan = [change for change in every() if change[0] in (arguments.kind or KINDS)]
        if arguments.unchanged:
            plan = [("nothing", number) for number in range(len(done), len(done) + arguments.unchanged)]
        end = time.monotonic() + 60 * arguments.minutes
        with tempfile.TemporaryDirectory() as place, results.open("a", newline="") as file:
            print("measuring and accepting the project", file=sys.stderr)
            base = made(Path(place) / "base", *more)
            writer = csv.DictWriter(file, FIELDS)
            if not known:
                writer.writeheader()
            for kind, number in plan:
                if (kind, number) in done or time.monotonic() > end:
                    continue
                found = tried(base, KINDS.get(kind, Kind("", lambda _: ())), number, *more)
                row = {"kind": kind, "variant": number, **found}
                writer.writerow(row)
                file.flush()
                print(*row.values(), sep=", ", file=sys.stderr)
    print(table(list(csv.DictReader(results.open()))))


if __name__ == "__main__":
    main()
