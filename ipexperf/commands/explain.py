"""`ipexperf explain RUN CASE`: a dossier of a case, with both arms traced now: one page for whoever must mend it."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.case import NetworkCase
from ipexperf.commands import console, planning
from ipexperf.errors import UsageError
from ipexperf.verdict import PairsEvidence

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.history.records import Recorded
    from ipexperf.plan.options import Options


def add_explain(subparsers: console.Subparsers) -> None:
    purpose = "measure a case again, and write a page on why it is slower"
    parser = console.declare(subparsers, "explain", purpose, run_explain, console.COMPARE, "explain last CASE")
    parser.add_argument("selector", metavar="RUN", help=console.RUN)
    parser.add_argument("case_id", metavar="CASE", help="the id of a case of that run")
    text = "the other arm (default: the one of that run, or the case's baseline)"
    parser.add_argument("--against", default=None, metavar="ARM", help=text)
    parser.add_argument("--out", type=Path, default=Path("dossiers"), metavar="DIR", help="where (default: dossiers)")
    planning.add_options(parser)


def run_explain(arguments: argparse.Namespace) -> int:
    """Measure the case in pairs once more, as a test, and write its dossier whatever comes of it."""
    from ipexperf.history.store import History
    from ipexperf.pytest_session import CommandSession

    options = planning.resolve(arguments)
    with History.open(options.db, create=False) as history:
        cases = history.measurements(arguments.selector)
    recorded = console.chosen(cases, [arguments.case_id], arguments.selector)[0]
    case = recorded.case
    options = dataclasses.replace(
        _planning(case, options),
        against=_arm(recorded) if arguments.against is None else arguments.against,
        sources={**options.sources, "against": "--against"},
        explain=arguments.out,
        explain_all=True,
        without=(*options.without, "record"),
        benchmark=not isinstance(case, NetworkCase),
    )
    tests = ["--pyargs", "ipexperf.suites"] if isinstance(case, NetworkCase) else [_test(case.name)]
    return CommandSession(options).run([*tests, "-q", "-p", "no:cacheprovider"])


def _test(test: str) -> str:
    """The test of a function, as an argument of pytest. Raises UsageError for one that is not of this tree."""
    from ipexperf.bench.machine import source
    from ipexperf.report import rerun

    found, tree = rerun.here(test, Path.cwd()), source.tree()
    if test.startswith("-") or not Path(found.partition("::")[0]).resolve().is_relative_to(tree):
        raise UsageError(f"the history names the test {test!r}, which is not in {tree}: run it with pytest")
    return found


def _arm(recorded: Recorded) -> str:
    """The text of the other arm of a recorded case. Without one it is its baseline's.

    Raises UsageError for one that would run what is not in this tree: somebody else may have written the history.
    """
    from ipexperf.case import ITSELF
    from ipexperf.plan import arms
    from ipexperf.plan.arms import GIT
    from ipexperf.plan.values import BASELINE
    from ipexperf.redaction import TUNING

    evidence = recorded.verdict.evidence if recorded.verdict else None
    if not isinstance(evidence, PairsEvidence) or evidence.against.startswith(BASELINE):
        return BASELINE  # with its files too, which the name of its lock does not name
    if evidence.own:
        both = f"`ab` was given both of its arms ({evidence.against} and {evidence.own})"
        raise UsageError(f"{recorded.case.id}: {both}: name the one to compare with by --against")
    if evidence.against == ITSELF:
        return ""
    words = arms.parse(evidence.against, "the other arm")
    # Some variables that tune also name libraries to load.
    variables = words.variables.items()
    tuning = all(TUNING.match(name) and name[:3] != "LD_" and "/" not in value for name, value in variables)
    folder = words.source and not words.source.startswith(GIT)
    if words.python or words.lock or folder or not tuning or "model" in words.axes:
        raise UsageError(f"a history alone may not say what runs: name the other arm, --against {evidence.against!r}")
    return evidence.against


def _planning(case: Case, options: Options) -> Options:
    """The options that plan this case alone."""
    if not isinstance(case, NetworkCase):
        return dataclasses.replace(options, device=(case.device,))
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


COMMANDS = (add_explain,)
