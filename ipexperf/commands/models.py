"""`ipexperf models`: list the models, their data and their sizes."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console, planning, progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ipexperf.bench.api import Model
    from ipexperf.conduct.prerequisites import Prerequisites
    from ipexperf.plan.options import Options


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
    from ipexperf.conduct.prerequisites import Prerequisites
    from ipexperf.plan import matrix

    options = planning.resolve(arguments)
    loading.load(options.load)
    matrix.check_names(options)
    names = registry.models.names()
    wanted = names if matrix.ALL in (options.model or (matrix.ALL,)) else options.model or ()
    with contextlib.ExitStack() as until:
        prerequisites = Prerequisites(options, Path.cwd(), progress.say) if arguments.measure else None
        if prerequisites is not None:
            until.callback(prerequisites.close)
        rows = [_row(registry.models.get(name), options, prerequisites) for name in wanted]
    if arguments.json:
        console.say_json(rows)
    else:
        sys.stdout.write("\n".join(map(_text, rows)))
    return 0


def _row(model: Model, options: Options, prerequisites: Prerequisites | None) -> dict[str, Any]:
    """Describe a model, with what `prerequisites` measure of it. What was not measured is None."""
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
        **(_measured(model, options, prerequisites, missing) if prerequisites else {}),
    }


def _measured(model: Model, options: Options, prerequisites: Prerequisites, missing: str | None) -> dict[str, Any]:
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
            footprint = prerequisites.footprint(case)
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


TOPIC = console.PLAN
COMMANDS = (add_models,)
