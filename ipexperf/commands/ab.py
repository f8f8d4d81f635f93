"""`ipexperf ab`: two live workers take turns, and the ratio of neighbouring turns is what is reported."""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import shlex
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.case import AXES, Case
from ipexperf.commands import planning
from ipexperf.errors import UsageError

if TYPE_CHECKING:
    from ipexperf.bench.facts import Facts
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.conduct.turns import Arm


@dataclasses.dataclass(frozen=True, slots=True)
class ArmWords:
    """What an ARM text says: an interpreter, variables, axes, knobs."""

    python: str | None
    variables: Mapping[str, str]
    axes: Mapping[str, str]
    knobs: Mapping[str, str]

    def case(self, planned: Case, facts: Facts) -> tuple[Case, str | None]:
        """The planned case as this arm has it, and why it cannot have one of its knobs, or None."""
        from ipexperf.bench.kinds import Cell
        from ipexperf.plan import knobs
        from ipexperf.plan.placement import KNOB

        axes = {axis: self.axes.get(axis, getattr(planned, axis)) for axis in AXES}
        placed = [knob for knob in planned.knobs if knob[0] == KNOB]
        wish = {name: value for name, value in planned.knobs if name != KNOB} | dict(self.knobs)
        cell, reason = knobs.turned(Cell(**axes), tuple(sorted(wish.items())), facts)
        return dataclasses.replace(planned, **axes, knobs=tuple(sorted([*cell.knobs, *placed]))), reason


def parse_arm(text: str) -> ArmWords:
    """Words in one string: an interpreter's path, KEY=VALUE for the environment, name=value for the case."""
    from ipexperf.bench import registry
    from ipexperf.plan import knobs

    python = None
    found: dict[str, dict[str, str]] = {"variables": {}, "axes": {}, "knobs": {}}
    known = knobs.everyone()
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if equals and name in AXES:
            found["axes"][name] = value
        elif equals and name in known:
            found["knobs"][name] = value
        elif equals and name.isidentifier() and name.islower():
            # A misspelled knob must not become a variable that nobody reads.
            told = registry.unknown("axis or knob", name, [*AXES, *sorted(known)])
            raise UsageError(f"arm '{text}': {told} (variables have capitals)")
        elif equals and name.replace("_", "").isalnum() and name[0].isalpha():
            found["variables"][name] = value
        elif os.access(word, os.X_OK) and Path(word).is_file():
            python = word
        else:
            raise UsageError(
                f"arm '{text}': '{word}' is no interpreter, no KEY=VALUE, no knob, and none of {', '.join(AXES)}"
            )
    return ArmWords(python, **found)


