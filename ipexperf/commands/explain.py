"""`ipexperf explain RUN CASE`: a dossier of a case, with both arms traced now: one page for whoever must mend it."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning
from ipexperf.errors import UsageError
from ipexperf.result import PairsEvidence

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.history.records import Recorded
    from ipexperf.plan.options import Options


def add_explain(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "explain", "measure a case again, and write a page on why it is slower")
    parser.add_argument("selector", metavar="RUN", help=console.RUN)
    parser.add_argument("case_id", metavar="CASE", help="the id of a case of that run")
    text = "the other arm (default: the one of that run, or the case's baseline)"
    parser.add_argument("--against", default=None, metavar="ARM", help=text)
    parser.add_argument("--out", type=Path, default=Path("dossiers"), metavar="DIR", help="where (default: dossiers)")
    planning.add_options(parser)
    parser.set_defaults(run=run_explain)


def run_explain(arguments: argparse.Namespace) -> int:
    """Measure the case in pairs once more, as a test, and write its dossier whatever comes of it."""
    from ipexperf.commands.why import named
    from ipexperf.history.store import History
    from ipexperf.invocation import Given

    options = planning.resolve(arguments)
    with History.open(options.db, create=False) as history:
        recorded = named(history, arguments.selector, arguments.case_id)[0]
    case = recorded.case
    options = dataclasses.replace(
        dataclasses.replace(options, device=(case.device,)) if case.is_call else _planning(case, options),
        against=_arm(recorded) if arguments.against is None else arguments.against,
        explain=arguments.out,
        explain_all=True,
        without=(*options.without, "record"),
        benchmark=case.is_call,
    )
    tests = [case.model] if case.is_call else ["--pyargs", "ipexperf.suites"]
    return Given(options).run([*tests, "-q", "-p", "no:cacheprovider"])


def _arm(recorded: Recorded) -> str:
    """The text of the other arm of a recorded case. Without one it is its baseline's."""
    from ipexperf.case import ITSELF
    from ipexperf.plan.values import BASELINE

    evidence = recorded.verdict.evidence if recorded.verdict else None
    if not isinstance(evidence, PairsEvidence) or evidence.against.startswith(BASELINE):
        return BASELINE  # with its files too, which the name of its lock does not name
    if evidence.own:
        both = f"`ab` was given both of its arms ({evidence.against} and {evidence.own})"
        raise UsageError(f"{recorded.case.id}: {both}: name the one to compare with by --against")
    return "" if evidence.against == ITSELF else evidence.against


def _planning(case: Case, options: Options) -> Options:
    """The options that plan this case alone."""
    return dataclasses.replace(
        options,
        model=options.model or (case.model,),
        device=(case.device,),
        dtype=(case.dtype,),
        mode=(case.mode,),
        stack=(case.stack,),
        batch=case.batch,
        size=case.size,
        knobs=case.settings,
    )


TOPIC = console.COMPARE
COMMANDS = (add_explain,)
