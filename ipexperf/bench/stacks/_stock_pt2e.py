"""Stock PyTorch's int8 for torch.compile: PT2E with the device's quantizer, whose patterns inductor lowers to int8."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Cell, Quantised, Tensors, Workbench
from ipexperf.bench.artifacts import artifact, pt2e
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import facts
from ipexperf.bench.machine.facts import Facts, cpu_flags


def why_not(cell: Cell, facts: Facts) -> str | None:
    """Return why an exported int8 program is not possible, or None."""
    if registry.modes.get(cell.mode).artifact != "program":
        return None
    if cell.device != "cpu" and artifact.quantisation_of(cell) == "dynamic":
        return f"PT2E for {cell.device} has no dynamic quantisation: its scales are calibrated"
    if facts.pt2e.get(cell.device):
        return None
    return f"int8 in {cell.mode} needs torchao, because this torch has no PT2E for {cell.device}: pip install torchao"


def quantise(network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
    """Convert as documented by PyTorch: export, prepare, calibrate, convert, with the default configuration.

    All of it runs on the CPU, also for another device: a launch moves the program there when it loads it.
    """
    device = bench.case.device
    steps, tools = pt2e.tools(device)
    dynamic = bench.knob("quantisation") == "dynamic"
    quantizer, bits = _QUANTIZERS[device](tools, dynamic=dynamic)
    prepared = steps.prepare_pt2e(pt2e.exported(network, example), quantizer)
    with torch.no_grad():
        # Dynamic quantisation needs no calibration, but its observers see the weights only in a call.
        for batch in _of_size(batches, example, bench) or [example]:
            prepared(*batch)
    converted = steps.convert_pt2e(prepared)
    package = facts.pt2e_home(device).partition(".quantization")[0]
    scope = ", linear layers alone" if dynamic else ""
    return Quantised(converted, _scales(converted, device), f"PT2E of {package}, {bits}{scope}")


def _for_cpu(tools: Any, *, dynamic: bool) -> tuple[Any, str]:
    """Return the quantizer for x86 and its bits: 7 on a CPU without VNNI, where two products overflow 16 bits."""
    reduced = not cpu_flags() & artifact.VNNI
    configuration = tools.get_default_x86_inductor_quantization_config(is_dynamic=dynamic, reduce_range=reduced)
    bits = "no VNNI: activations in 7 bits" if reduced else "activations in 8 bits"
    return tools.X86InductorQuantizer().set_global(configuration), bits


def _for_xpu(tools: Any, *, dynamic: bool) -> tuple[Any, str]:
    """Return the quantizer for Intel GPUs, which has signed activations and no dynamic quantisation."""
    if dynamic:
        raise ValueError("PT2E for xpu has no dynamic quantisation")
    configuration = tools.get_default_xpu_inductor_quantization_config()
    return tools.XPUInductorQuantizer().set_global(configuration), "activations in 8 bits, for xpu"


_QUANTIZERS = {"cpu": _for_cpu, "xpu": _for_xpu}


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
    return json.dumps({"home": facts.pt2e_home(device), "observed": scales}, indent=1, sort_keys=True) + "\n"


def _plain(converted: Any, value: Any) -> Any:
    """Return a parameter for JSON: numbers of a constant, or the name of a value computed in each step."""
    if isinstance(value, torch.fx.Node):
        return attrgetter(value.target)(converted).tolist() if value.op == "get_attr" else value.name
    return value if isinstance(value, (int, float)) else str(value)
