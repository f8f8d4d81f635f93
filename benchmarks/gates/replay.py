"""Let the judge of metrics beside speed decide on recorded processes, with what was added known.

A run has one of the recorded processes of a case, drawn at random, and so has each session of its baseline. What looks
regressed is looked at again with other processes, as a run does. Nothing is measured.

    python benchmarks/gates/replay.py recorded.csv
"""

import csv
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ipexperf.case import NetworkCase
from ipexperf.judge import metrics
from ipexperf.judge.baseline import CaseBaseline, Session
from ipexperf.judge.policy import Policy
from ipexperf.plan.gates import by_default
from ipexperf.result import METRICS
from ipexperf.running.measurer import FRESH_PROCESSES

RUNS = 1000
"""Simulated runs for each number of the table."""
EFFECTS = (0.0, 0.01, 0.02, 0.10)
REPEATED = {metric.repeated: metric.name for metric in METRICS.values() if metric.repeated}
"""The metrics of repeated builds, with the metric in whose place pairs judge them."""
ALPHA = Policy().alpha / len(metrics.beside_speed(by_default()))
CASE = NetworkCase("any", "cpu", "fp32", "infer", "stock", 1, 1)
PLAIN = CaseBaseline(CASE, (), {}, "", "", "", None, {})


def read(path: Path) -> dict[tuple[str, str, str], dict[int, dict[str, float]]]:
    """The recorded values: of each case, way to start and metric those of each pair, by side."""
    values: dict[tuple[str, str, str], dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    with path.open(encoding="utf-8") as stream:
        for case, how, number, side, metric, value in csv.reader(stream):
            values[case, how, metric][int(number)][side] = float(value)
    return values


def stored(
    metric: str, values: Sequence[float], again: int, sessions: int, effect: float, chance: random.Random
) -> bool:
    """Whether a run that takes this much more is called regressed, twice in a row, against so many sessions."""

    def run(launches: int) -> float:
        return METRICS[metric].of_launches(chance.sample(values, launches))

    made = tuple(Session(str(number), "", "", (1.0,), {metric: run(1)}) for number in range(sessions))
    baseline = replace(PLAIN, sessions=made)
    return all(
        metrics.in_sessions({metric: run(look) * (1 + effect)}, baseline, (metric,), ALPHA)[0].outcome == "regressed"
        for look in (1, again)
    )


def paired(metric: str, pairs: Sequence[dict[str, float]], count: int, effect: float, chance: random.Random) -> bool:
    """Whether so many pairs, whose second process takes this much more, are called regressed."""
    drawn = [
        (one["a"], one["b"]) if chance.random() < 0.5 else (one["b"], one["a"]) for one in chance.sample(pairs, count)
    ]
    judged = REPEATED.get(metric, metric)
    sides = [({metric: a}, {metric: b * (1 + effect)}) for a, b in drawn]
    return any(one.outcome == "regressed" for one in metrics.in_pairs(sides, (judged,), ALPHA))


def share(hits: Sequence[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.1f}"


def main() -> None:
    chance = random.Random(1)  # noqa: S311 - a simulation, no secret
    values = read(Path(sys.argv[1]))
    effects = " | ".join(f"{effect:.0%}" for effect in EFFECTS)
    print(f"| metric | case | start | processes | spread | against | {effects} |")
    print(f"|---|---|---|---|---|---|{'---|' * len(EFFECTS)}")
    for (case, how, metric), by_pair in sorted(values.items(), key=lambda item: (item[0][2], item[0])):
        pairs = [one for one in by_pair.values() if len(one) == 2]
        single = [value for one in pairs for value in one.values()]
        if (metric not in REPEATED and METRICS[metric].gate is None) or len(pairs) < 6:
            continue
        if how == "forked" and METRICS[metric].fresh:
            continue
        middle = sorted(single)[len(single) // 2]
        spread = f"{min(single) / middle - 1:+.2%} to {max(single) / middle - 1:+.2%}"
        head = f"| {metric} | {case} | {how} | {len(single)} | {spread} |"
        gate = METRICS[metric].gate
        again = FRESH_PROCESSES if gate is not None and gate.smallest else 1
        for sessions in (1, 3) if gate is not None else ():
            rows = [
                [stored(metric, single, again, sessions, effect, chance) for _ in range(RUNS)] for effect in EFFECTS
            ]
            text = f"{sessions} session{'s' * (sessions > 1)}"
            print(f"{head} {text} | {' | '.join(map(share, rows))} |")
        for count in (1, 4, FRESH_PROCESSES, min(10, len(pairs))):
            rows = [[paired(metric, pairs, count, effect, chance) for _ in range(RUNS)] for effect in EFFECTS]
            print(f"{head} {count} pair{'s' * (count > 1)} | {' | '.join(map(share, rows))} |")


if __name__ == "__main__":
    main()
