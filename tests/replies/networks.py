"""Networks of the recorded runs alone: a decoder without training, and failures on purpose, which harm no machine."""

import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Examples
from ipexperf.zoo.datasets.random_data import RandomData
from ipexperf.zoo.models._shape import Shape
from ipexperf.zoo.models.decoders import SHAPED

VOCABULARY = 256
SHAPE = Shape(layers=2, width=128, heads=4, key_heads=2, inner=256, vocabulary=VOCABULARY, positions=256)
TINY = {**SHAPED, "size": 64, "batch_infer": 2, "most": SHAPE.positions, "data": "random_bytes"}
OUT_OF_REACH = 2**44
"""More bytes than any machine has: 16 TiB."""


class RandomBytes(RandomData):
    """Tokens of a small vocabulary: some stacks take seconds for each step of a large one."""

    name = "random_bytes"
    examples = 8

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        tokens = torch.randint(VOCABULARY, (count, size + 1), generator=generator)
        return Examples((tokens[:, :-1].contiguous(),), (tokens[:, 1:].contiguous(),))


registry.datasets.add("random_bytes", RandomBytes())


@registry.model("tiny_decoder", **TINY)
def _decoder() -> Any:
    from ipexperf.zoo.models import _decoder

    return _decoder.Decoder(SHAPE)


def _failing(fail: Callable[[], object]) -> Any:
    class Failing(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
        """A network of one layer, whose forward fails."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Conv2d(1, 1, 1)

        def forward(self, images: Any) -> Any:
            fail()
            return self.layer(images).flatten(1)[:, :10]

    return Failing()


def _take_memory() -> None:
    torch.empty(OUT_OF_REACH, dtype=torch.uint8)


def _crash() -> None:
    """Die of a signal, as after a fault in native code."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGKILL)


for _name, _fail in (("out_of_memory", _take_memory), ("crashed", _crash)):
    _add = registry.model(f"provokes_{_name}", size=8, batch_train=1, batch_infer=1, trained=False)
    _add(lambda fail=_fail: _failing(fail))
