"""Weight-only quantisation with torch's own packed kernels: 8 bits with a scale a row, or 4 bits in groups.

These are the kernels that torchao calls on a CPU, so nothing but torch is needed. Imported when it is used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ipexperf.bench.artifacts import rounding
from ipexperf.proof import quantised
from ipexperf.result import Check

KERNELS = {"int8": "aten::_weight_int8pack_mm", "int4": "aten::_weight_int4pack_mm_for_cpu"}
"""The operator that multiplies by each kind of weights, by its name in torch's profiler."""


class PackedLinear(nn.Module):  # type: ignore[misc] # torch has no types here
    """A linear layer with packed weights."""

    def __init__(self, layer: Any, kind: str, group: int) -> None:
        super().__init__()
        self.kind, self.group, self.bias = kind, group, layer.bias
        self.count = layer.weight.numel()
        numbers, scales, middles = rounding.parts(layer.weight.detach(), kind, group)
        dtype = layer.weight.dtype
        if kind == "int8":
            weight, scale = numbers.to(torch.int8), scales.flatten().to(dtype)
        else:
            numbers = numbers.flatten(1).to(torch.int32)
            weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1)  # noqa: SLF001 - as torchao does
            scale = torch.stack((scales, middles), -1).squeeze(2).transpose(0, 1).contiguous().to(dtype)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)

    def forward(self, inputs: Any) -> Any:
        rows, aten = inputs.flatten(0, -2), torch.ops.aten
        if self.kind == "int8":
            outputs = aten._weight_int8pack_mm(rows, self.weight, self.scale)  # noqa: SLF001
        else:
            outputs = aten._weight_int4pack_mm_for_cpu(rows, self.weight, self.group, self.scale)  # noqa: SLF001
        outputs = outputs.unflatten(0, inputs.shape[:-1])
        return outputs if self.bias is None else outputs + self.bias


def pack(network: Any, kind: str, group: int) -> Any:
    """Replace all linear layers by packed ones."""
    for parent, name, layer in rounding.linear(network):
        rounding.check(name, layer, kind, group)
        setattr(parent, name, PackedLinear(layer, kind, group))
    return network


def proof(network: Any, step: Any, kind: str, expected: int) -> list[Check]:
    """Check the bits of the packed weights, and that a step ran in their kernel."""
    layers = [layer for layer in network.modules() if isinstance(layer, PackedLinear)]
    sizes = [(layer.count, layer.weight.nbytes) for layer in layers]
    kernel = KERNELS[kind]
    return [quantised.packed_weights(sizes, quantised.BITS[kind]), quantised.packed_kernels(step, kernel, expected)]