def add_ab(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.add_argument(
        "--a", default="", metavar="ARM", help="first arm: PYTHON, KEY=VALUE, stack=stock, level=O0, ..."
    )
    parser.add_argument("--b", default="", metavar="ARM", help="second arm: its slowdown is reported")
    parser.add_argument("--pairs", type=int, default=4, help="pairs of fresh processes (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=30, help="turns of each worker a pair (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=2, help="samples a turn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    planning.add_options(parser)


def run_ab(arguments: argparse.Namespace) -> int:
    """Measures every planned case in both arms."""
    from ipexperf import run
    from ipexperf.bench import registry
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.conduct.worker import ask_facts
    from ipexperf.plan import matrix, start

    if min(arguments.pairs, arguments.turns, arguments.steps) < 1:
        raise UsageError("--pairs, --turns and --steps must be at least 1")
    options = planning.resolve(arguments)
    if options.start == start.FORK:
        source = options.sources.get("start", "--perf-start")
        raise UsageError(f"{source}: pairs of fresh processes are what ab compares: leave it at {start.FRESH}")
    registry.load(options.load)
    words = (parse_arm(arguments.a), parse_arm(arguments.b))
    options = dataclasses.replace(options, python=options.python or words[0].python)
    plan = run.plan(options)
    facts = []
    for name, arm in zip("ab", words, strict=True):
        for axis, value in arm.axes.items():
            matrix.check(axis, [value], f"arm {name}")
        devices = [value for axis, value in arm.axes.items() if axis == "device"]
        asked = matrix.accelerators(options, *devices)
        variables = {**matrix.variables(options, asked), **arm.variables}
        facts.append(ask_facts(arm.python or options.python, asked, variables, matrix.packages()))
    conductor = Conductor(options, plan.launches, Path.cwd(), _say)
    chance = random.Random(arguments.seed)  # noqa: S311 - a start order, no secret
    # An axis that both arms set makes one comparison of several planned cases.
    compared = dict.fromkeys(
        tuple(arm.case(planned, known) for arm, known in zip(words, facts, strict=True)) for planned in plan.cases
    )
    for sides in compared:
        for name, (case, reason), known in zip("ab", sides, facts, strict=True):
            _check(name, case, known, reason)
        a, b = (_arm(conductor, case, arm) for (case, _), arm in zip(sides, words, strict=True))
        _compare(a, b, arguments, chance)
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"  {text}\n")


def _check(name: str, case: Case, facts: Facts, unmet: str | None) -> None:
    """Refuses an arm that cannot run, before anything is measured."""
    from ipexperf.bench import registry
    from ipexperf.bench.kinds import Cell
    from ipexperf.plan import matrix

    reason = matrix.why_not(Cell(**{axis: getattr(case, axis) for axis in AXES}, knobs=case.knobs), facts) or unmet
    if not reason and registry.modes.get(case.mode).batch is not None:
        reason = f"the workers of {case.mode} answer beside one another, and those of ab take turns"
    if not reason and registry.modes.get(case.mode).cold:
        reason = f"{case.mode} is timed once a process, and the workers of ab take many turns"
    if reason:
        raise UsageError(f"arm {name}: {case.id} cannot run: {reason}")


def _arm(conductor: Conductor, case: Case, words: ArmWords) -> Arm:
    """A case under the conditions of its arm."""
    from ipexperf.conduct.turns import Arm
    from ipexperf.conduct.worker import QUIET

    ready = conductor.ready(case, words.python)
    # Whatever the shell says, the one that waits must not spin in the other's turn; an arm may say otherwise.
    variables = {**ready.variables, **QUIET, **words.variables}
    return Arm(case, dataclasses.replace(ready, python=words.python or ready.python, variables=variables))


def _compare(a: Arm, b: Arm, arguments: argparse.Namespace, chance: random.Random) -> None:
    """Pairs of fresh processes, each pair one ratio; what the same pairs would say apart is shown beside it."""
    from ipexperf.conduct import turns
    from ipexperf.judge import pairs
    from ipexperf.report import units

    ratios, apart = [], []
    for index in range(arguments.pairs):
        _say(f"{a.case.id} against {b.case.id}: pair {index + 1} of {arguments.pairs}")
        told = turns.take(a, b, arguments.turns, arguments.steps, chance, _say, prove=index == 0)
        times_a = [sum(sample.wall for sample in turn) for turn in told.a]
        times_b = [sum(sample.wall for sample in turn) for turn in told.b]
        ratios.append(pairs.neighbour_ratio(times_a, times_b))
        apart.append(statistics.median(times_b) / statistics.median(times_a))
    result = pairs.combine(ratios)
    named = [f"{arm.case.id} [{text or 'as it is'}]" for arm, text in ((a, arguments.a), (b, arguments.b))]
    interval = ": one pair has no interval"
    if result.lo is not None and result.hi is not None:
        interval = f", 95 % interval {units.interval(result.lo, result.hi)}, {result.pairs} pairs"
    told_apart = ", ".join(units.percent(ratio) for ratio in apart)
    sys.stdout.write(
        f"a  {named[0]}\nb  {named[1]}\n"
        f"time of b against a: {units.percent(result.ratio)}{interval}\n"
        f"the same pairs as if measured apart: {told_apart}\n"
    )
