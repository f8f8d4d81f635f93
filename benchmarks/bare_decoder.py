"""A practitioner's script: a decoder of transformers' own class, one batch size, one tight loop, eager.

Started by overhead.py for the modes `prefill` and `decode`, and driven like bare.py. From ipexperf it takes the weights
and the configuration, and nothing while it runs: before the first step it checks that both networks answer alike, and
then drops ours.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bare_loop
import torch

from ipexperf.bench import registry

sys.path.append(str(Path(__file__).parents[1] / "tests" / "bench"))

import of_transformers

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
BATCHES = 4
VOCABULARY = 32_000
"""Number of different tokens. Larger vocabularies are used in part."""
ALIKE = 1e-4
"""Largest difference of outputs in fp32, relative to the largest output."""


def ours(options: argparse.Namespace) -> Any:
    """Return our network with the weights of the case: trained ones, or random ones of the same seed."""
    torch.manual_seed(0)
    network = registry.models.get(options.model).build().eval()
    if options.weights:
        network.load_state_dict(torch.load(options.weights, weights_only=True, map_location="cpu"))
    return network


def compare(one: Any, other: Any, tokens: Any) -> None:
    """Exit if the two networks do not answer alike."""
    with torch.no_grad():
        expected, outputs = one(tokens), other(tokens).logits
    difference = float((outputs - expected).abs().max() / expected.abs().max())
    if difference > ALIKE:
        raise SystemExit(f"transformers' outputs differ from ours by {difference:.1e} of the largest")


def prefill(network: Any, texts: list[Any]) -> Callable[[int], None]:
    """Return a loop that reads N batches of prompts, each into a new cache."""

    def loop(steps: int) -> None:
        with torch.no_grad():
            for step in range(steps):
                network(input_ids=texts[step % BATCHES], use_cache=True)

    return loop


def decode(network: Any, texts: list[Any], prompt: int) -> Callable[[int], None]:
    """Return a loop that decodes N tokens of a batch of texts. The batches take turns, as in our mode."""
    with torch.no_grad():
        caches = [network(input_ids=text[:, :prompt], use_cache=True).past_key_values for text in texts]
    turn, further = 0, texts[0].shape[1] - prompt

    def loop(steps: int) -> None:
        nonlocal turn
        with torch.no_grad():
            for _ in range(steps):
                at, text = prompt + turn // BATCHES % further, turn % BATCHES
                if at == prompt and turn >= BATCHES:
                    caches[text].crop(-further)  # the tokens behind the prompt
                network(input_ids=texts[text][:, at : at + 1], past_key_values=caches[text], use_cache=True)
                turn += 1

    return loop


def main() -> None:
    options = bare_loop.parse(__doc__, ("prefill", "decode"), ("stock",))
    stream = bare_loop.replies()
    torch.set_num_threads(options.threads)
    one = ours(options)
    other = of_transformers.network(one)
    most = min(VOCABULARY, one.shape.vocabulary)
    texts = [torch.randint(most, (options.batch, options.size)) for _ in range(BATCHES)]
    compare(one, other, texts[0])
    del one
    network = other.to(DTYPES[options.dtype])
    loop = prefill(network, texts) if options.mode == "prefill" else decode(network, texts, options.size // 2)
    bare_loop.answer(stream, loop)


if __name__ == "__main__":
    main()
