"""`ipexperf doctor` and `ipexperf selftest`: how well this machine measures, and how well the judge judges on it."""

from __future__ import annotations

import argparse
import os
import random
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning, progress
from ipexperf.errors import UsageError
from ipexperf.report.lines import Page

if TYPE_CHECKING:
    from ipexperf.compare.round import Effort
    from ipexperf.conduct.machine_checks import MachineFinding
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan.options import Options
    from ipexperf.selftest import Selftest

SHORT = {"--seconds": "budget", "--max-pairs": "max_pairs", "--tolerance": "tolerance", "--alpha": "alpha"}
"""Short flags for the options that are most often given."""
WRONG = 1
"""Exit status of `doctor` if something is wrong."""
NOTHING = 1
"""Exit status of `selftest` if no trial was judged."""
MARKS = {"ok": "ok", "note": "note", "wrong": "WRONG"}


def add_doctor(subparsers: console.Subparsers) -> None:
    purpose = "check this machine for measuring, and find the smallest slowdown it can show"
    parser = console.declare(subparsers, "doctor", purpose)
    parser.add_argument("--no-pairs", action="store_true", help="check the machine, but measure nothing")
    planning.add_short(parser, SHORT)
    planning.add_options(parser)
    parser.set_defaults(run=run_doctor)


def run_doctor(arguments: argparse.Namespace) -> int:
    """Check the machine, then measure a case against itself."""
    from ipexperf.bench import loading
    from ipexperf.bench.machine.placement import allowed
    from ipexperf.compare import arm
    from ipexperf.conduct import machine_checks
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan import arms, matrix

    options = planning.resolve(arguments)
    loading.load(options.load)
    matrix.check_names(options)
    arms.check(options)
    policy = PairPolicy(**arms.policy(options))
    facts = arm.facts(arms.ArmWords(), options)
    findings = machine_checks.run_checks(machine_checks.CheckedMachine(Path("/"), tuple(allowed()), facts, os.environ))
    console.say("\n".join(_findings(findings)))
    sys.stdout.flush()
    wrong = any(finding.state == "wrong" for finding in findings)
    if not arguments.no_pairs:
        try:
            lines = _measured(options, policy)
        except UsageError as error:
            if not wrong:
                raise
            lines = [f"nothing was measured: {error}"]  # for instance without torch
        console.say("\n".join(lines))
    return WRONG if wrong else 0


def _findings(findings: Sequence[MachineFinding]) -> list[str]:
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        begin = f"{MARKS[finding.state]:<5}  {finding.name:<{width}}  "
        text = f"{finding.found}: {finding.advice}" if finding.advice else finding.found
        lines += textwrap.wrap(text, Page.width, initial_indent=begin, subsequent_indent=" " * len(begin))
    return lines


def _measured(options: Options, policy: PairPolicy) -> list[str]:
    """Measure the first case of the plan that can take turns against itself."""
    from ipexperf import run, selftest
    from ipexperf.compare import arm
    from ipexperf.compare.round import Effort
    from ipexperf.plan import arms
    from ipexperf.report import selftest as report

    trials, _ = selftest.plan(run.plan(options).cases, (), arm.facts(arms.ArmWords(), options))
    done = _selftest(options, policy, Effort(), None)
    try:
        done.run(trials[:1])
    finally:
        done.close()
    return report.detectable(done.done[0], policy) if done.done else ["nothing was measured: the time was up"]


def _selftest(
    options: Options, policy: PairPolicy, effort: Effort, seed: int | None, history: str | None = None
) -> Selftest:
    """What runs trials. It records them in this history, if any."""
    from ipexperf import selftest
    from ipexperf.conduct.conductor import Conductor

    chance = random.Random(seed)  # noqa: S311 - a start order, no secret
    conductor = Conductor(options, Path.cwd(), progress.say)
    return selftest.Selftest(conductor, policy, effort, chance, progress.say, history)


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
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan import arms, injections

    options = planning.resolve(arguments)
    arms.check(options)
    policy = PairPolicy(**arms.policy(options))
    plan = run.plan(options)
    facts = arm.facts(arms.ArmWords(), options)
    chosen = injections.chosen(arguments.injections, options, facts)
    trials, left_out = selftest.plan(plan.cases, chosen, facts)
    effort = Effort.of(arguments.turns, arguments.steps)
    done = _selftest(options, policy, effort, arguments.seed, None if "record" in options.without else options.db)
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
COMMANDS = (add_doctor, add_selftest)
