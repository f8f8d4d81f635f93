"""`ipexperf doctor`: check a machine for measuring, and find the smallest slowdown that it can show."""

from __future__ import annotations

import argparse
import os
import random
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning, progress
from ipexperf.errors import UsageError
from ipexperf.report.lines import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.conduct.machine_checks import MachineFinding
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan.options import Options

SHORT = {"--seconds": "budget", "--max-pairs": "max_pairs", "--tolerance": "tolerance", "--alpha": "alpha"}
WRONG = 1
"""Exit status if something is wrong."""
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
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan import arms
    from ipexperf.report import detectable_effect as report

    plan = run.plan(options)
    facts = arm.facts(arms.ArmWords(), options)
    trials, _ = selftest.plan(plan.cases, (), facts)
    conductor = Conductor(options, Path.cwd(), progress.say)
    chance = random.Random()  # noqa: S311 - a start order, no secret
    done = selftest.Selftest(conductor, policy, Effort(), chance, progress.say)
    try:
        done.run(trials[:1])
    finally:
        done.close()
    return report.lines(done.done[0], policy) if done.done else ["nothing was measured: the time was up"]


TOPIC = console.PLAN
COMMANDS = (add_doctor,)
