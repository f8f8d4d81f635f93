"""The common base of prefill and decode: a network with a key-value cache, and the proof that it is used."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Mode, Workbench
from ipexperf.bench.artifacts import rounding
from ipexperf.bench.cell import Cell
from ipexperf.bench.knob import Knob
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Tensors, tensors
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.bench.precision import autocast, torch_dtype
from ipexperf.dtypes import DTYPES, PLAIN, Bounds
from ipexperf.result import Check

PACKED = {
    "int8": Bounds(fidelity=0.05, agreement=0.95, sensitive=0.1),
    "int4": Bounds(fidelity=0.6, agreement=0.75, sensitive=0.9),
    "da8w4": Bounds(fidelity=0.6, agreement=0.75, sensitive=0.9),
}
"""Kinds of packed weights, and the bounds of what they may cost. Kernels are held to more: to plain PyTorch with the
same rounded weights."""
ROUNDED = 0.01
"""How far an output may be off if a few of its activations are rounded to a neighbouring number of 8 bits."""


@dataclass(frozen=True)
class WeightsKnob(Knob):
    """The knob for how low precision holds the weights."""

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        if value not in PACKED and cell.dtype == PLAIN:
            return f"weights={value} would change nothing in {PLAIN}"
        if value in PACKED and cell.device != "cpu":
            return f"weights={value} is built for cpu, where torch's packed kernels are"
        if value in PACKED and value not in registry.stacks.get(cell.stack).packs:
            stacks = [name for name in registry.stacks.names() if value in registry.stacks.get(name).packs]
            return f"{cell.stack} packs no weights={value}: choose --stack {','.join(stacks)}"
        return super().why_not(cell, value, facts)


KNOBS: tuple[Knob, ...] = (
    WeightsKnob(
        "weights",
        "in fp32, converted in each step (autocast), in the case's dtype (cast), or packed: int8, int4, da8w4",
        ("autocast", "cast", *PACKED),
        dtypes=("fp32", "bf16", "fp16"),
        of_model="usual_weights",
    ),
    Knob(
        "weight_group",
        "weights that share a scale, with weights=int4 and da8w4",
        ("64", "32", "128"),
        beside=("weights", rounding.GROUPED, "in int8 each row has its scale"),
    ),
)


class GenerationMode(Mode):
    """What all modes share that give a decoder the tokens of texts."""

    knobs = KNOBS

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        if not registry.tasks.get(registry.models.get(cell.model).task).next_token:
            return f"{cell.mode} is for networks that predict the next token: {cell.model} does not"
        if cell.knob("graph_mode") == "on":
            return f"graph_mode=on captures one graph, but {cell.mode} keeps state between calls"
        return None


class GenerationSession(InferenceSession):
    """A trained decoder in eager mode with a key-value cache."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.memories = self.caches()

    def caches(self) -> list[Any]:
        """Return new key-value caches for the steps."""
        return [self.new_memory()]

    def new_memory(self) -> list[Any]:
        """Return an empty key-value cache for one batch of texts."""
        memory: list[Any] = self.network.memory()
        return memory

    @property
    def weights(self) -> str:
        return self.bench.knob("weights")

    @property
    def cast(self) -> bool:
        """Whether the network is held in the case's dtype, so that nothing is converted in a step."""
        return self.weights != "autocast"

    def placed(self) -> Any:
        network = super().placed()
        return network.to(torch_dtype(self.bench.case.dtype)) if self.cast else network

    @property
    def holding(self) -> str:
        return self.weights

    def plain(self) -> Any:
        network = self.placed()
        if self.weights in PACKED:
            return rounding.round_all(network, self.weights, int(self.bench.knob("weight_group")))
        return network

    def bounds(self) -> Bounds:
        return PACKED.get(self.weights) or super().bounds()

    def build(self, network: Any, example: Tensors) -> Any:
        if self.weights in PACKED:
            return self.bench.stack.weight_only(network, example, self.bench)
        return self.bench.stack.for_inference(network, example, self.bench)

    @property
    def tokens(self) -> int:
        """The number of tokens that a step reads."""
        return self.items(self.bench.case.batch)

    def read(self, tokens: Any, memory: Any = None, begin: int = 0) -> Any:
        """Return the network's outputs for these tokens, which follow those in the cache."""
        return self.called(self.network, tokens, memory, begin)

    def called(self, network: Any, tokens: Any, memory: Any, begin: Any) -> Any:
        """Call a network as a step does."""
        case = self.bench.case
        computing = contextlib.nullcontext() if self.cast else autocast(case.device, case.dtype, cache=False)
        with torch.no_grad(), computing:
            return network(tokens, memory, begin) if memory is not None else network(tokens)

    def remember(self, tokens: Any, memory: Any) -> None:
        """Read all tokens but the last into the cache."""
        self.read(tokens[:, :-1], memory)

    def instructions(self) -> list[Check]:
        """Return evidence from oneDNN's log. It computes neither packed linear layers nor attention."""
        return super().instructions() if self.weights not in PACKED else []

    def proof(self) -> list[Check]:
        checks = super().proof()  # the first, because compiled steps are traced in it
        # Under autocast weights are held as always.
        held = [held_in(self.network, DTYPES[self.bench.case.dtype].torch)] if self.cast else []
        used = [self.tokens_counted(), remembered(self, self.inputs[0][0], self.repeatable)]
        return [*checks, *self._optimised(), *held, *used]

    @property
    def repeatable(self) -> float:
        """How far the same token may be off if it is read in another way."""
        bound = DTYPES[self.bench.case.dtype].bounds.fidelity
        # One that is rounded to the next of 255 numbers, or to the one before, makes a difference in any dtype.
        return max(bound, ROUNDED) if self.weights == "da8w4" else bound

    def tokens_counted(self) -> Check:
        """Return evidence of how many tokens a step reads."""
        return tokens_read(tokens_of_layers(self.network, self.step), self.tokens)

    def _optimised(self) -> list[Check]:
        """Return evidence of what the stack did with the network."""
        stack, network = self.bench.stack, self.network
        if self.weights not in PACKED:
            return stack.proof_of_inference(network, self.bench)
        linear = sum(isinstance(layer, torch.nn.Linear) for layer in self.untouched().modules())
        return stack.proof_of_weights(network, self.step, linear, self.bench)


