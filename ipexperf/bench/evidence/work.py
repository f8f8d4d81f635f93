"""The work of a step, independent of software: floating point operations, and elements that must be moved.

It is counted on the host in the untouched network in fp32, because torch's counter sees nothing of packed or jitted
networks.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

from ipexperf.bench import shared
from ipexperf.bench.api import Tensors, Workbench
from ipexperf.bench.lazy import torch


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one step: floating point operations, and elements that are read and written without caches."""

    flops: int
    elements: int
    parameters: int = 0
    """The elements of the network's parameters."""


def counted_once(bench: Workbench, kind: str, make: Callable[[], Work]) -> Work:
    """Return `make()`. The first worker of a run counts the steps of this kind, the others load the result."""
    made_of = [kind, bench.mode.family, bench.case.batch, bench.case.knobs]
    return Work(*shared.once(bench, "work", made_of, lambda: astuple(make())))


def count(step: Callable[[], Any], network: Any = None) -> Work:
    """Count a step of an untouched network: operators of torch's counter, and embeddings. Others may be fused."""
    counter = importlib.import_module("torch.utils.flop_counter")
    attention = _attention(counter)
    moved = {**dict.fromkeys((*counter.flop_registry, *attention), _moved), **_embeddings()}
    flops = counter.FlopCounterMode(display=False, custom_mapping=attention)
    elements = counter.FlopCounterMode(display=False, custom_mapping=moved)
    with torch.random.fork_rng(devices=[]), flops, elements:
        step()
    parameters = sum(value.numel() for value in network.parameters()) if network is not None else 0
    return Work(int(flops.get_total_flops()), int(elements.get_total_flops()), parameters)


def content(batch: Tensors) -> list[dict[str, Any]]:
    """Return what tells one batch from another: shape, mean and root mean square of each tensor."""
    values = [value.cpu().double() for value in batch]
    return [
        {"shape": [*value.shape], "mean": float(value.mean()), "rms": float(value.square().mean().sqrt())}
        for value in values
    ]


def _attention(counter: Any) -> dict[Any, Callable[..., int]]:
    """Formulas for the CPU's fused attention, which torch's counter lacks."""
    aten = torch.ops.aten

    def forward(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(counter.sdpa_flop_count(query, key, value))

    def backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(counter.sdpa_backward_flop_count(gradient, query, key, value))

    return {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,  # noqa: SLF001 - the name in the dispatcher
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,  # noqa: SLF001 - the same
    }


def _moved(*inputs: Any, out_shape: Any = None, **more: Any) -> int:
    """Count all input and output elements of an operator."""
    return sum(shape.numel() for shape in _shapes((inputs, tuple(more.values()), out_shape)))


def _shapes(value: Any) -> Iterator[Any]:
    """Yield the shapes of tensors among an operator's arguments. Strides and paddings are plain lists."""
    if isinstance(value, torch.Size):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _shapes(part)


def _embeddings() -> dict[Any, Callable[..., int]]:
    """Formulas for embeddings: the rows that are read or updated, never the whole table."""
    aten = torch.ops.aten
    return {
        aten.embedding: _embedding_elements,
        aten.embedding_dense_backward: _embedding_gradient_elements,
        aten._embedding_bag: _bag_elements,  # noqa: SLF001 - the names in the dispatcher
        aten._embedding_bag_forward_only: _bag_elements,  # noqa: SLF001
        aten._embedding_bag_backward: _bag_gradient_elements,  # noqa: SLF001
        aten._embedding_bag_dense_backward: _bag_gradient_elements,  # noqa: SLF001
    }


def _embedding_elements(_: Any, numbers: Any, *__: Any, out_shape: Any, **___: Any) -> int:
    return int(numbers.numel() + 2 * out_shape.numel())


def _embedding_gradient_elements(gradient: Any, numbers: Any, *_: Any, **__: Any) -> int:
    return int(numbers.numel() + 2 * gradient.numel())


def _bag_elements(table: Any, numbers: Any, offsets: Any, *_: Any, out_shape: Any, **__: Any) -> int:
    return int(numbers.numel() * (1 + table[1]) + offsets.numel() + out_shape[0].numel())


def _bag_gradient_elements(gradient: Any, numbers: Any, *_: Any, **__: Any) -> int:
    return int(gradient.numel() + numbers.numel() * (1 + gradient[1]))
