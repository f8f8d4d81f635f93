"""`ipexperf bisect`: find which package, variable, version or commit makes a case slower."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import scratch
from ipexperf.commands import console, planning, program
from ipexperf.commands.progress import Progress
from ipexperf.errors import UsageError
from ipexperf.history import addresses
from ipexperf.plan.values import words

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.programs import Program
    from ipexperf.compare.rounds import Schedule
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.judge.bisection import BisectionRecord, Candidate, SearchResult
    from ipexperf.plan.arms import ArmSpec
    from ipexperf.plan.options import Options
    from ipexperf.tools.bisect.answers import AnswerLog, Measured
    from ipexperf.tools.bisect.search import Ends
    from ipexperf.tools.bisect.software import End, Say

    Walks = Callable[[ArmSpec, ArmSpec], AbstractContextManager[Schedule]]

SHORT = {"--max-pairs": "max_pairs", "--tolerance": "tolerance"}
UNKNOWN = 3
"""Exit status if nothing can be told."""


def add_bisect(subparsers: console.Subparsers) -> None:
    purpose = "find which package, variable, version or commit makes a case slower"
    parser = console.declare(
        subparsers, "bisect", purpose, run_bisect, console.COMPARE, "bisect --bad lock:new.txt --model vgg16"
    )
    parser.usage = "ipexperf bisect [options] [-- TEST ...]"
    parser.add_argument("--good", default="", metavar="ARM", help="the quick end (default: this interpreter)")
    parser.add_argument("--bad", default=None, metavar="ARM", help="the slow end, written like --good")
    changed = parser.add_argument_group("versions of one package, drivers or commits, beside the packages of --good")
    changed.add_argument("--package", metavar="NAME", help="the package")
    text = "in this order, the quick one first; or FIRST..LAST"
    changed.add_argument("--versions", metavar="A,B,C", help=text)
    changed.add_argument("--drivers", metavar="A,B,C", type=words, help="folders with a driver, the quick one first")
    changed.add_argument("--commits", metavar="GOOD..BAD", help="the commits of the first-parent line")
    changed.add_argument("--repo", type=Path, metavar="FOLDER", help="their repository (default: this folder)")
    changed.add_argument("--build", metavar="COMMAND", help="what to run in each clone")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    text = "a test of a function; with --program a command"
    parser.add_argument("tests", nargs="*", metavar="-- TEST", help=text)
    program.add_options(parser)
    planning.add_short(parser, SHORT)
    planning.add_options(parser, without=("budget",))


def run_bisect(arguments: argparse.Namespace) -> int:
    """Search, and print what was found. Every answer is kept: after an interruption the same command goes on."""
    from ipexperf.bench import loading
    from ipexperf.conduct import interrupts
    from ipexperf.conduct.conductor import Conductor, now
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan import arms
    from ipexperf.tools.bisect import search
    from ipexperf.tools.bisect.answers import AnswerLog, log_path
    from ipexperf.tools.bisect.laboratory import Laboratory

    options = planning.resolve(arguments)
    _check(arguments)
    arms.check(options)
    if "record" not in options.without:
        addresses.check_local(options.db)  # not after the hours in which both ends are made
    policy = PairPolicy(**arms.policy(options))
    loading.load(options.load)
    cache = scratch.cache(options.cache).absolute()
    progress = Progress()
    ends = _ends(arguments, options, cache, progress.say)
    # Weights and the like are made by the good end: a candidate may be unable to.
    options = dataclasses.replace(options, python=ends.python)
    conductor = Conductor(options, Path.cwd(), progress.say)
    case, walk = _chosen(arguments, options, conductor, progress.say)
    good, bad = ends.software(frozenset()), ends.software(ends.bad)
    log = AnswerLog(log_path(cache, case, good.key, bad.key))
    count = len(ends.changes)
    progress.say(f"{count} differences between both ends; the answers are kept in {log.path}")
    recorder = planning.recorder("bisect", options)
    laboratory = Laboratory(case, good, cache, conductor, policy, progress, log, walk)
    started = now()
    try:
        with progress:
            finding, answers = search.find(ends, laboratory, progress.say)
        record = _record(case, ends, finding, answers, cache, (started, now()))
        recorder.bisection(record)
    except KeyboardInterrupt:
        progress.say("interrupted, and all answers are kept: the same command goes on")
        raise
    finally:
        with interrupts.deferred():
            laboratory.close()
            conductor.close()
            recorder.close()
    _print(record, log, arguments)
    return UNKNOWN if record.outcome == "cannot tell" else 0


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options of two kinds of search."""
    kinds = [name for name in ("bad", "package", "drivers", "commits") if getattr(arguments, name) is not None]
    if len(kinds) != 1:
        raise UsageError("expected one of --bad ARM, --package NAME, --drivers A,B,C and --commits GOOD..BAD")
    needs = {"versions": "package", "repo": "commits", "build": "commits"}
    for name, kind in needs.items():
        if getattr(arguments, name) is not None and kind not in kinds:
            raise UsageError(f"--{name} is for a search with --{kind}: say that too")
    if arguments.package and not arguments.versions:
        raise UsageError("--package: say --versions A,B,C or FIRST..LAST too")


