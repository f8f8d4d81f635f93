"""Reliability as figures: kills at random moments, runs at the same time, and inputs that make no sense.

    python benchmarks/reliability --kills 100 --together 20 --inputs 1000

Needs no torch: what is measured are fakes. Prints tables in Markdown, and ends with 1 if anything was lost, damaged or
left behind, or if an input ended in a traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import inputs  # noqa: E402 - beside this file
import kills  # noqa: E402 - as above
import together  # noqa: E402 - as above


def main() -> int:
    parser = argparse.ArgumentParser(prog="python benchmarks/reliability", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="how many processes to kill (default: 100)")
    parser.add_argument("--together", type=int, default=10, metavar="N", help="runs at the same time (default: 10)")
    parser.add_argument("--inputs", type=int, default=2000, metavar="N", help="how many inputs to try (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="what the trials and inputs follow from (default: 1)")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many trials at once")
    parser.add_argument(
        "--only", default="", metavar="KIND", help=f"only inputs of this kind: {', '.join(inputs.KINDS)}"
    )
    arguments = parser.parse_args()
    began = time.monotonic()
    counts = f"{arguments.kills} kills, {arguments.together} times several runs, {arguments.inputs} inputs"
    print(f"seed {arguments.seed}, {counts}", flush=True)
    well = True
    if arguments.kills and not arguments.only:
        trials = kills.examine(arguments.kills, arguments.seed, arguments.jobs, _say)
        print(_of_kills(trials), flush=True)
        well = len(trials) == arguments.kills and all(trial.well for trial in trials)
    if arguments.together and not arguments.only:
        several = together.examine(arguments.together, arguments.seed, _say)
        print(_of_several(several), flush=True)
        well &= all(trial.well for trial in several)
    if arguments.inputs:
        with inputs.laboratory() as lab:
            table = inputs.examine(arguments.inputs, arguments.seed, lab, _say, arguments.only)
        print(_of_inputs(table), flush=True)
        for count in table.values():
            for text in count.examples:
                print(f"\n{text}")
        well &= not any(count.tracebacks for count in table.values())
    print(f"\n{'all well' if well else 'NOT WELL'} after {time.monotonic() - began:.0f} s", flush=True)
    return 0 if well else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _of_kills(trials: Iterable[kills.Trial]) -> str:
    groups: dict[str, list[kills.Trial]] = defaultdict(list)
    for trial in trials:
        groups[f"{trial.victim}, {trial.how}"].append(trial)
    groups = dict(sorted(groups.items()))
    rows = [
        "\n| killed | trials | in time | finished | lost | damaged | orphans | next run failed | other trouble |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    everything = [trial for group in groups.values() for trial in group]
    for name, group in [*groups.items(), ("**all**", everything)]:
        figures = (
            len(group),
            sum(trial.hit for trial in group),
            sum(trial.finished for trial in group),
            sum(len(trial.lost) for trial in group),
            sum(bool(trial.damaged) for trial in group),
            sum(trial.orphans for trial in group),
            sum(bool(trial.next_failed) for trial in group),
            sum(bool(trial.trouble) for trial in group),
        )
        rows.append(f"| {name} | {' | '.join(map(str, figures))} |")
    return "\n".join(rows)


def _of_several(trials: Iterable[together.Trial]) -> str:
    groups: dict[str, list[together.Trial]] = defaultdict(list)
    for trial in trials:
        groups[f"{trial.lease}, {'one is killed' if trial.killed else 'none is killed'}"].append(trial)
    groups = dict(sorted(groups.items()))
    rows = [
        "\n| `--perf-lease` | trials | runs | most at once | finished | lost | damaged | orphans | other runs failed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    everything = [trial for group in groups.values() for trial in group]
    for name, group in [*groups.items(), ("**all**", everything)]:
        figures = (
            len(group),
            sum(trial.runs for trial in group),
            max((trial.runs for trial in group), default=0),
            sum(trial.finished for trial in group),
            sum(trial.lost for trial in group),
            sum(bool(trial.damaged) for trial in group),
            sum(trial.orphans for trial in group),
            sum(trial.failed for trial in group),
        )
        rows.append(f"| {name} | {' | '.join(map(str, figures))} |")
    return "\n".join(rows)


def _of_inputs(table: Mapping[str, inputs.Count]) -> str:
    rows = ["\n| input | tried | used | refused | tracebacks |", "|---|---|---|---|---|"]
    rows += [
        f"| {kind} | {count.all} | {count.used} | {count.refused} | {count.tracebacks} |"
        for kind, count in table.items()
    ]
    sums = [sum(getattr(count, name) for count in table.values()) for name in ("all", "used", "refused", "tracebacks")]
    return "\n".join([*rows, f"| **all** | {' | '.join(map(str, sums))} |"])


if __name__ == "__main__":
    sys.exit(main())
