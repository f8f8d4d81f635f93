"""Networks for `ipexperf evidence` alone: a decoder without training, linear layers, and failures on purpose.

These harm no machine: memory runs out at a limit of the worker's own, or in one request that no card can meet.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Examples
from ipexperf.bench.lazy import torch
from ipexperf.zoo.datasets.random_data import RandomData
from ipexperf.zoo.models._shape import Shape
from ipexperf.zoo.models.decoders import SHAPED

VOCABULARY = 256
SHAPE = Shape(layers=2, width=128, heads=4, key_heads=2, inner=256, vocabulary=VOCABULARY, positions=256)
TINY = {**SHAPED, "size": 64, "batch_infer": 2, "most": SHAPE.positions, "rate": 8.0, "data": "random_bytes"}
ROOM = 2**28
"""The bytes that a worker on the host may still allocate before its own limit."""
OUT_OF_REACH = 2**44
"""More bytes than any device has: 16 TiB."""


def _network(fail: Callable[[Any], None]) -> Any:
    class Failing(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
        """A network of one layer, whose forward fails."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Conv2d(1, 1, 1)

        def forward(self, images: Any) -> Any:
            fail(images)
            return self.layer(images).flatten(1)[:, :10]

    return Failing()


def _model(name: str, fail: Callable[[Any], None]) -> None:
    make = registry.model(f"provokes_{name}", size=8, batch_train=1, batch_infer=1, trained=False)
    make(lambda: _network(fail))


def _take_memory(images: Any) -> None:
    """Ask torch for more memory than there is. On the host, only after limiting this process."""
    if images.device.type == "cpu":
        taken = int(_status("VmSize")) * 1024
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))
        torch.empty(4 * ROOM, dtype=torch.uint8)
    torch.empty(OUT_OF_REACH, dtype=torch.uint8, device=images.device)


def _status(name: str) -> str:
    with open("/proc/self/status", encoding="utf-8") as status:  # noqa: PTH123 - nothing else is needed of pathlib
        return next(line.split()[1] for line in status if line.startswith(f"{name}:"))


def _crash(images: Any) -> None:
    """Die of a signal, as after a fault in native code."""
    del images
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGKILL)


def _lose_the_device(images: Any) -> None:
    """Read past the end of a tensor on the card: its assertion ends this process's context, and no other."""
    beyond = torch.full((1,), 2**20, dtype=torch.int64, device=images.device)
    images.flatten()[beyond].cpu()


class RandomBytes(RandomData):
    """Tokens for the decoder, whose vocabulary is small: some stacks take seconds for each step of a large one."""

    name = "random_bytes"
    examples = 8

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        tokens = torch.randint(VOCABULARY, (count, size + 1), generator=generator)
        return Examples((tokens[:, :-1].contiguous(),), (tokens[:, 1:].contiguous(),))


registry.datasets.add("random_bytes", RandomBytes())


@registry.model("evidence_decoder", **TINY)
def _decoder() -> Any:
    """Show the features of decoders, without minutes of training."""
    from ipexperf.zoo.models import _decoder

    return _decoder.Decoder(SHAPE)


PIXELS = 8
"""Width and height of the images of the network of linear layers, which are as large as in their file."""


@registry.model("evidence_linear", size=PIXELS, batch_train=64, batch_infer=32)
def _linear() -> Any:
    """Show the features of linear layers, and of BatchNorm behind one, which no shipped network has."""
    nn = torch.nn
    hidden = 128
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(3 * PIXELS * PIXELS, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )


for _outcome, _fail in (("out_of_memory", _take_memory), ("crashed", _crash), ("device_lost", _lose_the_device)):
    _model(_outcome, _fail)
