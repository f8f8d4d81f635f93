"""`ipexperf prepare`: makes what the chosen cases load, so that measuring them begins at once."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import planning
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.conduct.provisions import Provisions

FAILED = 1
"""The exit status where something could not be made; the rest is."""


def run_prepare(arguments: argparse.Namespace) -> int:
    """Goes through the plan case by case. What two of them load is made once, by whichever comes first."""
    from ipexperf import run
    from ipexperf.conduct.provisions import Provisions
    from ipexperf.report.units import plural

    options = planning.resolve(arguments)
    plan = run.plan(options)
    provisions = Provisions(options, Path.cwd(), _say)
    failed = 0
    for number, case in enumerate(plan.cases, 1):
        _say(f"case {number} of {len(plan.cases)}: {case.id}")
        failed += not _ready(provisions, case)
    made = sum(provisions.kept.values())
    told = f"{made} made, {len(provisions.kept) - made} there already, for {plural(len(plan.cases), 'case')}"
    sys.stdout.write(f"{told}{f'; {failed} could not be made' if failed else ''}\n")
    return FAILED if failed else 0


def _ready(provisions: Provisions, case: Case) -> bool:
    """Makes what one case loads, tells of each file that was not told of before, and whether all is there."""
    known = set(provisions.kept)
    try:
        provisions.ready(case)
    except WorkerError as error:
        sys.stdout.write(f"failed         {case.id}: {error.reason}\n")
        return False
    finally:
        for path, made in provisions.kept.items():
            if path not in known:
                sys.stdout.write(f"{'made' if made else 'there already':<13}  {path.parent.name}/{path.name}\n")
        sys.stdout.flush()
    return True


def _say(text: str) -> None:
    sys.stderr.write(f"  {text}\n")
