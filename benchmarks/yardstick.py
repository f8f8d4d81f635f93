"""How much a yardstick improves the screen: the spread of sessions of identical code, in seconds and in its units.

Reads a history of runs at different times with `--perf-yardstick`. Each launch has both numbers: the step time in
seconds, and in steps of the yardstick that took turns with it. The level of a session is the mean of its launches on
the log scale, as for the judge. `sharper` is the spread in seconds over that in units of the yardstick.

    python benchmarks/yardstick.py --db yardstick.db
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

from ipexperf.errors import IpexperfError
from ipexperf.history import History
from ipexperf.judge.policy import Policy
from ipexperf.judge.spread import between_sessions, robust_scale
from ipexperf.result import PRIMARY, RELATIVE

HEAD = ("case", "unit", "sessions", "log sd", "robust", "furthest apart", "the judge reckons with", "sharper")


def sessions(db: str) -> dict[str, dict[str, list[float]]]:
    """Return the level of each session on the log scale, by case and metric, oldest first."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with History.open(db, create=False) as history:
        for run in reversed(history.runs(None)):
            for recorded in history.measurements(run.uid):
                if recorded.outcome != "failed" and all(recorded.values.get(name) for name in (PRIMARY, RELATIVE)):
                    for name in (PRIMARY, RELATIVE):
                        level = statistics.fmean(map(math.log, recorded.values[name]))
                        found[recorded.case.id][name].append(level)
    return found


def row(case: str, unit: str, levels: Sequence[float], over: float) -> str:
    """Format a row: the spread of these levels, and by which factor it is smaller than the other."""
    spread = statistics.stdev(levels)
    judged = between_sessions(levels[-Policy().kept_sessions :], Policy()).scale
    shares = (spread, robust_scale(levels), math.expm1(max(levels) - min(levels)), judged)
    told = (case, unit, str(len(levels)), *(f"{100 * share:.1f} %" for share in shares), f"{over / spread:.2g}")
    return f"| {' | '.join(told)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", default="ipexperf.db", help="history file (default: %(default)s)")
    told = parser.parse_args()
    try:
        found = sessions(told.db)
    except IpexperfError as error:
        sys.exit(f"yardstick.py: {error}")
    if not any(len(levels[PRIMARY]) >= 3 for levels in found.values()):
        sys.exit(f"yardstick.py: {told.db}: no case has three sessions beside a yardstick")
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for case, levels in sorted(found.items()):
        if len(levels[PRIMARY]) >= 3:
            seconds = statistics.stdev(levels[PRIMARY])
            print(row(case, "seconds", levels[PRIMARY], seconds))
            print(row(case, "yardsticks", levels[RELATIVE], seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
