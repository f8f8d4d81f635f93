"""`ipexperf bisect`: find which package, variable, version or commit makes a case slower."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import random
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import scratch
from ipexperf.commands import console, planning
from ipexperf.commands.progress import Progress
from ipexperf.errors import UsageError
from ipexperf.history import addresses

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.walk import Suite
    from ipexperf.judge.bisection import BisectionRecord
    from ipexperf.judge.ratios import Ratio
    from ipexperf.plan.options import Options
    from ipexperf.tools.bisect.answers import AnswerLog, Measured
    from ipexperf.tools.bisect.search import Ends, Report
    from ipexperf.tools.bisect.software import End, Say

SHORT = {"--max-pairs": "max_pairs", "--tolerance": "tolerance"}
UNKNOWN = 3
"""Exit status if nothing can be told."""


def add_bisect(subparsers: console.Subparsers) -> None:
    purpose = "find which package, variable, version or commit makes a case slower"
    parser = console.declare(subparsers, "bisect", purpose)
    text = "the quick end: PYTHON, lock:FILE, baseline:NAME or run:RUN, and KEY=VALUE (default: this interpreter)"
    parser.add_argument("--good", default="", metavar="ARM", help=text)
    parser.add_argument("--bad", default=None, metavar="ARM", help="the slow end, written like --good")
    versions = parser.add_argument_group("versions of one package, beside the other packages of --good")
    versions.add_argument("--package", metavar="NAME", help="the package")
    text = "its versions in this order, the quick one first; or FIRST..LAST: what an index has between"
    versions.add_argument("--versions", metavar="A,B,C", help=text)
    versions.add_argument("--wheels", type=Path, metavar="FOLDER", help="or the versions in a folder of wheels")
    versions.add_argument("--index", metavar="URL", help="index that lists the versions FIRST..LAST (default: pip's)")
    commits = parser.add_argument_group("commits, with the packages of --good")
    commits.add_argument("--commits", metavar="GOOD..BAD", help="the commits of the first-parent line")
    commits.add_argument("--repo", type=Path, metavar="FOLDER", help="their repository (default: this folder)")
    text = "what to run in each clone; a wheel that it leaves in dist is installed, else the clone is imported"
    commits.add_argument("--build", metavar="COMMAND", help=text)
    parser.add_argument("--fresh", action="store_true", help="forget the answers of an earlier try")
    parser.add_argument("--no-fingerprint", action="store_true", help="answer every question by timing alone")
    parser.add_argument("--seed", type=int, default=None, help="seed of the random start order")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    parser.add_argument(
        "tests", nargs="*", metavar="-- TEST", help="a test that measures a function: arguments of pytest"
    )
    planning.add_short(parser, SHORT)
    planning.add_options(parser, without=("budget",))
    parser.set_defaults(run=run_bisect)


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
    case, suite = _of_test(arguments.tests, options) if arguments.tests else (_case(options), None)
    log = AnswerLog(log_path(cache, case, ends.good.key, ends.bad.key), fresh=arguments.fresh)
    count = len(ends.changes)
    progress.say(f"{count} differences between both ends; the answers are kept in {log.path}")
    conductor = Conductor(options, Path.cwd(), progress.say)
    opened = functools.partial(planning.recorder, "bisect", options)
    recorder = opened()
    laboratory = Laboratory(
        case,
        ends.good,
        cache,
        conductor,
        opened,
        policy,
        progress,
        log,
        random.Random(arguments.seed),  # noqa: S311 - a start order, no secret
        suite,
    )
    started = now()
    try:
        with progress:
            report = search.find(ends, laboratory, progress.say, fingerprint=not arguments.no_fingerprint)
        record = _record(case, ends, report, cache, (started, now()))
        recorder.bisection(record)
    except KeyboardInterrupt:
        progress.say(f"interrupted after {len(log)} answers, which are kept: the same command goes on")
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
    is_given = {
        name: getattr(arguments, name) is not None
        for name in ("bad", "package", "versions", "wheels", "index", "commits", "repo", "build")
    }
    kinds = [name for name in ("bad", "package", "commits") if is_given[name]]
    if len(kinds) != 1:
        raise UsageError("expected one of --bad ARM, --package NAME and --commits GOOD..BAD")
    needs = {"versions": "package", "wheels": "package", "index": "package", "repo": "commits", "build": "commits"}
    for name, kind in needs.items():
        if is_given[name] and not is_given[kind]:
            raise UsageError(f"--{name} is for a search with --{kind}: say that too")
    if is_given["package"] and is_given["versions"] == is_given["wheels"]:
        raise UsageError("--package: expected one of --versions A,B,C and --wheels FOLDER")
    if is_given["index"] and ".." not in (arguments.versions or ""):
        raise UsageError("--index is asked for the versions between two others: say --versions FIRST..LAST")


def _ends(arguments: argparse.Namespace, options: Options, cache: Path, say: Say) -> Ends:
    from ipexperf.tools.bisect import search, software

    remade = not arguments.commits or bool(arguments.build)
    good = software.end(arguments.good, "--good", options, cache, say, remade=remade)
    if arguments.package:
        return _versions(arguments, good)
    if arguments.commits:
        return _commits(arguments, options, good)
    bad = software.end(arguments.bad, "--bad", options, cache, say)
    names = (arguments.good or "this interpreter", arguments.bad or "this interpreter")
    return search.of_environments(good, bad, names)


def _versions(arguments: argparse.Namespace, good: End) -> Ends:
    from ipexperf.bench.machine.inventory import normalised
    from ipexperf.tools.bisect import search, versions

    name, python = normalised(arguments.package), good.lock.python
    first, between, last = (arguments.versions or "").partition("..")
    if arguments.wheels:
        releases = versions.in_folder(arguments.wheels, name, python)
        where = f"{arguments.wheels} has"
    elif between:
        releases = versions.in_index(arguments.index, name, first, last, python)
        where = f"the index has from {first} to {last}"
    else:
        releases, where = versions.listed(arguments.versions), "--versions has"
    if len(releases) < 2:
        count = "one version" if releases else "no version"
        raise UsageError(f"{where} {count} of {name} for Python {python}: a search needs two ends")
    candidates = [versions.WithVersion(good, name, release) for release in releases]
    names = (f"{name} {releases[0].version}", f"{name} {releases[-1].version}")
    return search.of_list(candidates, versions.changes(name, releases), names, good)


def _commits(arguments: argparse.Namespace, options: Options, good: End) -> Ends:
    from ipexperf.tools.bisect import commits, search

    repository = commits.Repository((arguments.repo or Path.cwd()).absolute(), arguments.build or "", options.timeout)
    listed = repository.commits(arguments.commits)
    candidates = [commits.AtCommit(good, repository, commit) for commit in listed]
    changes = commits.changes(listed)
    names = (f"commit {changes[0].name}", f"commit {changes[-1].name}")
    return search.of_list(candidates, changes, names, good)


def _record(case: Case, ends: Ends, report: Report, cache: Path, times: tuple[str, str]) -> BisectionRecord:
    from ipexperf.judge.bisection import BisectionRecord

    finding = report.finding
    both = (finding.last_good, finding.first_bad)
    locks = [ends.software(candidate).lock(cache) if candidate is not None else None for candidate in both]
    measured = report.culprit or report.ends
    return BisectionRecord(
        case=case,
        good=ends.names[0],
        bad=ends.names[1],
        outcome=finding.outcome,
        reason=finding.reason,
        culprits=tuple(change for change in ends.changes if change in finding.culprits),
        suspects=tuple(ends.suspected(finding.suspects)),
        ends=_ratio(report.ends),
        culprit=_ratio(report.culprit),
        ran=measured.ran if measured else (),
        last_good=locks[0].text if locks[0] else "",
        first_bad=locks[1].text if locks[1] else "",
        measured=report.asked,
        differences=len(ends.changes),
        machine_key=measured.machine if measured else "",
        started_at=times[0],
        finished_at=times[1],
    )


def _ratio(measured: Measured | None) -> Ratio | None:
    from ipexperf.judge.ratios import Ratio

    if measured is None or measured.ratio is None:
        return None
    return Ratio(measured.ratio, measured.lo, measured.hi)


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


def _of_test(words: Sequence[str], options: Options) -> tuple[Case, Suite]:
    """The case of the one test that these arguments of pytest choose, and the session that measures it."""
    from ipexperf.invocation import Given

    return Given(dataclasses.replace(options, benchmark=True)).only_test(words)


def _again(record: BisectionRecord, neighbours: tuple[str, str] | None, arguments: argparse.Namespace) -> str:
    """The command that compares the last good and the first bad candidate, or empty if none does."""
    from ipexperf.report import rerun

    axes = rerun.options(record.case, **rerun.named(record.case, planning.resolve(arguments)))
    if neighbours is not None:
        sides = (f"--{name} lock:{shlex.quote(path)}" for name, path in zip("ab", neighbours, strict=True))
        return f"ipexperf ab {' '.join(sides)} {axes}"
    if arguments.commits and len(record.culprits) == 1:
        sha = record.culprits[0].name
        return f"ipexperf bisect --commits {sha}~1..{sha} {axes}  (with the other options as they were)"
    return ""


TOPIC = console.COMPARE
