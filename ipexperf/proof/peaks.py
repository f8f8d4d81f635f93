"""Measure a device's peak rate in each dtype: the best of several matrix products.

Other work on the machine can only lower a rate, so each is tried several times over a few seconds, and the best counts.
This uses stock PyTorch only; what a stack achieves is compared with it.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import precision
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.measure import timed
from ipexperf.dtypes import DTYPES, quantised
from ipexperf.proof import fingerprint

VERSION = 3
"""Version of the method. Peaks of another version are measured again."""
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
"""Sizes of products, tried in this order until one takes long enough."""
SECONDS, ROUNDS = 4.0, 6
"""All trials take turns for so many seconds, and at least for so many rounds."""
LONG, TRIES = 0.02, 3
"""A product is made large enough to take LONG seconds in the fastest of TRIES runs, so that the cost of the call is
negligible. A single run could be disturbed, and a product that is far too small would stay."""
IMAGES_PART, CHANNELS = 128, 256
"""A convolution has one image per IMAGES_PART of the size of a product, with this many channels."""


@dataclass(frozen=True, slots=True)
class TimedWork:
    """A piece of work to time: its operations, and the function that runs it."""

    amount: float
    run: Callable[[], Any]


Maker = Callable[[Device, str, int], TimedWork]
"""Makes a product of square matrices of one dtype and size. Raises if there is none."""


def free() -> None:
    """Remove variables that limit instructions, before torch reads them: peaks are those of the machine."""
    for name in fingerprint.ISA_VARIABLES:
        os.environ.pop(name, None)


def measure(device: Device) -> dict[str, float]:
    """Return operations per second in each dtype that the device multiplies."""
    return best({dtype: list(_products(device, dtype)) for dtype in DTYPES}, device.synchronise)


def best(trials: Mapping[str, Sequence[TimedWork]], synchronise: Callable[[], None]) -> dict[str, float]:
    """Return the highest rate of each name."""
    rates: dict[str, float] = {}
    begin, done = perf_counter(), 0
    while done < ROUNDS or perf_counter() - begin < SECONDS:
        done += 1
        for name, several in trials.items():
            for trial in several:
                rates[name] = max(rates.get(name, 0.0), trial.amount / timed(trial.run, synchronise))
    return rates


def _products(device: Device, dtype: str) -> Iterator[TimedWork]:
    """Yield every available product of this dtype."""
    for make in QUANTISED if quantised(dtype) else FLOATING:
        with contextlib.suppress(AttributeError, RuntimeError):  # each may be missing
            yield grown(make, device, dtype)


def grown(make: Maker, device: Device, dtype: str) -> TimedWork:
    """Return the smallest product that takes long enough, already run once."""
    for size in SIZES:
        trial = make(device, dtype, size)
        trial.run()
        if min(timed(trial.run, device.synchronise) for _ in range(TRIES)) >= LONG:
            break
    return trial


def _matrices(device: Device, dtype: str, size: int) -> tuple[Any, Any]:
    if quantised(dtype):
        a, b = (torch.randint(-64, 64, (size, size), dtype=torch.int8) for _ in range(2))
    else:
        a, b = (torch.randn(size, size).to(precision.torch_dtype(dtype)) for _ in range(2))
    return device.put(a), device.put(b)


def plain(device: Device, dtype: str, size: int) -> TimedWork:
    a, b = _matrices(device, dtype, size)
    return TimedWork(2.0 * size**3, lambda: torch.mm(a, b))


def _convolution(device: Device, dtype: str, size: int) -> TimedWork:
    """A convolution of 14 x 14 images, channels last, which some CPUs compute faster than any plain product."""
    batch, kind = max(1, size // IMAGES_PART), precision.torch_dtype(dtype)
    images = device.put(torch.randn(batch, CHANNELS, 14, 14).to(kind, memory_format=torch.channels_last))
    weights = device.put(torch.randn(CHANNELS, CHANNELS, 3, 3).to(kind, memory_format=torch.channels_last))
    amount = 2.0 * batch * 14**2 * CHANNELS**2 * 9
    return TimedWork(amount, lambda: torch.nn.functional.conv2d(images, weights, padding=1))


def integers(device: Device, dtype: str, size: int) -> TimedWork:
    a, b = _matrices(device, dtype, size)
    product = torch._int_mm  # noqa: SLF001 - torch has no other name for it
    return TimedWork(2.0 * size**3, lambda: product(a, b))


def _packed(device: Device, dtype: str, size: int) -> TimedWork:
    """A linear layer of oneDNN with packed weights, as inductor's freezing calls it."""
    if device.accelerator:
        raise NotImplementedError("packed weights are for cpu")
    a, b = _matrices(device, dtype, size)
    weights = torch.ops.mkldnn._reorder_linear_weight(b, size)  # noqa: SLF001 - inductor's own
    linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - the same
    return TimedWork(2.0 * size**3, lambda: linear(a, weights, None, "none", [], ""))


def _quantised(engine: str, device: Device, dtype: str, size: int) -> TimedWork:
    """A quantised linear layer as in eager quantisation, from 8 bits to 8 bits."""
    del dtype
    if device.accelerator or engine not in torch.backends.quantized.supported_engines:
        raise NotImplementedError(f"no quantised layers by {engine}")
    a = torch.quantize_per_tensor(torch.randn(size, size), 0.1, 64, torch.quint8)
    b = torch.quantize_per_tensor(torch.randn(size, size), 0.1, 0, torch.qint8)
    chosen, torch.backends.quantized.engine = torch.backends.quantized.engine, engine
    weights = torch.ops.quantized.linear_prepack(b, None)  # packed weights belong to the engine
    torch.backends.quantized.engine = chosen
    linear = torch.ops.quantized.linear
    return TimedWork(2.0 * size**3, lambda: linear(a, weights, 1.0, 64))


FLOATING: tuple[Maker, ...] = (plain, _packed, _convolution)
QUANTISED: tuple[Maker, ...] = (
    integers,
    functools.partial(_quantised, "fbgemm"),
    functools.partial(_quantised, "onednn"),
)
