"""Operators alone: copies of their weights and caches take turns, so that they come from memory as in a decoder.

Between two uses of a layer's weights a decoder reads all of its other weights. An operator that is measured alone
would find its own in the caches.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ipexperf.bench.api import Kernel, Tensors, Workbench, tensors
from ipexperf.bench.evidence import ceilings
from ipexperf.bench.evidence.quantised import BITS
from ipexperf.bench.evidence.work import Work
from ipexperf.bench.modes._generation import PACKED, GenerationSession, remembered
from ipexperf.bench.precision import torch_dtype
from ipexperf.dtypes import DTYPES, PLAIN
from ipexperf.result import Check

CACHES = 4
"""All copies together are at least this many times as large as the machine's last-level caches."""
UNKNOWN = 2**27
"""Bytes of the last-level caches if the kernel does not report them."""
SMALL = 2**20
"""Weights and key-value caches below this many bytes have one copy: in a decoder too, a core's caches keep them."""


class OperatorSession(GenerationSession):
    """A step runs one copy of the operators of all layers, and the next step the next copy."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.bytes = self._bytes()
        self.others: deque[tuple[Any, list[Any]]] = deque()
        first = self.network, self.memories
        for _ in range(copies(self.bytes, last_level()) - 1):
            self.network = self.ready(self.inputs[0])
            self.memories = self.caches()
            self.others.append((self.network, self.memories))
        self.network, self.memories = first

    def step(self) -> None:
        super().step()
        # Afterwards, so that whoever looks at a step looks at the network that runs.
        self.others.append((self.network, self.memories))
        self.network, self.memories = self.others.popleft()

    def caches(self) -> list[Any]:
        """Return new caches. Operators that remember nothing have read nothing before."""
        return super().caches() if self.network.memory() else [[] for _ in self.inputs]

    @functools.cached_property
    def width(self) -> int:
        """Number of activations of a token that the operator takes."""
        return int(self.untouched().width)

    def put(self, batch: Tensors) -> Tensors:
        """Move as many activations to the device as the operator takes, in the dtype in which it takes them."""
        dtype = torch_dtype(self.bench.case.dtype if self.cast else PLAIN)
        return tuple(value[..., : self.width].to(dtype).contiguous() for value in self.bench.put(batch))

    def _bytes(self) -> int:
        """Return the bytes of the weights as they are held, and of the cached tokens."""
        width = DTYPES[self.bench.case.dtype if self.cast else PLAIN].width
        bits = BITS.get(self.weights, 8 * width)
        weights = sum(value.numel() for value in self.untouched().parameters()) * bits // 8
        cached = [part for memory in self.memories for layer in memory for part in (layer.keys, layer.values)]
        size = self.bench.case.size
        return int(weights + sum(part[:, :, :size].nbytes for part in cached if part is not None))

    def counted_as_held(self, network: Any, step: Any) -> Work:
        """Count a step. Operators that torch's counter does not know read their inputs and write their outputs."""
        work = super().counted_as_held(network, step)
        if work.elements:
            return work
        outputs = tensors(step())
        moved = sum(2 * output.numel() for output in outputs) + sum(value.numel() for value in network.parameters())
        return replace(work, elements=moved)

    def arithmetic(self, kernels: list[Kernel]) -> Check:
        """Return evidence of the dtype: of the products, or of the outputs of norms and packed layers."""
        if kernels or (self.bench.model.linear and self.weights not in PACKED):
            return super().arithmetic(kernels)
        outputs = Counter(str(value.dtype).removeprefix("torch.") for value in tensors(self.forward(self.inputs[0])))
        expected = DTYPES[self.bench.case.dtype].torch
        text = ", ".join(f"{count} outputs in {kind}" for kind, count in outputs.most_common())
        return Check("dtype", [*outputs] == [expected], text, f"all in {expected}")

    def proof(self) -> list[Check]:
        networks = [network for network, _ in (*self.others, (self.network, self.memories))]
        return [*super().proof(), from_memory(networks, self.bytes, last_level(), used(networks, self.step))]

    def weights_held(self) -> list[Check]:
        """Return evidence of weights that are held as they are: attention has none, and packed ones have their own."""
        unpacked = self.weights not in PACKED and any(True for _ in self.untouched().parameters())
        return super().weights_held() if unpacked else []

    def tokens_used(self) -> list[Check]:
        """Return what there is of the evidence: linear layers count their tokens, and attention has a cache."""
        return [
            *([self.tokens_counted()] if self.bench.model.linear else []),
            *([remembered(self, self.inputs[0][0], self.repeatable)] if self.network.memory() else []),
        ]


def last_level() -> int:
    """Return the bytes of the machine's last-level caches."""
    return ceilings.caches() or UNKNOWN


def copies(size: int, cached: int) -> int:
    """Return how many copies of so many bytes are too large for the caches."""
    return 1 if size < SMALL else max(1, math.ceil(CACHES * cached / size))


def used(networks: Iterable[Any], step: Any) -> list[int]:
    """Return how often each of the networks runs in as many steps."""
    counts = dict.fromkeys(networks, 0)

    def count(network: Any, _: Any) -> None:
        counts[network] += 1

    handles = [network.register_forward_pre_hook(count) for network in counts]
    try:
        for _ in range(len(counts)):
            step()
    finally:
        for handle in handles:
            handle.remove()
    return list(counts.values())


def from_memory(networks: Iterable[Any], size: int, cached: int, uses: Iterable[int]) -> Check:
    """Check that the copies take turns, and that they are too large for the caches."""
    count, times = len({*networks}), sorted({*uses})
    text = f"{count} x {size / 2**20:.3g} MiB, each used {' or '.join(map(str, times))} times in as many steps"
    if size < SMALL:
        return Check("from_memory", times == [1], text, "1, which stays in the caches as in a decoder")
    enough = CACHES * cached
    expected = f"{enough / 2**20:.3g} MiB or more, and each once"
    return Check("from_memory", times == [1] and count * size >= enough, text, expected)
