"""Where the time of a decoded token goes, eager on stock PyTorch in fp32.

Pieces of a step take turns with the whole step in one process: its linear layers alone, and a pass over as much memory.
What other work on the machine does to one it does to its neighbour, so the ratios of neighbours hold on a busy machine.
Then the least time that each operator took in many steps is added up by kinds: nothing else can make that longer, but a
step that waits for its threads each time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from ipexperf.conduct.process import quiet

os.environ.update(quiet(os.environ))  # before torch is imported: idle threads as in our workers

import torch

from ipexperf.bench import registry
from ipexperf.bench.evidence import ceilings, proof

SIZE, MIDDLE = 128, 96
TOKENS = 32_000
PRODUCTS = ("aten::mm", "aten::addmm")


def step_of(network: Any) -> Callable[[], Any]:
    """Return a function that decodes one token halfway through a text, again and again."""
    tokens, memory = torch.randint(TOKENS, (1, SIZE)), network.memory()
    network(tokens[:, :MIDDLE], memory)
    return lambda: network(tokens[:, MIDDLE : MIDDLE + 1], memory, MIDDLE)


def pieces_of(layers: list[Any], size: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """Return what takes turns with a step, each with the bytes that it reads or writes."""
    inputs = [torch.randn(1, 1, layer.in_features) for layer in layers]
    part = torch.ones(min(size, ceilings.pass_bytes(ceilings.caches(), 2**40)) // 4)
    copied = torch.zeros_like(part)

    def linear() -> None:
        for layer, given in zip(layers, inputs, strict=True):
            layer(given)

    return {
        "its linear layers alone": (linear, size),
        f"a sum over {part.nbytes / 2**20:.0f} MiB": (part.sum, part.nbytes),
        f"a copy of {part.nbytes / 2**20:.0f} MiB": (lambda: copied.copy_(part), 2 * part.nbytes),
    }


def timed(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def in_turns(step: Callable[[], Any], size: int, layers: list[Any], turns: int) -> None:
    """Print the bytes a second of a step and its pieces, and how these compare with those of the neighbouring step."""
    pieces = pieces_of(layers, size)
    rates: dict[str, list[float]] = {name: [] for name in ("a step", *pieces)}
    for _ in range(turns + 1):
        rates["a step"].append(size / timed(step))
        for name, (run, moved) in pieces.items():
            rates[name].append(moved / timed(run))
    print("  bytes a second in turns, of linear layers' weights in a step: best, median; the step's share of it")
    for name, several in rates.items():
        share = statistics.median(one / other for one, other in zip(rates["a step"][1:], several[1:], strict=True))
        middle = statistics.median(several[1:])
        print(f"    {name:28} {max(several) / 1e9:5.1f} {middle / 1e9:5.1f} GB/s {share:6.0%}")


def least(step: Callable[[], Any], steps: int) -> tuple[list[str], list[float]]:
    """Return the operators of a step in order, and the least seconds that each took itself in any of the steps."""
    names: list[str] = []
    seconds: list[float] = []
    for _ in range(steps):
        events = [event for event in proof.traced(step) if event.get("cat") == "cpu_op"]
        events.sort(key=lambda event: (event["ts"], -event["dur"]))
        own, open_ones = [event["dur"] / 1e6 for event in events], list[int]()
        for number, event in enumerate(events):
            while open_ones and event["ts"] >= events[open_ones[-1]]["ts"] + events[open_ones[-1]]["dur"]:
                open_ones.pop()
            if open_ones:
                own[open_ones[-1]] -= event["dur"] / 1e6
            open_ones.append(number)
        names = [event["name"] for event in events]
        seconds = [min(pair) for pair in zip(seconds or own, own, strict=True)]
    return names, seconds


def operators(step: Callable[[], Any], size: int, steps: int) -> None:
    """Print the least times of a step's operators by kinds."""
    kinds, calls = dict.fromkeys(("products", "attention", "others"), 0.0), Counter[str]()
    for name, seconds in zip(*least(step, steps), strict=True):
        kind = "products" if name in PRODUCTS else "attention" if name == proof.ATTENTION else "others"
        kinds[kind] += seconds
        calls[kind] += 1
    print(f"  least times of a step's operators in {steps} steps, the profiler's own time included")
    for kind, seconds in kinds.items():
        rate = f", {size / seconds / 1e9:.1f} GB/s" if kind == "products" else ""
        print(f"    {kind:28} {1e3 * seconds:7.2f} ms in {calls[kind]} calls{rate}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a decoder, such as llama_135m")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: %(default)s")
    parser.add_argument("--turns", type=int, default=15, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=30, help="steps under the profiler (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    network = registry.models.get(options.model).build().eval()
    layers = [module for module in network.modules() if isinstance(module, torch.nn.Linear)]
    size = sum(layer.weight.nbytes for layer in layers)
    step = step_of(network)
    step()
    print(
        f"{options.model}, {options.threads} threads: {size / 2**20:.0f} MiB in {len(layers)} linear layers", flush=True
    )
    in_turns(step, size, layers, options.turns)
    operators(step, size, options.steps)


if __name__ == "__main__":
    main()
