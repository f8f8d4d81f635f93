"""`--perf-size`, and default batches and sizes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipexperf.bench.kinds import Cell
    from ipexperf.bench.subjects import Model
    from ipexperf.plan.matrix import Preset
    from ipexperf.plan.options import Options

SMALL, NORMAL = "small", "normal"


def read(text: str) -> str | int:
    """Parse `small`, `normal`, or a number of pixels, tokens or whatever the model counts."""
    if text in (SMALL, NORMAL):
        return text
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected {SMALL}, {NORMAL} or a whole number of at least 1, got '{text}'")


def size(model: Model, options: Options, preset: Preset) -> int:
    """The size of a model's inputs: the option's or else the preset's. Not every model has a normal size."""
    wish = options.size or preset.size
    if isinstance(wish, int):
        return wish
    return model.normal or model.size if wish == NORMAL else model.size


def batch(cell: Cell, options: Options, preset: Preset) -> int:
    """The batch of a cell: the option's, the vendor's if the preset says so, or the model's."""
    from ipexperf.bench import registry  # now, not by every pytest run that declares the options

    model, mode = registry.models.get(cell.model), registry.modes.get(cell.mode)
    own = model.batch(mode)
    # The vendor published throughput of inference in batches only.
    if preset.published and not (mode.trains or mode.cold or mode.batch):
        own = model.published.get(cell.dtype, own)
    return options.batch or own
