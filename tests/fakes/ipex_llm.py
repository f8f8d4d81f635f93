"""Reads and decodes texts through `ipex.llm.optimize`, and prints what every check found as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import torch
from bench_cases import TOKENS, generation

from ipexperf.bench.machine import facts
from ipexperf.bench.stacks import _ipex_llm
from ipexperf.dtypes import DTYPES
from ipexperf.zoo.models import _decoder

SIZE = 16
SHAPED: dict[str, Any] = {"layers": 2, "width": 128, "heads": 4, "inner": 192, "vocabulary": TOKENS, "positions": SIZE}
LLAMA = _decoder.Shape(key_heads=2, theta=500.0, **SHAPED)
QWEN = _decoder.Shape(key_heads=1, epsilon=1e-6, bias=True, tied=False, **SHAPED)


def session(mode: str, shape: _decoder.Shape = LLAMA, dtype: str = "fp32", **knobs: str) -> Any:
    opened = generation(shape, SIZE, mode, dtype, "ipex", llm="on", **knobs)
    opened.step()
    return opened


def checks(opened: Any, *, accuracy: bool = True) -> dict[str, tuple[bool, str]]:
    found = [*opened.proof(), *(opened.accuracy()[1] if accuracy else [])]
    return {check.name: (check.ok, check.found) for check in found}


class Plain(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """The network of transformers as it is, under the name of IPEX's graph."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def trace_graph(self, *, input_ids: Any, past_key_values: Any, **_: Any) -> Any:
        past = tuple((sizes, *(part + 1 for part in rest)) for sizes, *rest in past_key_values)
        return self.network(input_ids).logits, past


def never_optimised() -> Any:
    """A session whose network IPEX never saw."""
    opened = session("prefill")
    ours = opened.untouched()
    from ipexperf.bench.stacks import _transformers

    theirs = _transformers.network(ours, opened.bench.model.transformers_class)
    opened.network = _ipex_llm.Decoder(Plain(theirs), LLAMA.layers, torch.float32)
    return opened


def without_cache() -> Any:
    """A session that gives each token a cache of its own."""
    opened = session("decode")
    graph = opened.network

    class Forgetful(torch.nn.Module):  # type: ignore[misc]
        layers, network, memory = graph.layers, graph.network, graph.memory

        def forward(self, tokens: Any, kept: Any = None, begin: int = 0) -> Any:
            return graph(tokens) if tokens.shape[1] == 1 else graph(tokens, kept, begin)

    opened.network = Forgetful()
    return opened


def reading_twice() -> Any:
    """A session whose steps read each token twice."""
    opened = session("decode")
    step = opened.step

    def twice() -> None:
        step()
        step()

    opened.step = twice
    return opened


def main() -> None:
    found = {
        "llama-prefill": checks(session("prefill")),
        "llama-decode": checks(session("decode")),
        "qwen-decode": checks(session("decode", QWEN)),
        "packed": checks(session("decode", weights="int8"), accuracy=False),
        "never optimised": checks(never_optimised(), accuracy=False),
        "without cache": checks(without_cache(), accuracy=False),
        "reading twice": checks(reading_twice(), accuracy=False),
    }
    if DTYPES["bf16"].native & facts.cpu_flags():
        found["llama-decode-bf16"] = checks(session("decode", dtype="bf16", weights="cast"))
        found["qwen-prefill-bf16"] = checks(session("prefill", QWEN, "bf16", weights="cast"))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
