"""`ipexperf ab`: compare two arms in rounds of live workers that take turns, until the judge is sure."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.case import AXES
from ipexperf.commands import console, planning, program
from ipexperf.commands.progress import Progress
from ipexperf.errors import UsageError
from ipexperf.judge.sentence import details, headline, sentence
from ipexperf.outcomes import has_numbers
from ipexperf.report.lines import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ipexperf.case import Case
    from ipexperf.compare.against import JudgedCase, PairPlan, PairRun
    from ipexperf.compare.sequence import Comparison
    from ipexperf.history.store import Status
    from ipexperf.plan.arms import ArmSpec
    from ipexperf.plan.options import Options
    from ipexperf.recorder import Recorder
    from ipexperf.verdict import Verdict

SHORT = {name: name[2:].replace("-", "_") for name in ("--max-pairs", "--budget", "--tolerance", "--alpha", "--build")}
"""Short names for the options most often given to `ab`."""
SLOWER = 1
"""Exit status of `--fail` if b is slower, or not what its label says."""


def add_ab(subparsers: console.Subparsers) -> None:
    purpose = "compare two arms in live workers that take turns"
    parser = console.declare(subparsers, "ab", purpose, run_ab, console.COMPARE, "ab --a stack=stock --model resnet18")
    parser.usage = "ipexperf ab [options] [-- TESTS ...]"
    parser.add_argument("--a", default="", metavar="ARM", help="first arm: PYTHON, lock:FILE, KEY=VALUE, stack=stock")
    parser.add_argument("--b", default="", metavar="ARM", help="second arm: its slowdown is reported")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    text = "tests of functions; with --program a command"
    parser.add_argument("tests", nargs="*", metavar="-- TESTS", help=text)
    program.add_options(parser)
    parser.add_argument("--fail", action="store_true", help="exit with status 1 if b is slower in any case")
    planning.add_short(parser, SHORT)
    planning.add_options(parser)


def run_ab(arguments: argparse.Namespace) -> int:
    """Compare every planned case in both arms. However it ends, print and record what was measured."""
    from ipexperf.bench import loading
    from ipexperf.compare.against import PairRun
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan import arms, gates, groups
    from ipexperf.plan.reading import targets_of

    options = planning.resolve(arguments)
    arms.check(options)
    if what := program.parse(arguments, options):
        words = functools.partial(_words, arguments, options)
        slower = program.compare(what, options, words, as_json=arguments.json)
        return SLOWER if arguments.fail and slower else 0
    if arguments.tests:
        return _of_tests(arguments, options)
    options = _with_networks(options, [name for arm in (arguments.b, arguments.a) for name in targets_of(arm)])
    if options.model is None and not {*AXES, "preset"} & {*options.sources}:
        raise UsageError("name what is measured: a network by --model NAME, or tests of functions behind --")
    loading.load(options.load)
    against, options = _planned(arguments, options)
    progress = Progress()
    recorder = planning.recorder("ab", options)
    conductor = Conductor(options, Path.cwd(), progress.say)
    answer = _Answer(against, recorder, as_json=arguments.json)
    status: Status = "failed"
    try:
        for group in groups.groups(against.cases):
            cases = [(case, gates.AS_ALL) for case in group.cases]
            running = PairRun(against, cases, conductor, progress.say)
            planning.play(running, recorder, progress, answer.tell)
        status = "finished"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        answer.end()
        recorder.finish(status)
        recorder.close()
        conductor.close()
    if answer.flaw:
        raise answer.flaw
    return SLOWER if arguments.fail and answer.slower else 0


def _of_tests(arguments: argparse.Namespace, options: Options) -> int:
    """Compare the functions that tests measure: a session of pytest. Returns its exit status."""
    from ipexperf.commands import progress
    from ipexperf.pytest_session import CommandSession

    if arguments.json:
        raise UsageError("--json: behind -- are tests, which pytest runs and tells of: leave it out")
    if misplaced := {"--a", "--b", *SHORT} & {word.partition("=")[0] for word in arguments.tests}:
        raise UsageError(f"{misplaced.pop()} stands behind --, where the arguments of pytest are: write it before --")
    words = _words(arguments, options, progress.say)
    for name, arm in zip("ab", words, strict=True):
        if of_networks := [*arm.axes, *arm.knobs]:
            raise UsageError(f"arm {name}: a function has no {of_networks[0]}: name a network by --model, not tests")
    options = dataclasses.replace(options, against="", benchmark=True)
    return CommandSession(options, words).run(arguments.tests)


def _words(arguments: argparse.Namespace, options: Options, say: Callable[[str], None]) -> tuple[ArmSpec, ArmSpec]:
    """Both arms, each with the interpreter of its lock and the tree of its source."""
    from ipexperf import live_baseline
    from ipexperf.plan import arms

    a, b = (
        live_baseline.resolved(arms.parse(text, f"arm {name}"), options, say, f"arm {name}")
        for name, text in (("a", arguments.a), ("b", arguments.b))
    )
    return a, b


def _with_networks(options: Options, targets: Sequence[str]) -> Options:
    """The options that load these networks of the user's own, and plan the first unless they name a model."""
    from ipexperf.bench.networks import own_target

    if not targets:
        return options
    model = options.model or (own_target.parse(targets[0]).name,)
    return dataclasses.replace(options, load=(*options.load, *targets), model=model)


