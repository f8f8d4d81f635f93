"""Inference with IPEX in one process: compiled, started cold, with knobs of linear layers. Prints checks as JSON."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "bench"))

import bench_cases
import torch
from bench_cases import as_json

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.machine import placement
from ipexperf.errors import WorkerError

Checks = dict[str, tuple[bool, str]]

O0 = {"level": "O0"}
BY_NAME = {
    "O0": O0,
    "O0, folded": O0 | {"conv_bn_folding": "on"},
    "O0, linear folded": O0 | {"linear_bn_folding": "on"},
    "O0, packed": O0 | {"weights_prepack": "on"},
    "O0, chosen": O0 | {"weights_prepack": "on", "auto_kernel_selection": "on"},
    "O0, captured": O0 | {"graph_mode": "on"},
}
"""What is switched on by name where everything else is off."""


def rows() -> Any:
    """Without biases and activations inductor has no kernel of its own to write: nothing waits for the compiler."""
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16, bias=False), nn.Linear(16, 10, bias=False))


def folded() -> Any:
    """A linear layer with BatchNorm behind it, and a convolution with its own."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 36, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Linear(16, 10),
    )


class Kin(torch.nn.BatchNorm2d):  # type: ignore[misc] # torch has no types here
    """A norm of another kind, as timm has: one with its activation."""

    def forward(self, images: Any) -> Any:
        return super().forward(images).relu()


def kindred() -> Any:
    """A convolution with such a norm behind it."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(3, 4, 3), Kin(4), nn.Flatten(), nn.Linear(4 * 36, 10))


class Mixed(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """A convolution and a linear layer, and between them a product in bf16, which no library logs here."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(16, 10)
        self.between = torch.nn.Parameter(torch.randn(4 * 36, 16) / 12)

    def forward(self, images: Any) -> Any:
        values = self.first(images).flatten(1)
        low = torch.mm(values.to(torch.bfloat16), self.between.to(torch.bfloat16))
        return self.last(low.to(images.dtype))


def bench(build: Any, mode: str, **knobs: str) -> Workbench:
    return bench_cases.bench(build, mode, registry.devices.get("cpu"), "ipex", **knobs)


def proven(build: Any, mode: str) -> Checks:
    """All that a session of the mode proves, and its accuracy."""
    workbench = bench(build, mode)
    session = workbench.mode.open(workbench)
    session.sample(lambda: None, 1, 1)
    return as_json([*session.proof(), *session.accuracy()[1]])


def compiled(build: Any, lie: Any) -> Checks:
    """What is proven of a stack that compiles in another way."""
    workbench = bench(build, "infer_compile")
    honest = workbench.stack.compiled
    workbench.stack.compiled = lie
    try:
        return as_json(workbench.mode.open(workbench).proof())
    finally:
        workbench.stack.compiled = honest


def refused() -> str:
    """Why there are no streams here, where Intel's OpenMP was not preloaded. Nothing runs in their place."""
    workbench = bench(bench_cases.network, "multistream", streams="1")
    placed = dataclasses.replace(workbench.settings, placement={"cores": placement.allowed()[:1]})
    try:
        workbench.mode.open(dataclasses.replace(workbench, settings=placed))
    except WorkerError as error:
        return error.reason
    return ""


def optimised(did: dict[str, str], label: dict[str, str], mode: str = "infer", build: Any = folded) -> Checks:
    """The network that was made with some knobs, under the label of others."""
    made, named = bench(build, mode, **did), bench(build, mode, **label)
    stack = named.stack
    if mode == "infer":
        example = torch.randn(16, 3, bench_cases.SIZE, bench_cases.SIZE)
        return as_json(stack.proof_of_inference(stack.for_inference(build().eval(), (example,), made), named))
    network = build().train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    return as_json(stack.proof_of_training(*stack.for_training(network, optimizer, made), named))


if __name__ == "__main__":
    ipex = registry.stacks.get("ipex")
    ipex.start()
    optimize = sys.modules["intel_extension_for_pytorch"].optimize
    chosen, unfolded = {"auto_kernel_selection": "on"}, {"linear_bn_folding": "off", "conv_bn_folding": "off"}
    results = {
        "compiled": proven(rows, "infer_compile"),
        "load": proven(folded, "load"),
        "mixed": proven(Mixed, "infer"),
        "plain": optimised({}, {}),
        "kindred": optimised({}, {}, build=kindred),
        "chosen": optimised(chosen, chosen),
        "chosen, train": optimised(chosen, chosen, "train"),
        "unfolded": optimised(unfolded, unfolded),
        "linear alone": optimised({"conv_bn_folding": "off"}, {"conv_bn_folding": "off"}),
        **{name: optimised(did, did) for name, did in BY_NAME.items()},
        "O0, not folded": optimised(BY_NAME["O0"], BY_NAME["O0, folded"]),
        "O0, folded in secret": optimised(BY_NAME["O0, folded"], BY_NAME["O0"]),
        "O0, not packed": optimised(BY_NAME["O0"], BY_NAME["O0, packed"]),
        "O0, packed in secret": optimised(BY_NAME["O0, packed"], BY_NAME["O0"]),
        "O0, not captured": optimised(BY_NAME["O0"], BY_NAME["O0, captured"]),
        "not chosen": optimised({}, chosen),
        "not chosen, train": optimised({}, chosen, "train"),
        "chosen in secret": optimised(chosen, {}),
        "not folded": optimised(unfolded, {}),
        "folded in secret": optimised({}, unfolded),
        "stock's backend": compiled(rows, lambda network, *_: torch.compile(optimize(network, weights_prepack=False))),
        "packed": compiled(rows, lambda network, *_: torch.compile(optimize(network), backend="ipex")),
        "streams": {"opened": (False, refused())},
    }
    json.dump(results, sys.stdout)
