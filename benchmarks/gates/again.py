"""Bench, accept, bench, where nothing changes: how often each metric of the gate raises a false alarm.

Each time begins with an empty history and without baselines, as a new user does; trained weights are kept. Each line
of the file is a verdict of the second run: the number of the time, the exit status of its pytest, the case, the metric,
the outcome and the ratio. Lines are appended to an existing file. What follows the file are the words for pytest.

    python benchmarks/gates/again.py --times 20 again.csv suites/ --device cpu
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ipexperf.history import History

ACCEPT = ("-m", "ipexperf.cli", "baseline", "accept", "last", "--reason", "nothing else was running")


def python(*words: str) -> int:
    """Run Python with these words, and return its exit status."""
    return subprocess.run([sys.executable, *words], stdout=sys.stderr, check=False).returncode


def verdicts(words: Sequence[str], cache: Path) -> Iterator[str]:
    """Bench, accept and bench once. Yield the second run's exit status with each of its verdicts."""
    with tempfile.TemporaryDirectory(prefix="ipexperf-again-") as place:
        database, baselines = Path(place, "again.db"), Path(place, "baselines")
        bench = ("-m", "pytest", *words, f"--perf-db={database}", f"--perf-baselines={baselines}")
        bench = (*bench, f"--perf-cache={cache}")
        if python(*bench) or python(*ACCEPT, "--db", str(database), "--baselines", str(baselines)):
            sys.exit("the first run failed, or could not be accepted")
        status = python(*bench)
        with History.open(database, create=False) as history:
            for recorded in history.measurements(history.find_run("last").uid):
                verdict = recorded.verdict
                for one in (verdict.alone, *verdict.others) if verdict else ():
                    yield f"{status},{recorded.case.id},{one.metric},{one.outcome},{one.ratio}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--cache", type=Path, default=Path(".ipexperf"))
    parser.add_argument("file", type=Path)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    alarms = 0
    for number in range(arguments.times):
        lines = list(verdicts(arguments.words, arguments.cache.absolute()))
        with arguments.file.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{number},{line}\n" for line in lines)
        alarms += any(",regressed," in line for line in lines)
        print(f"{alarms} of {number + 1} runs had a false alarm", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
