"""Networks that answer in containers of their own, made to answer in plain tensors: a graph knows nothing else."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import tensors

_CONTAINERS = ("at the output of the tracer", "output from traced functions", "Tracer cannot infer type of")
"""What torch says of an answer that is neither a tensor nor a tuple of them."""


def answering(network: Any) -> Any:
    """The same network, which answers with one tensor, or a tuple of them. What is no network stays what it is."""
    if not isinstance(network, torch.nn.Module):
        return network

    class Answering(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *inputs: Any) -> Any:
            found = tensors(self.network(*inputs))
            return found[0] if len(found) == 1 else found

    return Answering()


def traced(network: Any, example: Any) -> Any:
    """The network under torch.jit.trace, whatever container its answers come in."""
    try:
        return torch.jit.trace(network, example)
    except RuntimeError as error:
        if not any(text in str(error) for text in _CONTAINERS):
            raise
    return torch.jit.trace(answering(network).eval(), example)
