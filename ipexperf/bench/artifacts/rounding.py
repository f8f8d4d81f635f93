"""Rounding of weights that are then packed: 8 bits with a scale a row, or 4 bits in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

GROUPED = ("int4", "da8w4")
"""Kinds of packed weights that share scales in groups. The others have a scale a row."""
LARGEST = {"int8": 127, **dict.fromkeys(GROUPED, 15)}
HALF = 8
"""The middle of the numbers 0 to 15 of a weight of 4 bits."""
SMALLEST = 1e-6
"""The least range of a row or a group, so that nothing is divided by 0."""


def parts(weight: Any, kind: str, group: int) -> tuple[Any, Any, Any]:
    """Return whole numbers, scales and middles of weights. Groups are their last dimension but one."""
    exact = weight.to(torch.promote_types(weight.dtype, torch.float32))
    if kind not in GROUPED:
        scales = exact.abs().amax(1, keepdim=True).clamp(min=SMALLEST) / LARGEST[kind]
        return (exact / scales).round(), scales, torch.zeros_like(scales)
    grouped = exact.unflatten(1, (-1, group))
    lowest, highest = grouped.amin(2, keepdim=True), grouped.amax(2, keepdim=True)
    scales = (highest - lowest).clamp(min=SMALLEST) / LARGEST[kind]
    numbers = ((grouped - lowest) / scales).round().clamp(0, LARGEST[kind])
    return numbers, scales, lowest + HALF * scales


def rounded(weight: Any, kind: str, group: int) -> Any:
    """Return the values that the packed weights stand for, in the dtype of the original ones."""
    numbers, scales, middles = parts(weight, kind, group)
    if kind in GROUPED:
        numbers = numbers - HALF
    return (numbers * scales + middles).flatten(1).to(weight.dtype)


def linear(network: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield all linear layers of a network, each with its parent and its name there."""
    for parent in [*network.modules()]:
        for name, layer in [*parent.named_children()]:
            if isinstance(layer, torch.nn.Linear):
                yield parent, name, layer


def round_all(network: Any, kind: str, group: int) -> Any:
    """Round the weights of all linear layers. Any further error of a packed network comes from its kernels."""
    for _, name, layer in linear(network):
        check(name, layer, kind, group)
        layer.weight = torch.nn.Parameter(rounded(layer.weight.detach(), kind, group), requires_grad=False)
    return network


def check(name: str, layer: Any, kind: str, group: int) -> None:
    """Raise an error if groups of this size do not divide a layer."""
    if kind in GROUPED and layer.in_features % group:
        text = f"groups of {group} do not divide the {layer.in_features} inputs of the layer {name}"
        raise WorkerError("error", f"weights={kind}: {text}: choose a smaller group")
