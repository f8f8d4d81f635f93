"""The common base of prefill and decode: a network with a key-value cache, and the proof that it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Cell, Tensors
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.bench.precision import autocast
from ipexperf.dtypes import DTYPES
from ipexperf.result import Check

TASK = "language_modelling"


def why_not(cell: Cell) -> str | None:
    """Return why a network cannot generate text token by token, or None."""
    if registry.models.get(cell.model).task != TASK:
        return f"{cell.mode} is for networks that predict the next token: {cell.model} does not"
    if cell.knob("graph_mode") == "on":
        return f"graph_mode=on captures one graph, but {cell.mode} keeps state between calls"
    return None


class GenerationSession(InferenceSession):
    """A trained decoder in eager mode with a key-value cache."""

    def build(self, network: Any, example: Tensors) -> Any:
        return self.bench.stack.for_inference(network, example, self.bench)

    def read(self, tokens: Any, memory: Any = None, begin: int = 0) -> Any:
        """Return the network's outputs for these tokens, which follow those in the cache."""
        with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype, cache=False):
            return self.network(tokens, memory, begin) if memory is not None else self.network(tokens)

    def proof(self) -> list[Check]:
        tokens = self.inputs[0][0]
        return [
            *super().proof(),
            *self.bench.stack.proof_of_inference(self.network, self.bench),
            tokens_read(self.network, self.step, self.items(self.bench.case.batch)),
            remembered(self, tokens, DTYPES[self.bench.case.dtype].bounds.fidelity),
        ]


def tokens_read(network: Any, step: Callable[[], Any], expected: int) -> Check:
    """Check that every linear layer gets as many tokens as a step should read, so that none is read again."""
    layers = [module for module in network.modules() if "Linear" in type(module).__name__]
    counts = dict.fromkeys(layers, 0)

    def count(layer: Any, inputs: Tensors) -> None:
        counts[layer] += inputs[0].shape[:-1].numel()

    handles = [layer.register_forward_pre_hook(count) for layer in layers]
    try:
        step()
    finally:
        for handle in handles:
            handle.remove()
    numbers = sorted(set(counts.values()))
    text = f"{' or '.join(map(str, numbers)) or 'no'} tokens in each of {len(layers)} linear layers"
    return Check("tokens_read", numbers == [expected], text, f"{expected} in each")


def remembered(session: GenerationSession, tokens: Any, bound: float) -> Check:
    """Check that the last token has the same output with the cache as in the whole text, and another one without it."""
    last = tokens.shape[1] - 1
    whole = session.read(tokens)[:, -1:]
    memory = session.network.memory()
    session.read(tokens[:, :last], memory)
    behind = _distance(session.read(tokens[:, last:], memory, last), whole)
    for kept in memory:
        for part in (kept.keys, kept.values):
            if part is not None:
                part.zero_()
    forgotten = _distance(session.read(tokens[:, last:], memory, last), whole)
    text = f"{behind:.1e} off the whole text, {forgotten:.1e} without the cache"
    return Check("memory", behind <= bound < forgotten, text, f"at most {bound:.1e}, and more without the cache")


def _distance(outputs: Any, expected: Any) -> float:
    """Return the relative RMSE."""
    exact = expected.double()
    return float((outputs.double() - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt())
