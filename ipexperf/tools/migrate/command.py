"""`ipexperf migrate`: what a model gains and loses by moving from IPEX to stock PyTorch, on one page."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning
from ipexperf.commands.progress import Progress
from ipexperf.errors import LockError, UsageError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ipexperf.plan.arms import ArmWords
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement
    from ipexperf.tools.migrate.experiment import Experiment
    from ipexperf.tools.migrate.findings import Findings
    from ipexperf.tools.migrate.page import Page
    from ipexperf.tools.migrate.plan import MigrationPlan

OLD, NEW = "ipex", "stock"
"""The stacks of both sides, unless an arm names another."""
MINUTES = 15
LAUNCHES = 3
OF_THE_SIDES = ("model", "stack", "python", "ablate", "budget")
"""The options that say what the command itself decides."""
INTERRUPTED = "it was interrupted"


def add_migrate(subparsers: console.Subparsers) -> None:
    purpose = "compare IPEX with stock PyTorch for a model, and say what to change"
    parser = console.declare(subparsers, "migrate", purpose)
    parser.add_argument("name", metavar="MODEL", help="a model, or a network of your own: module:callable")
    arm = "PYTHON, shipped:NAME, lock:FILE, baseline:NAME or run:RUN, and KEY=VALUE, stack=NAME"
    text = f"the old environment: {arm} (default: this one if IPEX runs in it, else shipped:{OLD})"
    parser.add_argument("--from", dest="old", default="", metavar="ARM", help=text)
    text = f"the new environment, written like --from (default: shipped:{NEW})"
    parser.add_argument("--to", dest="new", default="", metavar="ARM", help=text)
    text = f"start no launch after this many (default: {MINUTES}); what is worth most comes first"
    parser.add_argument("--minutes", type=console.positive, default=MINUTES, metavar="N", help=text)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page as markdown too")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page as HTML too, in one file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the page")
    planning.add_options(parser, more=("launches", "samples", "seconds"), without=OF_THE_SIDES)
    parser.set_defaults(run=run_migrate)


def run_migrate(arguments: argparse.Namespace) -> int:
    """Measure what the budget allows, and print the page, also after an interruption."""
    from ipexperf.bench import loading
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.tools.experiments import recorded
    from ipexperf.tools.migrate.experiment import Experiment

    options = _options(arguments)
    loading.load(options.load)
    progress = Progress()
    plan, software, options = _planned(arguments, options, progress.say)
    progress.say(f"{len(plan.rows)} rows in {len(plan.contests)} rounds of {len(plan.cases)} cases")
    conductor = Conductor(options, Path.cwd(), progress.say)
    launches = options.launches or LAUNCHES
    experiment = Experiment(plan, launches, software, conductor, progress.say)
    interruption: KeyboardInterrupt | None = None
    with contextlib.closing(conductor), recorded(planning.recorder("migrate", options, progress.say)) as recorder:
        try:
            with progress:
                experiment.run(recorder)
        except KeyboardInterrupt as error:
            interruption = error
        measurements = experiment.finish(recorder, INTERRUPTED if interruption else "")
        findings, page = _page(plan, measurements, experiment, tuple(software))
        _print(arguments, page, findings, recorder.uid)
        if interruption:
            raise interruption
    if all(finding.best is None for finding in findings.rows):
        reason = next((finding.why_not for finding in findings.rows if finding.candidates), "no row has a candidate")
        raise WorkerError("error", f"nothing could be compared: {reason}")
    return 0


def _options(arguments: argparse.Namespace) -> Options:
    """The options of both sides: one model, and a budget."""
    from ipexperf.plan import options as table

    planned = planning.resolve(arguments)
    model, load = table.adopted((arguments.name,), planned.load, {"model": "MODEL"})
    return dataclasses.replace(
        planned,
        model=model,
        load=load,
        budget=60.0 * arguments.minutes,
        without=(*planned.without, "roof", "pulse"),
        sources={**planned.sources, "model": "MODEL"},
    )


def _planned(
    arguments: argparse.Namespace, options: Options, say: Callable[[str], None]
) -> tuple[MigrationPlan, dict[str, ArmWords], Options]:
    """The plan, the software of both stacks, and the options, whose interpreter is the new one: it trains weights."""
    from ipexperf.compare import arm
    from ipexperf.plan import knobs, matrix
    from ipexperf.tools.migrate import plan as migration

    matrix.check_names(options)
    choices = {name for name, owners in knobs.everyone().items() if any(knob.choice for knob in owners)}
    if settings := [name for name in knobs.requested(options) if name not in choices]:
        reason = f"migrate compares settings itself; only {', '.join(sorted(choices))} can be chosen"
        raise UsageError(f"--perf-knobs: {settings[0]}: {reason}")
    old = _words(arguments.old, "--from", OLD, options, say)
    new = _words(arguments.new, "--to", NEW, options, say)
    if old.python is None and new.python is not None:  # else it would run in the interpreter of the run, the new one
        old = dataclasses.replace(old, python=sys.executable)
    if old.axes["stack"] == new.axes["stack"]:
        raise UsageError(f"--from and --to: both are the stack {old.axes['stack']}, and ab compares environments")
    sides = [
        migration.StackSide(words.axes["stack"], arm.facts(words, options, source), options)
        for words, source in ((old, "--from"), (new, "--to"))
    ]
    plan = migration.make(*sides)
    for words, source in ((old, "--from"), (new, "--to")):
        cases = [case for case in plan.cases if case.stack == words.axes["stack"]]
        arm.check_imports(cases, words, options, source)
    software = {words.axes["stack"]: words for words in (old, new)}
    return plan, software, dataclasses.replace(options, python=new.python)


def _words(text: str, source: str, stack: str, options: Options, say: Callable[[str], None]) -> ArmWords:
    """The arm of a side, with its stack and the interpreter of its lock."""
    from ipexperf import live_baseline
    from ipexperf.environments import shipped
    from ipexperf.plan import arms

    words = arms.parse(text, source)
    if words.knobs or set(words.axes) - {"stack"}:
        raise UsageError(
            f"{source} '{text}': a side is software, variables and a stack: choose rows with --mode and the like"
        )
    words = dataclasses.replace(words, axes={"stack": words.axes.get("stack", stack)})
    stack = words.axes["stack"]
    if not (words.python or words.lock) and stack in shipped.names() and (stack == NEW or not _runs(stack, options)):
        words = dataclasses.replace(words, lock=f"shipped:{stack}")
    try:
        return live_baseline.resolved(words, options, say, source)
    except LockError as error:
        raise UsageError(f"{source}: {error}") from error


def _runs(stack: str, options: Options) -> bool:
    """Whether this interpreter has what a stack needs."""
    from ipexperf.bench import registry
    from ipexperf.bench.api import Cell
    from ipexperf.compare import arm
    from ipexperf.dtypes import PLAIN
    from ipexperf.plan.arms import ArmWords

    plain = Cell((options.model or ("",))[0], "cpu", PLAIN, "infer", stack)
    return registry.stacks.get(stack).why_not(plain, arm.facts(ArmWords(), options)) is None


def _page(
    plan: MigrationPlan, measurements: Sequence[Measurement], experiment: Experiment, stacks: Sequence[str]
) -> tuple[Findings, Page]:
    from ipexperf.report.speeds import Speeds
    from ipexperf.tools.experiments import judged
    from ipexperf.tools.migrate import findings, page

    verdicts = {measurement.case.uid: judged(measurement) for measurement in measurements}
    whole = findings.find(plan, Speeds.of(measurements, verdicts, experiment.rounds))
    lead = page.environments(measurements, stacks)
    return whole, page.make(plan.rows[0].case.model, whole, [*lead, page.rounds(experiment.rounds)])


def _print(arguments: argparse.Namespace, page: Page, findings: Findings, run: str | None) -> None:
    from ipexperf.judge.baseline import write_text
    from ipexperf.tools.migrate import page as pages

    if arguments.json:
        console.say_json(pages.document(page, findings, run))
    else:
        pages.write(page, console.make_console())
    # After the terminal: a file that cannot be written does not cost what was measured.
    for path, draw in ((arguments.markdown, pages.markdown), (arguments.html, pages.html)):
        if path is not None:
            write_text(path, draw(page))


TOPIC = console.COMPARE
