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
    from ipexperf.conduct.turns import Turns


@dataclasses.dataclass(frozen=True, slots=True)
class ArmWords:
    """What an ARM text says: an interpreter, variables, axes."""

    python: str | None
    variables: Mapping[str, str]
    axes: Mapping[str, str]

    def case(self, case: Case) -> Case:
        return Case.from_json({**case.to_json(), **self.axes})


def parse_arm(text: str) -> ArmWords:
    """Words in one string: an interpreter's path, KEY=VALUE for the environment, axis=value for the case."""
    python, variables, axes = None, {}, {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if equals and name in AXES:
            axes[name] = value
        elif equals and name.replace("_", "").isalnum() and name[0].isalpha():
            variables[name] = value
        elif os.access(word, os.X_OK) and Path(word).is_file():
            python = word
        else:
            raise UsageError(f"arm '{text}': '{word}' is no interpreter, no KEY=VALUE, and none of {', '.join(AXES)}")
    return ArmWords(python, variables, axes)


def add_ab(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.add_argument("--a", default="", metavar="ARM", help="first arm: PYTHON, KEY=VALUE, stack=stock, ...")
    parser.add_argument("--b", default="", metavar="ARM", help="second arm: its slowdown is reported")
    parser.add_argument("--pairs", type=int, default=4, help="pairs of fresh processes (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=30, help="turns of each worker a pair (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=2, help="samples a turn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    planning.add_options(parser)


def run_ab(arguments: argparse.Namespace) -> int:
    """Measures every planned case in both arms."""
    from ipexperf import run
    from ipexperf.bench.kinds import Cell
    from ipexperf.conduct import turns
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.conduct.worker import ask_facts
    from ipexperf.judge import pairs
    from ipexperf.plan import matrix
    from ipexperf.report import units

    if min(arguments.pairs, arguments.turns, arguments.steps) < 1:
        raise UsageError("--pairs, --turns and --steps must be at least 1")
    options = planning.resolve(arguments)
    arms = {"a": parse_arm(arguments.a), "b": parse_arm(arguments.b)}
    options = dataclasses.replace(options, python=options.python or arms["a"].python)
    plan = run.plan(options)
    facts = {name: ask_facts(arm.python, matrix.accelerators(options)) for name, arm in arms.items()}
    chance = random.Random(arguments.seed)  # noqa: S311 - a start order, no secret

    def say(text: str) -> None:
        sys.stderr.write(f"  {text}\n")

    conductor = Conductor(options, plan.launches, Path.cwd(), say)
    for planned in plan.cases:
        made = {}
        for name, arm in arms.items():
            case = arm.case(planned)
            for axis in arm.axes:
                if getattr(case, axis) not in matrix.names(axis):
                    raise UsageError(f"arm {name}: there is no {axis} '{getattr(case, axis)}'")
            reason = matrix.why_not(Cell(**{axis: getattr(case, axis) for axis in AXES}), facts[name])
            if reason:
                raise UsageError(f"arm {name}: {case.id} cannot run: {reason}")
            ready = conductor.ready(case)
            conditions = dataclasses.replace(ready, python=arm.python, variables=dict(arm.variables))
            made[name] = turns.Arm(case, conditions)
        ratios, apart = [], []
        for index in range(arguments.pairs):
            say(f"{planned.id}: pair {index + 1} of {arguments.pairs}")
            told = turns.take(made["a"], made["b"], arguments.turns, arguments.steps, chance, say)
            a, b = _times(told)
            ratios.append(pairs.neighbour_ratio(a, b))
            apart.append(statistics.median(b) / statistics.median(a))
        result = pairs.combine(ratios)
        sys.stdout.write(
            f"{made['a'].case.id} [{arguments.a or 'as it is'}] against "
            f"{made['b'].case.id} [{arguments.b or 'as it is'}]\n"
            f"  b takes {units.percent(result.ratio)} against a"
        )
        if result.lo is not None and result.hi is not None:
            sys.stdout.write(f", 95 % interval {units.interval(result.lo, result.hi)}, {result.pairs} pairs\n")
        else:
            sys.stdout.write(": one pair has no interval\n")
        told_apart = ", ".join(units.percent(ratio) for ratio in apart)
        sys.stdout.write(f"  the same pairs as if measured apart: {told_apart}\n")
    return 0


def _times(told: Turns) -> tuple[list[float], list[float]]:
    """The time of each turn."""
    return ([sum(x.wall for x in turn) for turn in told.a], [sum(x.wall for x in turn) for turn in told.b])
