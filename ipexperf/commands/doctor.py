"""`ipexperf doctor`: how well this machine measures, and how small a slowdown it can show."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning
from ipexperf.commands.progress import Progress
from ipexperf.errors import UsageError
from ipexperf.report.lines import Page, wrapped

if TYPE_CHECKING:
    from ipexperf.conduct.machine_checks import MachineFinding
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan.options import Options

SHORT = {"--seconds": "budget", "--max-pairs": "max_pairs", "--tolerance": "tolerance", "--alpha": "alpha"}
"""Short flags for the options that are most often given."""
WRONG = 1
"""Exit status of `doctor` if something is wrong."""
UNKNOWN = "the smallest slowdown that this machine can show is unknown"
DIFFERENT = ("regressed", "improved")
"""The outcomes by which equal software is called different."""
MARKS = {"ok": "ok", "note": "note", "wrong": "WRONG"}


def add_doctor(subparsers: console.Subparsers) -> None:
    purpose = "check this machine for measuring, and find the smallest slowdown it can show"
    parser = console.declare(subparsers, "doctor", purpose, run_doctor, console.PLAN, "doctor --seconds 60")
    parser.add_argument("--no-pairs", action="store_true", help="check the machine, but measure nothing")
    planning.add_short(parser, SHORT)
    planning.add_options(parser)


def run_doctor(arguments: argparse.Namespace) -> int:
    """Check the machine, then measure a case against itself."""
    from ipexperf.bench.machine.placement import allowed
    from ipexperf.compare import arm
    from ipexperf.conduct import machine_checks
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan import arms, matrix

    options = planning.resolve(arguments)
    matrix.check_names(options)
    arms.check(options)
    policy = PairPolicy(**arms.policy(options))
    facts = arm.facts(arms.ArmSpec(), options)
    findings = machine_checks.run_checks(machine_checks.CheckedMachine(Path("/"), tuple(allowed()), facts, os.environ))
    console.say("\n".join(_findings(findings)))
    sys.stdout.flush()
    wrong = any(finding.state == "wrong" for finding in findings)
    if not arguments.no_pairs:
        try:
            told = _measured(options, policy)
        except UsageError as error:
            if not wrong:
                raise
            told = [f"nothing was measured: {error}"]  # for instance without torch
        console.say("\n".join(line for text in told for line in wrapped(text)))
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
    """Measure the first case of the plan that can take turns against itself, and say what such pairs would show."""
    from ipexperf import run
    from ipexperf.compare import arm, sequence
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.errors import WorkerError
    from ipexperf.judge.sentence import sentence
    from ipexperf.plan import arms

    able = {case: arms.no_turns(case) for case in run.plan(options).cases}
    case = next((case for case, reason in able.items() if not reason), None)
    if case is None:
        raise UsageError(f"no case can take turns: {'; '.join(dict.fromkeys(filter(None, able.values())))}")
    with Progress() as progress, contextlib.closing(Conductor(options, Path.cwd(), progress.say)) as conductor:
        try:
            a, b = (arm.arm(conductor, case, arms.ArmSpec(), name) for name in ("as it is", "A/A"))
            same = sequence.Comparison(a, b, policy)
            for _ in sequence.PairedRounds([same], conductor, progress.say).play():
                """All pairs are made before anything is said."""
        except WorkerError as error:
            return [f"A/A of {case.id}: failed: {error.outcome}: {error}", UNKNOWN]
    if same.failure is not None:
        return [f"A/A of {case.id}: failed: {same.failure.error.outcome}: {same.failure.error}", UNKNOWN]
    if flaw := next(filter(None, same.flaws), ""):
        return [f"A/A of {case.id}: invalid: {flaw}", UNKNOWN]
    verdict = same.decision.verdict
    return [
        f"A/A of {case.id}: {verdict.outcome}: {sentence(verdict)}; {same.stop.text}",
        *_detectable(same.log_ratios, verdict.outcome, policy),
    ]


def _detectable(log_ratios: Sequence[float], outcome: str, policy: PairPolicy) -> list[str]:
    """The smallest slowdown that pairs like these would show."""
    from ipexperf.judge.policy import Policy
    from ipexperf.judge.sequential import SURE, reach
    from ipexperf.units import in_percent, plural

    smallest = reach(log_ratios, policy)
    if smallest is None:
        return [UNKNOWN]
    least, spread, at_most = (in_percent(x, 1) for x in (smallest.smallest, smallest.spread, smallest.at_most))
    effects = ", ".join(f"{in_percent(effect, 1)} after {pairs}" for pairs, effect in smallest.effects)
    pairs = plural(policy.max_pairs, "pair")
    sessions = f"{Policy().known_sessions} accepted sessions show how this machine varies"
    honest = f"the smallest slowdown that this machine can honestly gate on: {least} (in {pairs})"
    return [
        f"pairs spread by {spread}, and by no more than {at_most} with {in_percent(SURE)}",
        f"slowdowns that pairs would show in 4 of 5 comparisons: {effects}",
        "equal software was called different: do not trust a gate here" if outcome in DIFFERENT else honest,
        f"against a stored baseline: no case is called ok until {sessions}",
    ]


COMMANDS = (add_doctor,)
