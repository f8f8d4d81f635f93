"""What a network takes: its parameters, the arithmetic of one example, and the memory that one needs on its way.

Looked at in stock PyTorch and fp32, on the CPU, with weights that nobody trained.
"""

from __future__ import annotations

from typing import Any

from ipexperf.bench import weights
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Examples, Split, Task, Tensors
from ipexperf.bench.workbench import Workbench

PAIR = 2
"""So many examples show what training keeps: batch norm has no statistics of one alone."""


def look(bench: Workbench) -> dict[str, float]:
    """Parameters and FLOPs, and bytes: of the weights, of the examples, and of one example on its way."""
    split = weights.read(bench)
    network = bench.model.build()
    flops, passing = _forward(network.eval(), split.test.part([0]).inputs)
    # Examples are copied by their numbers: a slice would count as all that it was cut from.
    kept = _kept(network.train(), split.train.part(list(range(PAIR))), bench.task) / PAIR if bench.mode.trains else 0.0
    return {
        "parameters": sum(value.numel() for value in network.parameters()),
        "weights": sum(value.nbytes for value in (*network.parameters(), *network.buffers())),
        "examples": _stored(split),
        "flops": flops,
        "passing": passing,
        "kept": kept,
    }


def _forward(network: Any, inputs: Tensors) -> tuple[int, int]:
    """FLOPs of one example, and the bytes that go into and come out of the layer that has most of them."""
    from torch.utils.flop_counter import FlopCounterMode

    sizes = [0]

    def seen(_: Any, given: Any, answer: Any) -> None:
        sizes.append(_bytes(given) + _bytes(answer))

    hooks = [x.register_forward_hook(seen) for x in network.modules() if next(x.children(), None) is None]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(*inputs)
    for hook in hooks:
        hook.remove()
    return int(counter.get_total_flops()), max(sizes)


def _bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return int(value.nbytes)
    return sum(map(_bytes, value)) if isinstance(value, (list, tuple)) else 0


def _kept(network: Any, examples: Examples, task: Task) -> int:
    """Bytes that a forward pass keeps for its gradients, without the weights, which are there in any case."""
    own = {value.untyped_storage().data_ptr() for value in network.parameters()}
    kept: dict[int, int] = {}

    def keep(value: Any) -> Any:
        storage = value.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return value  # held by the loss, so that nothing else gets its place

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        loss, _ = task.learn(network, examples.inputs, examples.targets)
    del loss
    return sum(kept.values())


def _stored(split: Split) -> int:
    """Bytes that all examples have in memory: what several tensors share counts once."""
    storages = [value.untyped_storage() for value in (*split.train.tensors, *split.test.tensors)]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
