"""Stock PyTorch's int8 for torch.compile: PT2E with the device's quantizer, whose patterns inductor lowers to int8."""

from __future__ import annotations

import inspect
import json
from operator import attrgetter
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Quantised, Workbench
from ipexperf.bench.artifacts import artifact, pt2e
from ipexperf.bench.cell import Cell
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts, cpu_flags
from ipexperf.bench.model import Tensors


def why_not(cell: Cell, facts: Facts) -> str | None:
    """Return why an exported int8 program is not possible, or None."""
    if registry.modes.get(cell.mode).artifact != "program":
        return None
    device = registry.devices.get(cell.device)
    if artifact.quantisation_of(cell) == "dynamic" and not device.dynamic_scales:
        return f"PT2E for {cell.device} has no dynamic quantisation: its scales are calibrated"
    if facts.pt2e.get(device.quantizer):
        return None
    return f"int8 in {cell.mode} needs torchao, because this torch has no PT2E for {cell.device}: pip install torchao"


def quantise(network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
    """Convert as documented by PyTorch: export, prepare, calibrate, convert, with the default configuration.

    All of it runs on the CPU, also for another device: a launch moves the program there when it loads it.
    """
    device = bench.case.device
    steps, tools = pt2e.tools(device)
    dynamic = bench.knob("quantisation") == "dynamic"
    reduced = device == "cpu" and not cpu_flags() & artifact.VNNI
    quantizer = _quantizer(tools, registry.devices.get(device).quantizer, is_dynamic=dynamic, reduce_range=reduced)
    prepared = steps.prepare_pt2e(pt2e.exported(network, example), quantizer)
    with torch.no_grad():
        # Dynamic quantisation needs no calibration, but its observers see the weights only in a call.
        for batch in _of_size(batches, example, bench) or [example]:
            prepared(*batch)
    converted = steps.convert_pt2e(prepared)
    package = pt2e.home(device).partition(".quantization")[0]
    bits = "no VNNI: activations in 7 bits" if reduced else "activations in 8 bits"
    place = "" if device == "cpu" else f", for {device}"
    scope = ", linear layers alone" if dynamic else ""
    return Quantised(converted, _scales(converted, device), f"PT2E of {package}, {bits}{place}{scope}")


def _quantizer(tools: Any, name: str, **settings: bool) -> Any:
    """Return the quantizer with its default configuration, and of the settings those that it has.

    That for x86 has 7 bits too: on a CPU without VNNI two products of 8 bits overflow 16.
    """
    configuration = getattr(tools, f"get_default_{name}_inductor_quantization_config")
    known = inspect.signature(configuration).parameters
    chosen = configuration(**{setting: value for setting, value in settings.items() if setting in known})
    return getattr(tools, f"{name.upper()}InductorQuantizer")().set_global(chosen)


def _of_size(batches: list[Tensors], example: Tensors, bench: Workbench) -> list[Tensors]:
    """Return the examples in batches of this size with the last one padded, because the graph has a fixed batch."""
    if not batches:
        return []
    inputs, size = tuple(torch.cat(leaves) for leaves in zip(*batches, strict=True)), len(example[0])
    count = len(inputs[0])
    order = [index % count for index in range(-(-count // size) * size)]
    parts = [order[begin : begin + size] for begin in range(0, len(order), size)]
    return [tuple(bench.laid_out(value[part]) for value in inputs) for part in parts]


def _scales(converted: Any, device: str) -> str:
    """Return the scales, zero points and ranges in the graph as JSON. PT2E has no file format for them."""
    scales = {
        node.name: {
            "operator": str(node.target),
            "of": node.args[0].name,
            "parameters": [_plain(converted, argument) for argument in node.args[1:]],
        }
        for node in converted.graph.nodes
        if str(node.target).startswith("quantized_decomposed.")
    }
    return json.dumps({"home": pt2e.home(device), "observed": scales}, indent=1, sort_keys=True) + "\n"


def _plain(converted: Any, value: Any) -> Any:
    """Return a parameter for JSON: numbers of a constant, or the name of a value computed in each step."""
    if isinstance(value, torch.fx.Node):
        return attrgetter(value.target)(converted).tolist() if value.op == "get_attr" else value.name
    return value if isinstance(value, (int, float)) else str(value)
