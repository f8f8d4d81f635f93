"""`ipexperf bisect`: find which package or variable makes a case slower."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.case import AXES
from ipexperf.commands import console, planning
from ipexperf.commands.progress import Progress
from ipexperf.errors import UsageError

if TYPE_CHECKING:
    from ipexperf.bisect import Report
    from ipexperf.case import Case
    from ipexperf.plan.options import Options
    from ipexperf.recorder import Recorder

SHORT = {"--max-pairs": "max_pairs", "--tolerance": "tolerance"}
UNKNOWN = 3
"""Exit status if nothing can be told."""


def add_bisect(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "bisect", "find which package or variable makes a case slower")
    text = "the quick end: PYTHON, lock:FILE, baseline:NAME or run:RUN, and KEY=VALUE (default: this interpreter)"
    parser.add_argument("--good", default="", metavar="ARM", help=text)
    parser.add_argument("--bad", default="", metavar="ARM", help="the slow end, said in the same way")
    parser.add_argument("--fresh", action="store_true", help="forget the answers of an earlier try")
    parser.add_argument("--no-fingerprint", action="store_true", help="let the clock answer every question")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    planning.add_short(parser, SHORT)
    planning.add_options(parser)
    parser.set_defaults(run=run_bisect)


def run_bisect(arguments: argparse.Namespace) -> int:
    """Search, and print what was found. Every answer is kept: after an interruption the same command goes on."""
    from ipexperf import bisect
    from ipexperf.bench import registry
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan import arms
    from ipexperf.recorder import Recorder

    options = planning.resolve(arguments)
    for name in ("against", "budget", "twin"):
        if options.sources.get(name, "").startswith("--"):
            raise UsageError(f"{options.sources[name]} is for test runs: bisect has --good and --bad")
    arms.check(options)
    registry.load(options.load)
    cache = (options.cache or Path.cwd() / ".ipexperf").absolute()
    progress = Progress()
    good = bisect.end(arguments.good, "--good", options, cache, progress.say)
    # Weights and the like are made by the good end: a candidate may be unable to.
    own = dataclasses.replace(options, python=good.python)
    case = _case(own)
    bad = bisect.end(arguments.bad, "--bad", options, cache, progress.say)
    options = own
    search = bisect.Search.of(good.lock, bad.lock, [good.inventory, bad.inventory])
    log = bisect.Log(bisect.log_path(cache, case, good.lock.digest, bad.lock.digest), fresh=arguments.fresh)
    progress.say(f"{len(search.changes)} differences between both ends; the answers are kept in {log.path}")
    conductor = Conductor(options, Path.cwd(), progress.say)
    laboratory = bisect.Laboratory(
        case,
        good,
        cache,
        conductor,
        lambda: _opened(Recorder(options, Path.cwd(), ("bisect", *sys.argv[2:]))),
        PairPolicy(**arms.policy(options)),
        progress,
        log,
        arguments.seed,
    )
    try:
        with progress:
            report = bisect.find(search, laboratory, progress.say, fingerprint=not arguments.no_fingerprint)
    except KeyboardInterrupt:
        progress.say(f"interrupted after {len(log)} answers, which are kept: the same command goes on")
        raise
    finally:
        conductor.close()
    report = bisect.with_neighbours(report, search, log.path)
    if arguments.json:
        json.dump(bisect.document(report), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.write("\n".join(bisect.lines(report, _again(case, report))) + "\n")
    return UNKNOWN if report.finding.outcome == "cannot tell" else 0


def _opened(recorder: Recorder) -> Recorder:
    recorder.open()
    return recorder


def _case(options: Options) -> Case:
    """The one case of the plan."""
    from ipexperf import run
    from ipexperf.plan import arms

    cases = run.plan(options).cases
    if len(cases) != 1:
        names = ", ".join(case.id for case in cases[:3]) or "none"
        raise UsageError(f"bisect measures one case, and these options choose {len(cases)} ({names}): name its axes")
    if reason := arms.no_turns(cases[0]):
        raise UsageError(f"{cases[0].id} cannot be measured in pairs: {reason}")
    return cases[0]


def _again(case: Case, report: Report) -> str:
    """The command that compares the last good and the first bad candidate."""
    if report.neighbours is None:
        return ""
    sides = (f"--{name} lock:{shlex.quote(str(path))}" for name, path in zip("ab", report.neighbours, strict=True))
    axes = " ".join(f"--{axis} {getattr(case, axis)}" for axis in AXES)
    return f"ipexperf ab {' '.join(sides)} {axes}"


COMMANDS = (add_bisect,)