def held_in(network: Any, dtype: str) -> Check:
    """Check that all weights are held in this dtype, so that a step reads no more bytes than that.

    Those inside tensors of another class are packed. A check of their own counts their bits.
    """
    sizes: Counter[str] = Counter()
    for value in network.parameters():
        if not hasattr(value, "__tensor_flatten__"):
            sizes[str(value.dtype).removeprefix("torch.")] += value.nbytes
    text = ", ".join(f"{size / 2**20:.4g} MiB in {name}" for name, size in sizes.most_common())
    return Check("weights_held", [*sizes] == [dtype], text, f"all in {dtype}")


def tokens_of_layers(network: Any, step: Callable[[], Any]) -> list[int]:
    """Return how many tokens each linear layer gets in a step."""
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
    return list(counts.values())


def tokens_read(counts: Sequence[int], expected: int, kind: str = "linear layers") -> Check:
    """Check that every layer gets as many tokens as a step should read, so that none is read again."""
    numbers = sorted(set(counts))
    text = f"{' or '.join(map(str, numbers)) or 'no'} tokens in each of {len(counts)} {kind}"
    return Check("tokens_read", numbers == [expected], text, f"{expected} in each")


def remembered(session: GenerationSession, tokens: Any, bound: float) -> Check:
    """Check that the last token has the same output with the cache as in the whole text, and another one without it."""
    last = tokens.shape[1] - 1
    whole = [output[:, -1:] for output in tensors(session.read(tokens))]
    memory = session.new_memory()
    session.remember(tokens, memory)
    behind = _distance(session.read(tokens[:, last:], memory, last), whole)
    for cache in memory:
        for part in (cache.keys, cache.values):
            if part is not None:
                part.zero_()
    forgotten = _distance(session.read(tokens[:, last:], memory, last), whole)
    text = f"{behind:.1e} off the whole text, {forgotten:.1e} without the cache"
    return Check("memory", behind <= bound < forgotten, text, f"at most {bound:.1e}, and more without the cache")


def _distance(outputs: Any, expected: Sequence[Any]) -> float:
    """Return the relative RMSE of all outputs together."""
    actual, exact = (
        torch.cat([output.cpu().double().flatten() for output in part]) for part in (tensors(outputs), expected)
    )
    return float((actual - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt())
