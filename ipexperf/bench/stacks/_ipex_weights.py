"""IPEX's weight-only quantisation: prepare and convert, as its guide says for networks of one's own."""

from __future__ import annotations

import importlib
from typing import Any

from ipexperf.bench.api import Workbench
from ipexperf.proof import quantised
from ipexperf.result import Check

KERNEL = "torch_ipex::ipex_woq_linear"
COMPUTING = {"fp32": "NONE", "bf16": "BF16", "fp16": "FP16"}
"""IPEX's name for computing in a case's dtype. NONE: in the dtype of the activations."""
PADDING = 1.1
"""Packed weights may be padded to whole blocks by this factor."""


def mapping(bench: Workbench) -> Any:
    """Return how IPEX is to pack the weights of linear layers: 8 bits with a scale a row, or 4 bits in groups."""
    kind, tools = bench.knob("weights"), _tools()
    return tools.get_weight_only_quant_qconfig_mapping(
        weight_dtype=getattr(tools.WoqWeightDtype, kind.upper()),
        lowp_mode=getattr(tools.WoqLowpMode, COMPUTING[bench.case.dtype]),
        group_size=int(bench.knob("weight_group")) if kind == "int4" else -1,
    )


def pack(network: Any, example: Any, bench: Workbench) -> Any:
    """Convert all linear layers."""
    tools = _tools()
    prepared = tools.prepare(network, mapping(bench), example_inputs=example, inplace=True, bn_folding=False)
    return tools.convert(prepared, inplace=True)


def _tools() -> Any:
    return importlib.import_module("intel_extension_for_pytorch.quantization")


def proof(network: Any, step: Any, expected: int, bench: Workbench) -> list[Check]:
    """Check the bits of the packed weights, and that a step ran in their kernel."""
    layers = [layer for layer in network.modules() if type(layer).__name__ == "WeightOnlyQuantizedLinear"]
    sizes = [(layer.in_features * layer.out_features, layer.weight.nbytes) for layer in layers]
    bits_limit = PADDING * quantised.BITS[bench.knob("weights")]
    return [quantised.packed_weights(sizes, bits_limit), quantised.packed_kernels(step, KERNEL, expected)]
