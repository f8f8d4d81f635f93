"""Make networks with structured outputs return plain tensors, because graphs support nothing else."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Tensors, tensors

_CONTAINERS = ("at the output of the tracer", "output from traced functions", "Tracer cannot infer type of")
"""Messages of torch about outputs that are neither a tensor nor a tuple of tensors."""


def answering(network: Any, inputs: int) -> Any:
    """Wrap a network with this many inputs so that it returns one tensor or a tuple of tensors."""

    class Answering(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *values: Any) -> Any:
            outputs = tensors(self.network(*values))
            return outputs[0] if len(outputs) == 1 else outputs

    class OfOne(Answering):
        """torch.fx, and so IPEX's folding of norms, can trace a named input but not `*values`."""

        def forward(self, value: Any) -> Any:
            return super().forward(value)

    return OfOne() if inputs == 1 else Answering()


def plain(network: Any, inputs: Tensors) -> bool:
    """Return True if the network returns a tensor or a tuple of tensors. Call it once, and restore its state."""
    modes = [(module, module.training) for module in network.modules()]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            outputs = network.eval()(*inputs)
    finally:
        for module, training in modes:
            module.training = training
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    return type(parts) is tuple and all(isinstance(part, torch.Tensor) for part in parts)


def traced(network: Any, example: Any, *, check: bool = True) -> Any:
    """Trace a network with torch.jit.trace, whatever container it returns.

    Torch's own check of a trace needs float64 on the device of the network.
    """
    try:
        return torch.jit.trace(network, example, check_trace=check)
    except RuntimeError as error:
        if not any(text in str(error) for text in _CONTAINERS):
            raise
    return torch.jit.trace(answering(network, len(example)).eval(), example, check_trace=check)
