"""Real trials of live baselines: does `pytest suites/` see that a new version is slower than the accepted one?

Environments are made that differ from this interpreter's in one small package, which slows a network by a share of its
own time. The first is measured and accepted. Then every trial is a whole run of `pytest suites/` in another one, judged
live against the lock of the first. Environments of the same packages share their files.

    python benchmarks/live_trials.py FOLDER --shares 0 0.05 --trials 10
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from small_wheel import wheel

from ipexperf import lock as locks
from ipexperf.environments import make
from ipexperf.lock import Lock

ROOT = Path(__file__).parents[1]
NETWORK = Path(__file__).with_name("live_network.py")
NAME = "slowdown"


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def environment(cache: Path, here: Lock, package: Path) -> str:
    """An environment with all packages of this interpreter and that of a wheel. Returns its interpreter."""
    lock = locks.with_package(here, make.keep_wheel(cache, package, here, say))
    return make.make(cache, lock, say).python


class Trials:
    """Runs the suite in a folder that has its own history, baselines and cache."""

    def __init__(self, folder: Path, cell: list[str]) -> None:
        self._folder = folder
        self._where = [f"--perf-db={folder / 'trials.db'}", f"--perf-baselines={folder / 'baselines'}"]
        self._where += [f"--perf-cache={folder / 'cache'}"]
        self._cell = cell

    def run(self, python: str, *more: str) -> tuple[dict[str, Any], float]:
        """Run the suite under an interpreter. Returns the row of the case, and the seconds."""
        command = [sys.executable, "-m", "pytest", "suites/test_own.py", "-q", f"--model={NETWORK}:network@3x32x32"]
        begin = time.monotonic()
        variables = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
        done = subprocess.run(
            [*command, *self._cell, *self._where, f"--perf-python={python}", *more],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - begin
        if done.returncode not in (0, 1):
            raise SystemExit(done.stdout + done.stderr)
        [row] = json.loads(self._ask("show", "last", "--json"))["cases"]
        return row, seconds

    def accept(self) -> None:
        say(self._ask("baseline", "accept", "last", "--reason", "trials", f"--baselines={self._folder / 'baselines'}"))

    def _ask(self, *words: str) -> str:
        command = [sys.executable, "-m", "ipexperf.cli", *words, f"--db={self._folder / 'trials.db'}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for environments, history and baselines; may exist")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.05], help="slow-downs to try")
    parser.add_argument("--trials", type=int, default=10, help="of each share")
    parser.add_argument("--seed", type=int, default=1, help="of the order of trials")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    here = locks.make(make.take_inventory(), software={}, variables={})
    pythons = {}
    for share in (None, *arguments.shares):
        # The version says the share, so that a folder that is there already holds nothing else under the same name.
        version = "0" if share is None else f"1.{round(1e6 * share)}"
        package = wheel(folder, NAME, version, {"SHARE": share or 0.0})
        pythons[share] = environment(folder / "cache", here, package)
    # Stock, because IPEX's folding traces the network, and what forward did beside its operators is gone then.
    trials = Trials(folder, ["--dtype=fp32", "--mode=infer", "--stack=stock"])
    if not (folder / "baselines").exists():
        trials.run(pythons[None], "--perf-launches=3")
        trials.accept()
    order = [share for share in arguments.shares for _ in range(arguments.trials)]
    random.Random(arguments.seed).shuffle(order)  # noqa: S311 - an order, no secret
    results: dict[float, list[tuple[str, float]]] = {}
    for number, share in enumerate(order, 1):
        row, seconds = trials.run(pythons[share], "--perf-against=baseline")
        results.setdefault(share, []).append((row["outcome"], seconds))
        reason = row["verdict"]["sentence"]
        say(f"trial {number} of {len(order)}: {share:.0%}: {row['outcome']} in {seconds:.0f} s: {reason}")
    print("| slower by | trials | regressed | ok | undecided | other | seconds, median |")
    print("|---|---|---|---|---|---|---|")
    for share, rows in sorted(results.items()):
        outcomes = [outcome for outcome, _ in rows]
        usual = [outcomes.count(name) for name in ("regressed", "ok", "inconclusive")]
        middle = statistics.median(seconds for _, seconds in rows)
        cells = [f"{share:.0%}", len(rows), *usual, len(rows) - sum(usual), f"{middle:.0f}"]
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
