"""`ipexperf cases`, `ipexperf models` and `ipexperf prepare`: what would run, of what, and what it loads."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console, planning, progress
from ipexperf.plan import options as table

if TYPE_CHECKING:
    from ipexperf.bench.api import Model
    from ipexperf.case import Case
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan.options import Options

FAILED = 1
"""Exit status of `prepare` if something could not be made. Everything else is."""


def add_cases(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "cases", "list the cases that would run")
    parser.add_argument("--why", action="store_true", help="list the cells left out too, by their reasons")
    planning.add_options(parser, (table.PLAN, table.MEASURE, table.RUN))
    parser.set_defaults(run=run_cases)


def run_cases(arguments: argparse.Namespace) -> int:
    from ipexperf import run
    from ipexperf.bench import registry
    from ipexperf.plan import sizes
    from ipexperf.report.units import plural

    plan = run.plan(planning.resolve(arguments))
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


def add_models(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "models", "list the models with their tasks, data and sizes")
    purpose = "count parameters and FLOPs of an example, in a worker process for each model"
    parser.add_argument("--measure", action="store_true", help=purpose)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    planning.add_options(parser)
    parser.set_defaults(run=run_models)


def run_models(arguments: argparse.Namespace) -> int:
    """List the named models, or all."""
    from ipexperf.bench import loading, registry
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan import matrix

    options = planning.resolve(arguments)
    loading.load(options.load)
    matrix.check_names(options)
    names = registry.models.names()
    wanted = names if matrix.ALL in (options.model or (matrix.ALL,)) else options.model or ()
    with contextlib.ExitStack() as until:
        conductor = Conductor(options, Path.cwd(), progress.say) if arguments.measure else None
        if conductor is not None:
            until.callback(conductor.close)
        rows = [_row(registry.models.get(name), options, conductor) for name in wanted]
    if arguments.json:
        console.say_json(rows)
    else:
        sys.stdout.write("\n".join(map(_text, rows)))
    return 0


def _row(model: Model, options: Options, conductor: Conductor | None) -> dict[str, Any]:
    """Describe a model, with what `conductor` measures of it. What was not measured is None."""
    from ipexperf.bench import registry
    from ipexperf.plan import sizes

    task, data = registry.tasks.get(model.task), registry.datasets.get(model.data)
    _, missing = data.find(str(options.data) if options.data else None)
    inputs = [sizes.text(model, model.size), *([f"normal {sizes.text(model, model.normal)}"] if model.normal else [])]
    published = [f"{dtype} {batch}" for dtype, batch in model.published.items()]
    batches = [f"train {model.batch_train}", f"infer {model.batch_infer}"]
    return {
        "name": model.name,
        "task": task.name,
        "metric": task.metric,
        "data": data.name,
        "licence": data.licence,
        "sizes": ", ".join(inputs),
        "batches": ", ".join([*batches, *([f"full: {', '.join(published)}"] if published else [])]),
        "why_nots": dict(model.why_nots),
        "data_missing": missing,
        **dict.fromkeys(("parameters", "flops", "measured_at")),
        **(_measured(model, options, conductor, missing) if conductor else {}),
    }


def _measured(model: Model, options: Options, conductor: Conductor, missing: str | None) -> dict[str, Any]:
    """Parameters and FLOPs counted by a worker. If that fails, print the reason and return nothing."""
    from ipexperf.bench import registry
    from ipexperf.bench.api import Cell
    from ipexperf.case import Case
    from ipexperf.conduct.worker import ask_facts
    from ipexperf.errors import WorkerError
    from ipexperf.plan import sizes
    from ipexperf.plan.presets import PRESETS

    size = sizes.size(model, options.size or PRESETS[options.preset].size)
    cell = Cell(model.name, "cpu", "fp32", "infer", "stock")
    facts = ask_facts(options.python, (), {}, model.needs)
    reason = sizes.unfit(model, size) or model.why_not(cell, registry.modes.get(cell.mode), facts) or missing
    if reason is None:
        case = Case(cell.model, cell.device, cell.dtype, cell.mode, cell.stack, 1, size, model.version, model.data)
        try:
            footprint = conductor.footprint(case)
        except WorkerError as error:
            reason = error.reason
        else:
            at = sizes.text(model, size)
            return {"parameters": footprint.parameters, "flops": footprint.flops, "measured_at": at}
    progress.say(f"{model.name} was not measured: {reason}")
    return {}


def _text(row: Mapping[str, Any]) -> str:
    missing = f"; missing: {row['data_missing']}" if row["data_missing"] else ""
    lines = [
        row["name"],
        f"  task     {row['task']}: {row['metric']}",
        f"  data     {row['data']}, {row['licence']}{missing}",
        f"  size     {row['sizes']}",
        f"  batch    {row['batches']}",
    ]
    if row["parameters"] is not None and row["flops"] is not None:
        millions, billions = row["parameters"] / 1e6, row["flops"] / 1e9
        counted = f"{millions:.2f} million parameters, {billions:.2f} GFLOP for one of {row['measured_at']}"
        lines.append(f"  takes    {counted}")
    lines += [f"  not      {name}: {reason}" for name, reason in row["why_nots"].items()]
    return "\n".join(lines) + "\n"


def add_prepare(subparsers: console.Subparsers) -> None:
    purpose = "make the weights and quantised networks of cases in advance"
    parser = console.declare(subparsers, "prepare", purpose)
    planning.add_options(parser)
    parser.set_defaults(run=run_prepare)


def run_prepare(arguments: argparse.Namespace) -> int:
    """Prepare the plan case by case. Files that cases share are made once."""
    from ipexperf import run
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.report.units import plural

    options = planning.resolve(arguments)
    plan = run.plan(options)
    failed = 0
    with contextlib.closing(Conductor(options, Path.cwd(), progress.say)) as conductor:
        for number, case in enumerate(plan.cases, 1):
            progress.say(f"case {number} of {len(plan.cases)}: {case.id}")
            failed += not _ready(conductor, case)
    count = sum(conductor.made.values())
    text = f"{count} made, {len(conductor.made) - count} there already, for {plural(len(plan.cases), 'case')}"
    console.say(f"{text}{f'; {failed} could not be made' if failed else ''}")
    return FAILED if failed else 0


def _ready(conductor: Conductor, case: Case) -> bool:
    """Make what a case loads, and print each new file. Returns whether all is there."""
    from ipexperf.errors import WorkerError

    before = set(conductor.made)
    try:
        conductor.ready(case)
    except WorkerError as error:
        console.say(f"failed         {case.id}: {error.reason}")
        return False
    finally:
        for path, new in conductor.made.items():
            if path not in before:
                console.say(f"{'made' if new else 'there already':<13}  {path.parent.name}/{path.name}")
        sys.stdout.flush()
    return True


TOPIC = console.PLAN
COMMANDS = (add_cases, add_models, add_prepare)
