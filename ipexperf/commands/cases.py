"""`ipexperf cases`: what would run, and with `--models` of what."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning
from ipexperf.plan.options import MEASURE, PLAN, RUN

if TYPE_CHECKING:
    from ipexperf.bench.model import Model
    from ipexperf.plan.options import Options


def add_cases(subparsers: console.Subparsers) -> None:
    purpose, example = "list the cases that would run", "cases --model resnet18 --why"
    parser = console.declare(subparsers, "cases", purpose, run_cases, console.PLAN, example)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--why", action="store_true", help="list the cells left out too, by their reasons")
    text = "list the models instead, with their tasks, data and sizes, and why a mode or dtype does not fit them"
    forms.add_argument("--models", action="store_true", help=text)
    planning.add_options(parser, (PLAN, MEASURE, RUN))


def run_cases(arguments: argparse.Namespace) -> int:
    from ipexperf import run
    from ipexperf.bench import registry
    from ipexperf.plan import sizes
    from ipexperf.units import plural

    options = planning.resolve(arguments)
    if arguments.models:
        return _models(options)
    plan = run.plan(options)
    for case in plan.cases:
        size = sizes.text(registry.models.get(case.model), case.size)
        console.say(f"{case.id}  batch {case.batch}, {size}, {case.data}")
    if arguments.why:
        cells: dict[str, list[str]] = {}
        for left in plan.left_out:
            cells.setdefault(left.reason, []).append(left.id)
        for reason, names in cells.items():
            console.say(f"left out: {reason}")
            for name in names:
                console.say(f"    {name}")
    measured = f"{plural(len(plan.cases), 'case')} of {plural(plan.launches, 'launch', 'launches')}"
    console.say(f"{measured}, {plural(len(plan.left_out), 'cell')} left out")
    return 0


def _models(options: Options) -> int:
    """List the named models, or all."""
    from ipexperf.bench import registry
    from ipexperf.plan import matrix

    matrix.check_names(options)
    names = registry.models.names()
    wanted = names if matrix.ALL in (options.model or (matrix.ALL,)) else options.model or ()
    sys.stdout.write("\n".join(_text(registry.models.get(name), options) for name in wanted))
    return 0


def _text(model: Model, options: Options) -> str:
    from ipexperf.bench import registry
    from ipexperf.plan import sizes

    task, data = registry.tasks.get(model.task), registry.datasets.get(model.data)
    _, missing = data.find(str(options.data) if options.data else None)
    inputs = [sizes.text(model, model.size), *([f"normal {sizes.text(model, model.normal)}"] if model.normal else [])]
    published = [f"{dtype} {batch}" for dtype, batch in model.published.items()]
    batches = [f"train {model.batch_train}", f"infer {model.batch_infer}"]
    batches += [f"full: {', '.join(published)}"] if published else []
    lines = [
        model.name,
        f"  task     {task.name}: {task.metric}",
        f"  data     {data.name}, {data.licence}{f'; missing: {missing}' if missing else ''}",
        f"  size     {', '.join(inputs)}",
        f"  batch    {', '.join(batches)}",
        *(f"  not      {name}: {reason}" for name, reason in model.why_nots.items()),
    ]
    return "\n".join(lines) + "\n"


COMMANDS = (add_cases,)
