"""`--perf-size`, and default batches and sizes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipexperf.bench.api import Cell, Model

SMALL, NORMAL = "small", "normal"


def read(text: str) -> str | int:
    """Parse `small`, `normal`, or a number of pixels, tokens or whatever the model counts."""
    if text in (SMALL, NORMAL):
        return text
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected {SMALL}, {NORMAL} or a whole number of at least 1, got '{text}'")


def size(model: Model, wish: str | int) -> int:
    """The size of a model's inputs. Not every model has a normal size."""
    if isinstance(wish, int):
        return wish
    return model.normal or model.size if wish == NORMAL else model.size


def text(model: Model, count: int) -> str:
    """An input size for people, as the model's task counts: '224 x 224', '128 tokens'."""
    from ipexperf.bench import registry

    return registry.tasks.get(model.task).unit.format(count)


def unfit(model: Model, count: int) -> str | None:
    """Why inputs cannot have this size, or None."""
    if count < model.least:
        return f"{model.name} takes inputs of at least {text(model, model.least)}: {text(model, count)} is too small"
    if model.most is not None and count > model.most:
        return f"{model.name} takes inputs of at most {text(model, model.most)}: {text(model, count)} is too large"
    return None


def batch(cell: Cell, wish: int | None, *, published: bool) -> int:
    """The batch of a cell: the one asked for, the vendor's if published ones are wanted, or the model's."""
    from ipexperf.bench import registry  # now, not by every pytest run that declares the options

    model, mode = registry.models.get(cell.model), registry.modes.get(cell.mode)
    own = model.batch(mode)
    # The vendor published throughput of inference in batches only.
    if published and not (mode.trains or mode.cold or mode.batch):
        own = model.published.get(cell.dtype, own)
    return wish or own
