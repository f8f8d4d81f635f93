"""Bench, accept, bench, where nothing changes: how often each metric of the gate raises a false alarm.

Each time begins with an empty history and without baselines, as a new user does; trained weights are kept. After one
accepted run come `--runs` more. Each line of the file is a verdict of one of them: its number, when it began, the exit
status of its pytest, the case, the metric, the outcome and the ratio. Lines are appended to an existing file, so that
runs of several hours and machines add up. What follows the file are the words for pytest.

    python benchmarks/gates/again.py --times 20 again.csv suites/ --device cpu
    python benchmarks/gates/again.py --times 1 --runs 10 again.csv suites/ --device cpu
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ipexperf.history import History

ACCEPT = ("-m", "ipexperf.cli", "baseline", "accept", "last", "--reason", "nothing else was running")


def python(*words: str) -> int:
    """Run Python with these words, and return its exit status."""
    return subprocess.run([sys.executable, *words], stdout=sys.stderr, check=False).returncode


def verdicts(words: Sequence[str], cache: Path, runs: int) -> Iterator[list[str]]:
    """Bench and accept once, then bench again. Yield for each later run its exit status with each of its verdicts."""
    with tempfile.TemporaryDirectory(prefix="ipexperf-again-") as place:
        database, baselines = Path(place, "again.db"), Path(place, "baselines")
        bench = ("-m", "pytest", *words, f"--perf-db={database}", f"--perf-baselines={baselines}")
        bench = (*bench, f"--perf-cache={cache}")
        if python(*bench) or python(*ACCEPT, "--db", str(database), "--baselines", str(baselines)):
            sys.exit("the first run failed, or could not be accepted")
        for _ in range(runs):
            began, status = f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}", python(*bench)
            with History.open(database, create=False) as history:
                yield [
                    f"{began},{status},{recorded.case.id},{one.metric},{one.outcome},{one.times}"
                    for recorded in history.measurements(history.find_run("last").uid)
                    for one in ((recorded.verdict.alone, *recorded.verdict.others) if recorded.verdict else ())
                ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--runs", type=int, default=1, help="runs after each acceptance (default: 1)")
    parser.add_argument("--cache", type=Path, default=Path(".ipexperf"))
    parser.add_argument("file", type=Path)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    alarms = red = number = 0
    for _ in range(arguments.times):
        for lines in verdicts(arguments.words, arguments.cache.absolute(), arguments.runs):
            with arguments.file.open("a", encoding="utf-8") as stream:
                stream.writelines(f"{number},{line}\n" for line in lines)
            number += 1
            alarms += any(",regressed," in line for line in lines)
            red += any(line.split(",")[1] != "0" for line in lines)
            print(f"{alarms} of {number} runs had a false alarm, {red} were red", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
