"""What a step has to do, whatever software does it: floating point operations, and elements that must be moved.

Counted on the host, in the untouched network and fp32: torch's counter sees nothing of a packed or jitted one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

from ipexperf.bench import shared
from ipexperf.bench.lazy import torch
from ipexperf.bench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Work:
    """Of one step: floating point operations, and elements that are read and written if nothing is kept in caches."""

    flops: int
    elements: int


def counted_once(bench: Workbench, kind: str, make: Callable[[], Work]) -> Work:
    """What `make` counts for steps of this kind: counted by the first worker of a run, and read by the others."""
    made_of = [kind, bench.mode.family, bench.case.batch, bench.case.knobs]
    return Work(*shared.once(bench, "work", made_of, lambda: astuple(make())))


def count(step: Callable[[], Any]) -> Work:
    """Counts a step of an untouched network: what torch's counter knows, and embeddings. All else may be fused."""
    counter = importlib.import_module("torch.utils.flop_counter")
    attention = _attention(counter)
    moved = {**dict.fromkeys((*counter.flop_registry, *attention), _moved), **_embeddings()}
    flops = counter.FlopCounterMode(display=False, custom_mapping=attention)
    elements = counter.FlopCounterMode(display=False, custom_mapping=moved)
    with torch.random.fork_rng(devices=[]), flops, elements:
        step()
    return Work(int(flops.get_total_flops()), int(elements.get_total_flops()))


def _attention(counter: Any) -> dict[Any, Callable[..., int]]:
    """The CPU's fused attention, which torch's counter does not know: the operations are those of any other."""
    aten = torch.ops.aten

    def forward(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(counter.sdpa_flop_count(query, key, value))

    def backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(counter.sdpa_backward_flop_count(gradient, query, key, value))

    return {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,  # noqa: SLF001 - the name that the dispatcher has
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,  # noqa: SLF001 - the same
    }


def _moved(*given: Any, out_shape: Any = None, **more: Any) -> int:
    """All elements that an operator is given, and all that it gives."""
    return sum(shape.numel() for shape in _shapes((given, tuple(more.values()), out_shape)))


def _shapes(value: Any) -> Iterator[Any]:
    """The shapes of tensors among an operator's arguments; strides and paddings are plain lists."""
    if isinstance(value, torch.Size):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _shapes(part)


def _embeddings() -> dict[Any, Callable[..., int]]:
    """Lookups: the rows that are read or added to, never the whole table."""
    aten = torch.ops.aten
    return {
        aten.embedding: _looked_up,
        aten.embedding_dense_backward: _handed_back,
        aten._embedding_bag: _bagged,  # noqa: SLF001 - the names that the dispatcher has
        aten._embedding_bag_forward_only: _bagged,  # noqa: SLF001
        aten._embedding_bag_backward: _bag_handed_back,  # noqa: SLF001
        aten._embedding_bag_dense_backward: _bag_handed_back,  # noqa: SLF001
    }


def _looked_up(_: Any, numbers: Any, *__: Any, out_shape: Any, **___: Any) -> int:
    return int(numbers.numel() + 2 * out_shape.numel())


def _handed_back(gradient: Any, numbers: Any, *_: Any, **__: Any) -> int:
    return int(numbers.numel() + 2 * gradient.numel())


def _bagged(table: Any, numbers: Any, offsets: Any, *_: Any, out_shape: Any, **__: Any) -> int:
    return int(numbers.numel() * (1 + table[1]) + offsets.numel() + out_shape[0].numel())


def _bag_handed_back(gradient: Any, numbers: Any, *_: Any, **__: Any) -> int:
    return int(gradient.numel() + numbers.numel() * (1 + gradient[1]))
