"""`ipexperf selftest`: test the judge on this machine with equal arms and with injected slowdowns."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning, progress

if TYPE_CHECKING:
    from collections import Counter

    from ipexperf.selftest import Selftest

SHORT = {"--seconds": "budget", "--max-pairs": "max_pairs", "--tolerance": "tolerance", "--alpha": "alpha"}
"""Short flags for the options that are most often given."""
NOTHING = 1
"""Exit status if no trial was judged."""


def add_selftest(subparsers: console.Subparsers) -> None:
    from ipexperf.plan.values import positive, words

    purpose = "test the judge on this machine: false alarms, and slowdowns found"
    parser = console.declare(subparsers, "selftest", purpose)
    add = parser.add_argument
    add("--rounds", type=positive, default=1, help="how often to repeat everything (default: %(default)s)")
    injections_help = "injections to try, or none: busy3, busy10, avx, channels_last, ... (default: all)"
    add("--injections", type=words, default=None, metavar="NAMES", help=injections_help)
    add(
        "--turns",
        type=positive,
        default=None,
        help="turns of each worker in a pair (default: until its ratio is known)",
    )
    add("--steps", type=positive, default=None, help="samples in a turn (default: about 50 ms of them)")
    add("--seed", type=int, default=None, help="seed of the random start order")
    planning.add_short(parser, SHORT)
    planning.add_options(parser)
    parser.set_defaults(run=run_selftest)


def run_selftest(arguments: argparse.Namespace) -> int:
    """Run trials until all are done or the time is over. Ctrl-C keeps what was measured."""
    from ipexperf import run, selftest
    from ipexperf.compare import arm
    from ipexperf.compare.round import Effort
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan import arms, injections

    options = planning.resolve(arguments)
    arms.check(options)
    policy = PairPolicy(**arms.policy(options))
    plan = run.plan(options)
    facts = arm.facts(arms.ArmWords(), options)
    chosen = injections.chosen(arguments.injections, options, facts)
    trials, left_out = selftest.plan(plan.cases, chosen, facts)
    conductor = Conductor(options, Path.cwd(), progress.say)
    effort = Effort.of(arguments.turns, arguments.steps)
    chance = random.Random(arguments.seed)  # noqa: S311 - a start order, no secret
    history = None if "record" in options.without else options.db
    done = selftest.Selftest(conductor, policy, effort, chance, progress.say, history)
    try:
        done.run(trials * arguments.rounds)
    finally:
        _print(done, left_out)
        done.close()
    return 0 if any(trial.counts for trial in done.done) else NOTHING


def _print(done: Selftest, left_out: Counter[str]) -> None:
    """Print the results so far."""
    from ipexperf.judge import selftest
    from ipexperf.report import selftest as report

    tolerance = done.policy.tolerance
    lines = report.lines(selftest.summarise(done.done, tolerance), selftest.spread(done.done), left_out)
    trials = done.all_trials()
    if len(trials) > len(done.done):
        text = report.rate_text(selftest.summarise(trials, tolerance).slower)
        lines.append(f"false alarms over all selftests of this machine that are kept: {text}")
    console.say("\n".join(lines))
    sys.stdout.flush()


TOPIC = console.PLAN
COMMANDS = (add_selftest,)
