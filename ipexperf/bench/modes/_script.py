"""The parts of a user's script that several modes share."""

from __future__ import annotations

from ipexperf.bench.api import Stack
from ipexperf.bench.cell import Cell
from ipexperf.bench.precision import script_of_autocast
from ipexperf.dtypes import quantised

TRACE = "model = torch.jit.freeze(torch.jit.trace(model, inputs))"


def optimised(cell: Cell, stack: Stack) -> tuple[str, ...]:
    """Return the lines that make `model` what the stack makes of it, in int8 from a calibration."""
    return stack.script("quantise" if quantised(cell.dtype) else "for_inference", cell)


def inferring(cell: Cell, *lines: str) -> tuple[str, ...]:
    """Return these lines and the inference of a batch, under the autocast of the case."""
    contexts = ", ".join(filter(None, ("torch.no_grad()", script_of_autocast(cell.device, cell.dtype, cache=False))))
    return (f"with {contexts}:", *(f"    {line}" for line in (*lines, "outputs = model(*inputs)")))


def inference(cell: Cell, stack: Stack, *lines: str) -> tuple[str, ...]:
    """Return the whole script of an optimised network, with these lines before it infers."""
    return (*optimised(cell, stack), *inferring(cell, *lines))
