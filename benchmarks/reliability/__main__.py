"""Reliability as figures: kills at random moments, runs at the same time, and inputs that make no sense.

    python benchmarks/reliability --kills 100 --together 20 --inputs 1000

Needs no torch: what is measured are fakes. Prints tables in Markdown, and ends with 1 if anything was lost, damaged or
left behind, or if an input ended in a traceback.
"""

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import disks
import inputs
import kills
import soak
import together

T = TypeVar("T")
Column = str | Callable[[Sequence[Any]], int]
"""What a table sums of its trials: a field, of which texts count as one, or a function of them."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python benchmarks/reliability", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="how many processes to kill (default: 100)")
    victims = ", ".join(kills.VICTIMS)
    parser.add_argument("--victim", action="append", default=[], metavar="WHAT", help=f"kill only this: {victims}")
    parser.add_argument("--together", type=int, default=10, metavar="N", help="trials of several runs (default: 10)")
    parser.add_argument("--disks", type=int, default=3, metavar="N", help="trials of each full disk (default: 3)")
    parser.add_argument("--soak", type=float, default=2.0, metavar="MINUTES", help="how long to loop (default: 2)")
    parser.add_argument("--inputs", type=int, default=2000, metavar="N", help="how many inputs to try (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="what the trials and inputs follow from (default: 1)")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many trials at once")
    parser.add_argument(
        "--only", default="", metavar="KIND", help=f"only inputs of this kind: {', '.join(inputs.KINDS)}"
    )
    names = ", ".join(target.name for target in disks.TARGETS)
    parser.add_argument(
        "--disk", action="append", default=[], metavar="THING", help=f"only the disk with this on it: {names}"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.victim) - kills.VICTIMS.keys():
        parser.error(f"--victim: {min(unknown)!r} is none of {victims}")
    began = time.monotonic()
    counts = (
        f"{arguments.kills} kills, {arguments.together} times several runs, "
        f"{arguments.disks} trials of each full disk, {arguments.inputs} inputs"
    )
    print(f"seed {arguments.seed}, {counts}", flush=True)
    well = True
    measures = arguments.kills or arguments.together or arguments.disks or arguments.soak
    nursery = kills.Nursery() if measures and not arguments.only else None
    if arguments.kills and nursery:
        trials = kills.examine(arguments.kills, arguments.seed, arguments.jobs, nursery, _say, arguments.victim)
        print(_of_kills(trials), flush=True)
        well = len(trials) == arguments.kills and all(trial.well for trial in trials)
    if arguments.together and nursery:
        several = together.examine(arguments.together, arguments.seed, nursery, _say)
        print(_of_several(several), flush=True)
        well &= all(trial.well for trial in several)
    if arguments.disks and nursery:
        if reason := disks.why_not():
            print(f"\nno trial of a full disk: {reason}", flush=True)
        else:
            bad = disks.examine(arguments.disks, arguments.seed, nursery, _say, arguments.disk)
            print(_of_disks(bad), flush=True)
            well &= all(trial.well for trial in bad)
    if arguments.soak and nursery:
        loops = soak.examine(arguments.soak, nursery, _say)
        print(_of_soak(loops), flush=True)
        well &= all(loop.well for loop in loops)
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


def _of_kills(trials: Sequence[kills.Trial]) -> str:
    columns = {"in time": "hit", "finished": "finished", "lost": "lost", "damaged": "damaged", "orphans": "orphans"}
    columns |= {"next run failed": "next_failed", "other trouble": "trouble"}
    return _grouped("killed", trials, lambda trial: f"{trial.victim}, {trial.how}", columns)


def _of_several(trials: Sequence[together.Trial]) -> str:
    columns: dict[str, Column] = {"runs": "runs"}
    columns["most at once"] = lambda group: max((trial.runs for trial in group), default=0)
    columns |= {"finished": "finished", "lost": "lost", "damaged": "damaged", "orphans": "orphans"}
    columns["other runs failed"] = "failed"

    def name(trial: together.Trial) -> str:
        return f"{trial.lease}, {'one is killed' if trial.killed else 'none is killed'}"

    return _grouped("`--perf-lease`", trials, name, columns)


def _of_disks(trials: Sequence[disks.Trial]) -> str:
    columns: dict[str, Column] = {"ended well": lambda group: sum(trial.status == 0 for trial in group)}
    columns["refused"] = lambda group: sum(bool(trial.status) and not trial.trouble for trial in group)
    columns |= {"tests that passed": "passed", "lost": "lost", "damaged": "damaged", "other trouble": "trouble"}
    columns["failed with room"] = "again"
    return _grouped("what lies on the disk", trials, lambda trial: trial.target, columns)


def _of_soak(loops: Sequence[soak.Soak]) -> str:
    rows = []
    for loop in loops:
        rows.append(f"\n{loop.runs} runs, {loop.launches} launches, {loop.seconds:.0f} s. {loop.trouble}".rstrip())
        rows += ["\n| what | second quarter | last quarter | |", "|---|---|---|---|"]
        rows += [f"| {one.name} | {one.early:,.0f} | {one.late:,.0f} | {one.wrong or 'flat'} |" for one in loop.courses]
    return "\n".join(rows)


def _grouped(head: str, trials: Sequence[T], name: Callable[[T], str], columns: Mapping[str, Column]) -> str:
    """A table with a row for the trials of each name, and one for all."""
    groups: dict[str, list[T]] = defaultdict(list)
    for trial in trials:
        groups[name(trial)].append(trial)
    rows = [f"\n| {head} | trials | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 2)}"]
    for group_name, group in [*sorted(groups.items()), ("**all**", list(trials))]:
        figures = [len(group), *(_figure(group, column) for column in columns.values())]
        rows.append(f"| {group_name} | {' | '.join(map(str, figures))} |")
    return "\n".join(rows)


def _figure(group: Sequence[Any], column: Column) -> int:
    if callable(column):
        return column(group)
    values = [getattr(trial, column) for trial in group]
    return sum(
        bool(value) if isinstance(value, str) else len(value) if isinstance(value, list) else value for value in values
    )


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