def _ends(arguments: argparse.Namespace, options: Options, cache: Path, say: Say) -> Ends:
    from ipexperf.tools.bisect import search, software

    software.parsed(arguments.bad or "", "--bad")  # before the environment of --good is made
    remade = not arguments.commits or bool(arguments.build)
    good = software.end(arguments.good, "--good", options, cache, say, remade=remade)
    if arguments.package:
        return _versions(arguments, good)
    if arguments.drivers:
        return _drivers(arguments.drivers, good)
    if arguments.commits:
        return _commits(arguments, options, good)
    bad = software.end(arguments.bad, "--bad", options, cache, say)
    names = (arguments.good or "this interpreter", arguments.bad or "this interpreter")
    return search.of_environments(good, bad, names)


def _versions(arguments: argparse.Namespace, good: End) -> Ends:
    from ipexperf.bench.machine.inventory import normalised
    from ipexperf.tools.bisect import search, versions

    name = normalised(arguments.package)
    named = versions.named(arguments.versions, name, good.lock.python)
    candidates = [versions.WithVersion(good, name, version) for version in named]
    names = (f"{name} {named[0]}", f"{name} {named[-1]}")
    return search.of_list(candidates, versions.changes(name, named), names, good)


def _drivers(folders: Sequence[str], good: End) -> Ends:
    from ipexperf.tools.bisect import search, software, versions

    if len(folders) < 2:
        raise UsageError(f"--drivers {folders[0]}: a search needs two ends, and this is one folder")
    if twice := next((folder for folder in folders if folders.count(folder) > 1), None):
        raise UsageError(f"--drivers: {twice} is there twice")
    candidates = [software.with_driver(good, folder) for folder in folders]
    names = (f"driver {folders[0]}", f"driver {folders[-1]}")
    return search.of_list(candidates, versions.changes("driver", folders), names, good)


def _commits(arguments: argparse.Namespace, options: Options, good: End) -> Ends:
    from ipexperf.tools.bisect import commits, search

    repository = commits.Repository((arguments.repo or Path.cwd()).absolute(), arguments.build or "", options.timeout)
    listed = repository.commits(arguments.commits)
    candidates = [commits.AtCommit(good, repository, commit) for commit in listed]
    changes = commits.changes(listed)
    names = (f"commit {changes[0].name}", f"commit {changes[-1].name}")
    return search.of_list(candidates, changes, names, good)


