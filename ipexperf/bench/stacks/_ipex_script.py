"""The lines of a user's script that use IPEX, for each method of the stack, as in the vendor's guide."""

from __future__ import annotations

from collections.abc import Mapping

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.precision import dtype_name
from ipexperf.bench.stacks._ipex_knobs import KNOBS

IMPORT = "import intel_extension_for_pytorch as ipex"
ARGUMENTS: Mapping[str, str] = {"split_master_weight": "split_master_weight_for_bf16"}
"""Knobs with another name in `ipex.optimize`."""


def _optimise(cell: Cell, target: str, *arguments: str) -> tuple[str, ...]:
    """Return a call of `ipex.optimize` with the settings of the cell, whose names are those of its knobs."""
    settings = [
        f'level="{value}"' if name == "level" else f"{ARGUMENTS.get(name, name)}={value == 'on'}"
        for name, value in cell.knobs
        if any(knob.name == name for knob in KNOBS)
    ]
    words = ", ".join(["model", *arguments, f"dtype={dtype_name(cell.dtype)}", *settings])
    return IMPORT, f"{target} = ipex.optimize({words})"


def for_inference(cell: Cell) -> tuple[str, ...]:
    graph = cell.knob("graph_mode") == "on"
    return _optimise(cell, "model", *(() if graph else ("sample_input=inputs",)))


def for_training(cell: Cell) -> tuple[str, ...]:
    unpacked = ("weights_prepack=False",) if registry.modes.get(cell.mode).graph == COMPILED else ()
    return _optimise(cell, "model, optimizer", "optimizer=optimizer", *unpacked)


def compiled(cell: Cell) -> tuple[str, ...]:
    return (*_optimise(cell, "model", "weights_prepack=False"), *compiled_training(cell))


def compiled_training(cell: Cell) -> tuple[str, ...]:
    del cell
    return ('model = torch.compile(model, backend="ipex")',)


def quantise(cell: Cell) -> tuple[str, ...]:
    way = artifact.quantisation_of(cell)
    calibrate = ("with torch.no_grad():", "    for batch in calibration:", "        prepared(*batch)")
    return (
        f"from intel_extension_for_pytorch.quantization import convert, default_{way}_qconfig_mapping, prepare",
        f"prepared = prepare(model, default_{way}_qconfig_mapping, example_inputs=inputs)",
        *(calibrate if way == "static" else ()),
        "model = convert(prepared)",
    )


METHODS = {
    "for_inference": for_inference,
    "for_training": for_training,
    "compiled": compiled,
    "compiled_training": compiled_training,
    "quantise": quantise,
}
"""The methods of the stack for which a script needs a line."""
