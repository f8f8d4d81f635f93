"""Weight-only quantisation with torch's own packed kernels: 8 bits with a scale a row, or 4 bits in groups.

These are the kernels that torchao calls on a CPU, so nothing but torch is needed. Imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ipexperf.bench.evidence import quantised
from ipexperf.errors import WorkerError
from ipexperf.result import Check

KERNELS = {"int8": "aten::_weight_int8pack_mm", "int4": "aten::_weight_int4pack_mm_for_cpu"}
"""The operator that multiplies by each kind of weights, by its name in torch's profiler."""
LARGEST = {"int8": 127, "int4": 15}
HALF = 8
"""Weights of 4 bits are counted from 0 to 15: this stands for the middle of a group."""
SMALLEST = 1e-6
"""Least range of a row or a group, so that nothing is divided by 0."""


class PackedLinear(nn.Module):  # type: ignore[misc] # torch has no types here
    """A linear layer with packed weights."""

    def __init__(self, layer: Any, kind: str, group: int) -> None:
        super().__init__()
        self.kind, self.group, self.bias = kind, group, layer.bias
        self.count = layer.weight.numel()
        whole, scales, middles = parts(layer.weight.detach(), kind, group)
        dtype = layer.weight.dtype
        if kind == "int8":
            weight, scale = whole.to(torch.int8), scales.flatten().to(dtype)
        else:
            whole = whole.flatten(1).to(torch.int32)
            weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(whole, 1)  # noqa: SLF001 - as torchao does
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


def parts(weight: Any, kind: str, group: int) -> tuple[Any, Any, Any]:
    """Return whole numbers, scales and middles of weights, in groups as their last dimension but one."""
    exact = weight.to(torch.promote_types(weight.dtype, torch.float32))
    if kind == "int8":
        scales = exact.abs().amax(1, keepdim=True).clamp(min=SMALLEST) / LARGEST[kind]
        return (exact / scales).round(), scales, torch.zeros_like(scales)
    grouped = exact.unflatten(1, (-1, group))
    least, most = grouped.amin(2, keepdim=True), grouped.amax(2, keepdim=True)
    scales = (most - least).clamp(min=SMALLEST) / LARGEST[kind]
    whole = ((grouped - least) / scales).round().clamp(0, LARGEST[kind])
    return whole, scales, least + HALF * scales


def rounded(weight: Any, kind: str, group: int) -> Any:
    """Return the weights as the packed ones stand for them, in the dtype that they had."""
    whole, scales, middles = parts(weight, kind, group)
    if kind == "int4":
        whole = whole - HALF
    return (whole * scales + middles).flatten(1).to(weight.dtype)


def linear(network: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield all linear layers of a network, each with its parent and its name there."""
    for parent in [*network.modules()]:
        for name, layer in [*parent.named_children()]:
            if isinstance(layer, nn.Linear):
                yield parent, name, layer


def pack(network: Any, kind: str, group: int) -> Any:
    """Replace all linear layers by packed ones."""
    for parent, name, layer in linear(network):
        _check(name, layer, kind, group)
        setattr(parent, name, PackedLinear(layer, kind, group))
    return network


def round_all(network: Any, kind: str, group: int) -> Any:
    """Round the weights of all linear layers. What a packed network adds to this error is its kernels'."""
    for _, name, layer in linear(network):
        _check(name, layer, kind, group)
        layer.weight = nn.Parameter(rounded(layer.weight.detach(), kind, group), requires_grad=False)
    return network


def _check(name: str, layer: Any, kind: str, group: int) -> None:
    if kind == "int4" and layer.in_features % group:
        text = f"groups of {group} do not divide the {layer.in_features} inputs of the layer {name}"
        raise WorkerError("error", f"weights=int4: {text}: choose a smaller group")


def proof(network: Any, step: Any, kind: str, expected: int) -> list[Check]:
    """Check the bits of the packed weights, and that a step ran in their kernel."""
    layers = [layer for layer in network.modules() if isinstance(layer, PackedLinear)]
    sizes = [(layer.count, layer.weight.nbytes) for layer in layers]
    kernel = KERNELS[kind]
    return [quantised.packed_weights(sizes, quantised.BITS[kind]), quantised.packed_kernels(step, kernel, expected)]