def _record(
    case: Case,
    ends: Ends,
    finding: SearchResult,
    answers: Mapping[Candidate, Measured],
    cache: Path,
    times: tuple[str, str],
) -> BisectionRecord:
    from ipexperf.judge.bisection import BisectionRecord

    bad, culprit = answers.get(ends.bad), answers[finding.shown] if finding.shown else None
    last_good, first_bad = (
        lock.text if candidate is not None and (lock := ends.software(candidate).lock(cache)) else ""
        for candidate in (finding.last_good, finding.first_bad)
    )
    measured = culprit or bad
    return BisectionRecord(
        case=case,
        good=ends.names[0],
        bad=ends.names[1],
        outcome=finding.outcome,
        reason=finding.reason,
        culprits=tuple(change for change in ends.changes if change in finding.culprits),
        suspects=tuple(ends.suspected(finding.suspects)),
        ends=bad.ratio if bad else None,
        culprit=culprit.ratio if culprit else None,
        ran=measured.ran if measured else (),
        last_good=last_good,
        first_bad=first_bad,
        measured=len(answers),
        differences=len(ends.changes),
        machine_key=measured.machine if measured else "",
        started_at=times[0],
        finished_at=times[1],
    )


def _print(record: BisectionRecord, log: AnswerLog, arguments: argparse.Namespace) -> None:
    from ipexperf.judge.baseline import write_text
    from ipexperf.report import bisections

    neighbours = None
    if record.last_good and record.first_bad:
        paths = [log.path.with_name(f"{log.path.stem}-{end}.txt") for end in ("good", "bad")]
        for path, text in zip(paths, (record.last_good, record.first_bad), strict=True):
            write_text(path, text)
        neighbours = (str(paths[0]), str(paths[1]))
    if arguments.json:
        console.say_json({**record.to_json(), "neighbours": neighbours})
        return
    again = _again(record, neighbours, arguments)
    console.say("\n".join(bisections.block(record, neighbours, again)))


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


def _chosen(
    arguments: argparse.Namespace, options: Options, conductor: Conductor, say: Say
) -> tuple[Case, Walks | None]:
    """The case of the plan; or that of the one test, or the one number of a program, behind --, and its walks."""
    from ipexperf.compare.walk import Walk
    from ipexperf.pytest_session import CommandSession

    if what := program.parse(arguments, options):
        return _of_program(what, options, conductor, say)
    if not arguments.tests:
        return _case(options), None
    case, suite = CommandSession(dataclasses.replace(options, benchmark=True)).only_test(arguments.tests)
    return case, lambda *_: contextlib.nullcontext(Walk(suite, conductor.spent))


def _of_program(what: Program, options: Options, conductor: Conductor, say: Say) -> tuple[Case, Walks]:
    """The one number that a program tells, or its time, as a run here says; and its runs in both arms."""
    from ipexperf import invocation
    from ipexperf.compare import programs

    def runs(*arms: ArmSpec) -> AbstractContextManager[programs.ProgramRuns]:
        places = programs.places(arms, ("the good end", "the candidate"), options, say)
        return contextlib.closing(programs.ProgramRuns(what, places))

    here = programs.MeasuredProgram(what, invocation.device_of(options), None, options, conductor, say)
    with contextlib.closing(here.runs):
        here.learn()
    told = [case for case in here.wishes if case.number or not what.metrics]
    if len(told) != 1:
        names = ", ".join(case.name for case in told[:3]) or "none"
        raise UsageError(f"--metrics: bisect measures one number, and there are {len(told)} ({names}): name one there")
    return told[0], runs


def _again(record: BisectionRecord, neighbours: tuple[str, str] | None, arguments: argparse.Namespace) -> str:
    """The command that compares the last good and the first bad candidate, or empty if none does."""
    from ipexperf.report import rerun

    axes = rerun.chosen(record.case, planning.resolve(arguments))
    if neighbours is not None:
        sides = (f"--{name} lock:{shlex.quote(path)}" for name, path in zip("ab", neighbours, strict=True))
        return f"ipexperf ab {' '.join(sides)} {axes}"
    return ""
