"""`--perf-size`, and default batches and sizes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipexperf.bench.cell import Cell
    from ipexperf.bench.model import Model

SMALL, NORMAL = "small", "normal"


def read(text: str) -> str | int:
    """Parse `small`, `normal`, or a number of pixels, tokens or whatever the model counts."""
    if text in (SMALL, NORMAL):
        return text
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected {SMALL}, {NORMAL} or a whole number of at least 1, got '{text}'")


def size(model: Model, requested: str | int) -> int:
    """Return the size of a model's inputs. A model without a normal size uses its small one."""
    if isinstance(requested, int):
        return requested
    return model.normal or model.size if requested == NORMAL else model.size


def text(model: Model, count: int) -> str:
    """Format an input size for people, in the unit of the model's task: '224 x 224', '128 tokens'."""
    from ipexperf.bench import registry

    return registry.tasks.get(model.task).unit.format(count)


def unfit(model: Model, count: int) -> str | None:
    """Return the reason why inputs cannot have this size, or None."""
    if count < model.least:
        return f"{model.name} takes inputs of at least {text(model, model.least)}: {text(model, count)} is too small"
    if model.most is not None and count > model.most:
        return f"{model.name} takes inputs of at most {text(model, model.most)}: {text(model, count)} is too large"
    return None


def batch(cell: Cell, requested: int | None, *, published: bool) -> int:
    """Return the batch of a cell: the requested one, or the vendor's if `published`, or the model's."""
    from ipexperf.bench import registry  # now, not by every pytest run that declares the options

    model, mode = registry.models.get(cell.model), registry.modes.get(cell.mode)
    default = mode.batch_of(model)
    # The vendor published throughput of inference in batches only.
    if published and not (mode.trains or mode.cold or mode.batch):
        default = model.published.get(cell.dtype, default)
    return requested or default
