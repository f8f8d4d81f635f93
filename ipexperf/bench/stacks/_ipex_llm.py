"""`ipex.llm.optimize`: a decoder converted to its class of `transformers`, with layers fused and traced by IPEX.

Steps call the graph that `generate` calls, with the same arguments. Imported in the worker.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ipexperf.bench.api import Workbench
from ipexperf.bench.evidence import proof as evidence
from ipexperf.bench.precision import torch_dtype
from ipexperf.bench.stacks import _ipex_weights
from ipexperf.result import Check

LAYER = "_IPEXDecoderLayerCPU"
"""The class with which IPEX replaces each layer of a decoder."""
ATTENTION = "torch_ipex::masked_multihead_self_attention"
ROTATION = "torch_ipex::rotary_position_embedding"
NORM = "torch_ipex::rmsnorm"
PACKED = r"torch_ipex::(ipex_)?woq_linear\w*"
"""Kernels for packed weights: alone, or fused with the operators after the layer."""
MERGED = 2
"""The number of linear layers that IPEX merges away in each layer of a decoder: query, key and value become one."""


class Cache:
    """The keys and values of one layer. IPEX allocates them when it reads a prompt, and fills them."""

    def __init__(self) -> None:
        self.keys: Any = None
        self.values: Any = None
        self.beams: Any = None

    def before(self, sizes: Any, texts: int, dtype: Any) -> tuple[Any, ...]:
        """Return a layer's cache as IPEX expects it. Of `sizes` only the shape counts: the number of earlier tokens."""
        if self.keys is None:
            empty = torch.zeros(1, 1, 1, 1, dtype=dtype)
            return sizes, empty, empty, torch.zeros(1, texts, dtype=torch.long)
        return sizes, self.keys, self.values, self.beams


class Decoder(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """IPEX's graph of a decoder, with the arguments of our own decoders."""

    def __init__(self, network: Any, layers: int, dtype: Any) -> None:
        super().__init__()
        self.network, self.layers, self.dtype = network, layers, dtype

    def forward(self, tokens: Any, caches: Sequence[Cache] | None = None, begin: int = 0) -> Any:
        caches = self.memory() if caches is None else caches
        texts, count = tokens.shape
        sizes = torch.zeros(1, 1, 1, 1, dtype=torch.long).expand(1, begin, begin, 1)
        places = torch.arange(begin, begin + count).expand(texts, -1)
        with torch.autocast("cpu", self.dtype, enabled=self.dtype != torch.float32):
            outputs = self.network.trace_graph(
                input_ids=tokens,
                attention_mask=torch.ones(texts, begin + count, dtype=torch.long),
                position_ids=places,
                past_key_values=tuple(cache.before(sizes, texts, self.dtype) for cache in caches),
            )
        for cache, (_, *stored) in zip(caches, outputs[1], strict=True):
            cache.keys, cache.values, cache.beams = stored
        return outputs[0]

    def memory(self) -> list[Cache]:
        """Return an empty key-value cache for one batch of texts."""
        return [Cache() for _ in range(self.layers)]


def optimised(network: Any, bench: Workbench, mapping: Any = None) -> Decoder:
    """Optimise a decoder as the vendor's guide says, with packed weights if there is a mapping for them."""
    transformers = importlib.import_module("ipexperf.bench.stacks._transformers")
    llm = importlib.import_module("intel_extension_for_pytorch").llm
    dtype = torch_dtype(bench.case.dtype)
    transformers_network = transformers.network(network, bench.model.transformers_class)
    packing = {} if mapping is None else {"quantization_config": mapping}
    return Decoder(
        llm.optimize(transformers_network, dtype=dtype, inplace=True, **packing), network.shape.layers, dtype
    )


def proof(network: Any) -> list[Check]:
    """Check that every layer is IPEX's, and that reading a token runs its fused operators."""
    count = sum(type(module).__name__ == LAYER for module in network.modules())
    text = f"{count} of {network.layers} layers are {LAYER}"
    with torch.no_grad():
        events = evidence.traced(lambda: network(torch.zeros(1, 1, dtype=torch.long)))
    names = Counter(str(event.get("name")) for event in events)
    plain = names["aten::scaled_dot_product_attention"]
    expected = {ATTENTION: network.layers, ROTATION: network.layers, NORM: 2 * network.layers + 1}
    ran_text = ", ".join(f"{name} x{names[name]}" for name in expected) + f", {plain} attentions of torch"
    fused = not plain and all(names[name] == times for name, times in expected.items())
    expected_text = ", ".join(f"x{times}" for times in expected.values())
    return [
        Check("llm_layers", count == network.layers > 0, text, "all"),
        Check("llm_operators", fused, ran_text, f"{expected_text}, and 0"),
    ]


def proof_of_weights(network: Any, step: Callable[[], Any], expected: int, bench: Workbench) -> list[Check]:
    """Check the bits of packed weights and the kernels of a step, for the layers that remain after merging."""
    return _ipex_weights.proof(network, step, expected - MERGED * network.layers, bench, PACKED)


def tokens_of_layers(network: Any, step: Callable[[], Any]) -> list[int]:
    """Return how many tokens each layer's attention gets in a step. Layers follow one another."""
    attentions = [event for event in evidence.traced(step) if event.get("name") == ATTENTION]
    counts = [0] * network.layers
    for number, event in enumerate(attentions):
        counts[number % network.layers] += math.prod(evidence.arguments(event)["Input Dims"][0][:2])
    return counts