def _planned(arguments: argparse.Namespace, options: Options) -> tuple[PairPlan, Options]:
    """Both arms of every planned case. Raise UsageError if one of them cannot run."""
    from ipexperf import run
    from ipexperf.commands import progress
    from ipexperf.compare import against, arm

    words = _words(arguments, options, progress.say)
    if words[1].python is not None:  # else b is what the plan is made for
        options = dataclasses.replace(options, python=options.python or words[0].python)
    plan = run.plan(options)
    facts = [arm.facts(arm_words, options, f"--{name}") for name, arm_words in zip("ab", words, strict=True)]
    # If both arms set an axis, several planned cases become the same comparison.
    compared = dict.fromkeys(
        tuple(arm_words.case(planned, facts_of) for arm_words, facts_of in zip(words, facts, strict=True))
        for planned in plan.cases
    )
    for sides in compared:
        for name, (case, reason) in zip("ab", sides, strict=True):
            if reason:
                raise UsageError(f"arm {name}: {case.id} cannot run: {reason}")
    for name, arm_words, cases in zip("ab", words, zip(*compared, strict=True), strict=True):
        arm.check_imports((case for case, _ in cases), arm_words, options, f"arm {name}")
    cases = {b: a for (a, _), (b, _) in compared}
    return dataclasses.replace(against.between(*words, cases, options), names=("arm a", "arm b")), options


class _Answer:
    """Prints and records comparisons as soon as their group has ended."""

    def __init__(self, against: PairPlan, recorder: Recorder, *, as_json: bool) -> None:
        self.slower = False
        self.flaw: Exception | None = None
        """The first error: an arm failed, is not what its label says, or is wrong."""
        self._against = against
        self._recorder = recorder
        self._json: list[dict[str, Any]] | None = [] if as_json else None

    def tell(self, running: PairRun, judged: Mapping[Case, JudgedCase]) -> None:
        """Print and record the cases of a group."""
        from ipexperf.compare import sequence

        comparisons = running.comparisons()
        for case, (measurement, verdict, policy) in judged.items():
            self.slower |= verdict.fails
            if measurement.launches:
                self._recorder.case(measurement, verdict, policy)
            comparison = comparisons.get(case)
            flaw = _flaw(comparison)
            if comparison is None or not has_numbers(verdict.outcome):
                self._fail(flaw or sentence(verdict), measurement.launches[-1].log if measurement.launches else "")
            if comparison is None:
                continue
            if self._json is not None:
                self._json.append(sequence.document(comparison, verdict))
            elif not flaw:  # a wrong arm is reported at the end instead: however fast it is, it must not win
                told = _lines(self._against, comparison, verdict)
                console.say("\n".join(line for text in told for line in wrapped(text)))
                sys.stdout.flush()
        self._recorder.add_rounds(running.rounds)

    def _fail(self, reason: str, log: str) -> None:
        from ipexperf.errors import WorkerError

        self.flaw = self.flaw or WorkerError("error", reason, log)

    def end(self) -> None:
        """Print the JSON document, which needs all comparisons."""
        if self._json is not None:
            console.say_json(self._json)


def _flaw(comparison: Comparison | None) -> str:
    """The first failed check of a pair, with the name of the arm, or an empty string."""
    if comparison is None:
        return ""
    flaws = zip((comparison.a, comparison.b), comparison.flaws, strict=False)  # before the first pair there are none
    return next((f"{arm.name}: {flaw}" for arm, flaw in flaws if flaw), "")


def _lines(against: PairPlan, comparison: Comparison, verdict: Verdict) -> list[str]:
    """One comparison for people: first the speed of b, then the arms, their differences, and why it ended."""
    arms = (("a", comparison.a, against.words), ("b", comparison.b, against.own))
    lines = [f"b against a: {verdict.outcome}: {headline(verdict)}"]
    if comparison.pairs and not has_numbers(verdict.outcome):
        lines.append(f"before that: {headline(comparison.decision.verdict)}")
    lines += [f"{name}  {arm.case.id} [{words.text or 'as it is'}]" for name, arm, words in arms]
    lines += [f"differs  {line}" for line in comparison.differences]
    lines += [f"besides  {line}" for line in details(verdict)]
    lines.append(f"stopped: {comparison.stop.text}")
    return lines


COMMANDS = (add_ab,)
