"""`ipexperf ab`: two arms in pairs of live workers that take turns, until it is known whether one is slower."""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.case import Case
from ipexperf.commands import planning
from ipexperf.errors import UsageError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.conduct.pairs import Pairs
    from ipexperf.plan.arms import ArmWords

SHORT = {"--max-pairs": "max_pairs", "--budget": "budget", "--tolerance": "tolerance", "--alpha": "alpha"}
"""Short ways to say the options of the suite that an `ab` is most often given."""


def add_ab(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.add_argument(
        "--a", default="", metavar="ARM", help="first arm: PYTHON, KEY=VALUE, stack=stock, level=O0, ..."
    )
    parser.add_argument("--b", default="", metavar="ARM", help="second arm: its slowdown is reported")
    parser.add_argument("--turns", type=int, default=30, help="turns of each worker a pair (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=2, help="samples a turn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    planning.add_short(parser, SHORT)
    planning.add_options(parser)


def run_ab(arguments: argparse.Namespace) -> int:
    """Measures every planned case in both arms."""
    from ipexperf import run
    from ipexperf.bench import registry
    from ipexperf.conduct import pairs
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan import arms

    if min(arguments.turns, arguments.steps) < 1:
        raise UsageError("--turns and --steps must be at least 1")
    options = planning.resolve(arguments)
    for name in ("against", "inconclusive"):
        if options.sources.get(name, "").startswith("--"):
            raise UsageError(f"{options.sources[name]} is for tests: ab has --a and --b, and tells what it finds")
    arms.check(options)
    policy = PairPolicy(**arms.policy(options))
    registry.load(options.load)
    words = (arms.parse(arguments.a, "arm a"), arms.parse(arguments.b, "arm b"))
    if words[1].python is not None:  # else b is what the plan is made for
        options = dataclasses.replace(options, python=options.python or words[0].python)
    plan = run.plan(options)
    facts = [pairs.facts(arm, options, f"--{name}") for name, arm in zip("ab", words, strict=True)]
    conductor = Conductor(options, plan.launches, Path.cwd(), _say)
    effort = pairs.Effort(arguments.turns, arguments.steps, conductor.spent)
    chance = random.Random(arguments.seed)  # noqa: S311 - a start order, no secret
    # An axis that both arms set makes one comparison of several planned cases.
    compared = dict.fromkeys(
        tuple(arm.case(planned, known) for arm, known in zip(words, facts, strict=True)) for planned in plan.cases
    )
    for sides in compared:
        for name, (case, unmet), known, arm in zip("ab", sides, facts, words, strict=True):
            if reason := arms.why_not(case, known, unmet, arm.threads):
                raise UsageError(f"arm {name}: {case.id} cannot run: {reason}")
    for name, arm, cases in zip("ab", words, zip(*compared, strict=True), strict=True):
        pairs.check_imports((case for case, _ in cases), arm, options, f"arm {name}")
    policy = policy.shared(len(compared))
    try:
        for sides in compared:
            cases = [case for case, _ in sides]
            a, b = (pairs.arm(conductor, *x) for x in zip(cases, words, ("arm a", "arm b"), strict=True))
            found = pairs.measure(a, b, policy, effort, chance, _say)
            _refuse_wrong(found)
            sys.stdout.write("\n".join(_lines(cases, words, found)) + "\n")
    finally:
        conductor.close()
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"  {text}\n")


def _refuse_wrong(found: Pairs) -> None:
    """Ends the command where an arm failed, is not what its label says, or is wrong: there is nothing to compare."""
    from ipexperf.conduct import pairs

    if found.error is not None:
        raise found.error
    for pair in found.taken[:1]:
        for name, side in (("arm a", pair.a), ("arm b", pair.b)):
            if flaw := pairs.wrong(side.launch):
                raise WorkerError("error", f"{name}: {flaw}", side.launch.log)


def _lines(cases: Sequence[Case], words: Sequence[ArmWords], found: Pairs) -> list[str]:
    """What the pairs say: the arms, what they differ in, the verdict, and why there are no more pairs."""
    from ipexperf.conduct.pairs import SAME
    from ipexperf.conduct.turns import APART
    from ipexperf.report import units

    decision = found.decision
    lines = [f"{x}  {case.id} [{arm.text or 'as it is'}]" for x, case, arm in zip("ab", cases, words, strict=True)]
    if found.differences:
        lines += [f"differs  {line}" for line in found.differences]
    else:
        lines.append(f"{SAME}, so that what is found is noise")
    lines += _ran(found)
    lines += [APART] if found.apart else []
    if decision.ratio is not None:
        lines.append(f"time of b against a: {units.percent(decision.ratio)}")
    lines += [f"{decision.outcome}: {decision.reason}", f"stopped: {found.stopped}"]
    if decision.mde is not None:
        lines.append(f"a slowdown of {decision.mde:.1%} would have been seen in 4 of 5 such comparisons")
    if decision.ratio is not None:
        apart = (statistics.median(pair.b.times) / statistics.median(pair.a.times) for pair in found.taken)
        lines.append(f"the same pairs as if measured apart: {', '.join(map(units.percent, apart))}")
    return lines


def _ran(found: Pairs) -> list[str]:
    """What b runs otherwise than a, as the first pair was looked at."""
    from ipexperf.judge import structure

    sides = [side.launch.fingerprint for pair in found.taken[:1] for side in (pair.a, pair.b)]
    if None in sides or not sides:
        return []
    state = structure.between(*sides)
    return [f"ran      {line}" for line in state.changes or (state.reason or "the same kernels in both arms",)]
