"""The footprint of a network: parameters, FLOPs of an example, and memory of an example on its way through.

Measured with stock PyTorch in fp32 on the CPU, with untrained weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Examples, Task, Tensors

PAIR = 2
"""Number of examples for measuring what training keeps: batch norm needs more than one."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Counts of a network, and bytes of memory."""

    parameters: int
    flops: int
    """The FLOPs of one example."""
    weights: float
    examples: float
    passing: float
    """The most bytes that go into and come out of any layer, for one example."""
    kept: float
    """Bytes that training keeps for the gradients of one example. 0 in inference."""

    @classmethod
    def parse(cls, reply: Mapping[str, float]) -> Footprint:
        """Read the reply of a worker."""
        return cls(**{field.name: reply[field.name] for field in fields(cls)})  # type: ignore[arg-type] # by their names


def measure(bench: Workbench) -> Footprint:
    split = weights.read(bench)
    network = bench.model.build()
    flops, passing = _forward(network.eval(), split.test.part([0]).inputs)
    # Examples are copied by index: a slice would count as all the storage that it was cut from.
    kept = (
        _bytes_for_gradients(network.train(), split.train.part(list(range(PAIR))), bench.task) / PAIR
        if bench.mode.trains
        else 0.0
    )
    tensors = (value.untyped_storage() for value in (*split.train.tensors, *split.test.tensors))
    stored = {storage.data_ptr(): storage.nbytes() for storage in tensors}  # shared storage counts once
    return Footprint(
        parameters=sum(value.numel() for value in network.parameters()),
        flops=flops,
        weights=sum(value.nbytes for value in (*network.parameters(), *network.buffers())),
        examples=sum(stored.values()),
        passing=passing,
        kept=kept,
    )


def _forward(network: Any, inputs: Tensors) -> tuple[int, int]:
    """Return the FLOPs of one example, and the most bytes that go into and come out of any layer."""
    from torch.utils.flop_counter import FlopCounterMode

    sizes = [0]

    def record_bytes(_: Any, inputs: Any, outputs: Any) -> None:
        sizes.append(_bytes(inputs) + _bytes(outputs))

    layers = [module for module in network.modules() if next(module.children(), None) is None]
    hooks = [layer.register_forward_hook(record_bytes) for layer in layers]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(*inputs)
    for hook in hooks:
        hook.remove()
    return int(counter.get_total_flops()), max(sizes)


def _bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return int(value.nbytes)
    return sum(map(_bytes, value)) if isinstance(value, (list, tuple)) else 0


def _bytes_for_gradients(network: Any, examples: Examples, task: Task) -> int:
    """Return the bytes that a forward pass keeps for gradients, without the weights."""
    weights_storages = {value.untyped_storage().data_ptr() for value in network.parameters()}
    stored: dict[int, int] = {}

    def keep(value: Any) -> Any:
        storage = value.untyped_storage()
        if storage.data_ptr() not in weights_storages:
            stored[storage.data_ptr()] = storage.nbytes()
        return value  # autograd holds the value itself, so nothing else reuses its memory

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        loss, _ = task.learn(network, examples.inputs, examples.targets)
    del loss
    return sum(stored.values())
