"""Sketches of answers, small enough for a baseline: two tell which number is another one, or how far they are apart.

A sketch has a part for each tensor. It holds a few numbers whole. Of many it holds sums: each number is added to one of
a few sums, or subtracted from it, as a hash of its place says (a count sketch). The squared distance of two sketches is
on average that of the numbers, and at most a few tenths off. Further sums are of inverse hyperbolic sines, in which
small numbers weigh as much as large ones. The hash is written out here, so that it is the same in every process and
version of torch.
"""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Tensors, tensors
from ipexperf.dtypes import DTYPES, PLAIN

KEPT = 32
"""The most numbers of a part that are kept whole."""
SUMS = 32
EXACT = 1e-9
"""Largest distance of numbers in float64, relative to their size: sums in another order."""
SMALL = {EXACT: 1e-3, DTYPES[PLAIN].bounds.fidelity: 0.1}
"""From which size on numbers weigh alike, relative to their root mean square, by the bound. What is left of large
numbers that cancel is only as exact as these."""
CHUNK = 2**16
"""Numbers to add at a time, which fit into a cache. An output of a decoder has hundreds of millions."""
_ROUNDS = ((16, 0x7FEB352D), (15, 0x5F356495), (16, 0x2C1B3C6D))
_MASK = 2**32 - 1


def sketch(outputs: Tensors, compared: Any, bound: float, weights: str | None = None) -> dict[str, Any]:
    """Return the sketch of a network's float64 outputs: of the compared ones and, if these are all, of whole numbers.

    `bound` is the relative distance that is no change. `weights` is the file of trained weights, if there is one:
    answers of weights that were trained another time are other ones.
    """
    chosen = tensors(compared)
    known = {id(value) for value in chosen}
    whole = all(id(value) in known for value in outputs if value.is_floating_point())
    parts: list[dict[str, Any]] = [{"at": "result", "is": ", ".join(map(described, outputs))}]
    for place, value in enumerate(outputs if any(id(value) in known for value in outputs) else chosen):
        at = f"result[{place}]" if len(outputs) > 1 else "result"
        if whole and not value.is_floating_point():
            parts.append({"at": at, "is": f"{described(value)} {digest(value.numpy().tobytes())}"})
        elif not known or id(value) in known:
            part = numbers(value, value.shape, described(value), bound)
            parts.append({"at": at, **part, "told": DTYPES[PLAIN].bounds.fidelity})
    content = hashlib.sha256(Path(weights).read_bytes()).hexdigest()[:16] if weights else ""
    return {"parts": parts, "weights": content}


def numbers(values: Any, shape: Sequence[int], kind: str, bound: float) -> dict[str, Any]:
    """Return the part of these numbers: a tensor, an array of NumPy's or a list of floats."""
    part = {"is": kind, "shape": list(shape), "bound": bound}
    if isinstance(values, list) and len(values) <= KEPT:
        return {**part, "values": _packed(values)}
    values = flat(values)
    return {**part, **({"values": _packed(values.tolist())} if len(values) <= KEPT else _summed(values, bound))}


def flat(values: Any) -> Any:
    """Numbers in one row of NumPy's."""
    import numpy as np

    if hasattr(values, "is_floating_point") and not values.is_complex():
        values = values.to(torch.float64 if values.dtype == torch.float64 else torch.float32)  # NumPy has no bfloat16
    values = np.asarray(values)
    return (np.stack((values.real, values.imag), -1) if values.dtype.kind == "c" else values).reshape(-1)


def _summed(values: Any, bound: float) -> dict[str, Any]:
    """The numbers' norm, the largest one and their sums, and a sum that tells which ones are not finite."""
    import numpy as np

    def chunks() -> Iterator[tuple[int, Any, Any]]:
        for begin in range(0, len(values), CHUNK):
            chunk = values[begin : begin + CHUNK].astype("float64")
            yield begin, chunk, np.where(np.isfinite(chunk), chunk, 0.0)

    most = max(float(abs(finite).max()) for _, _, finite in chunks())
    norm = most and most * math.sqrt(sum(float(((finite / most) ** 2).sum()) for _, _, finite in chunks()))
    # A power of two, so that rounding doesn't make it another one.
    scale = 2.0 ** math.floor(math.log2(norm / math.sqrt(len(values)) * SMALL.get(bound, 1.0))) if norm else 1.0
    odd, sums = 0, np.zeros((2, SUMS))
    for begin, chunk, finite in chunks():
        drawn = _hashed(np.arange(begin, begin + len(chunk)))
        signs = 1 - 2 * (drawn // SUMS % 2)
        odd += int(((drawn + 1) * (np.isnan(chunk) + 2 * (chunk == math.inf) + 3 * (chunk == -math.inf))).sum())
        for place, weighed in enumerate((finite / (norm or 1.0), np.arcsinh(finite / scale))):
            sums[place] += np.bincount(drawn % SUMS, weighed * signs, SUMS)
    return {"sums": _packed([norm, most, *sums.reshape(-1)]), **({"odd": f"{odd:x}"} if odd else {})}


def _packed(values: Sequence[float]) -> str:
    """Doubles as text. Decimal numbers would be rounded in a file of baselines."""
    return base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode()


def described(array: Any) -> str:
    return f"{'x'.join(map(str, array.shape)) or 'scalar'} {str(array.dtype).removeprefix('torch.')}"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _hashed(places: Any) -> Any:
    """Return 32 bits for each place that look random."""
    bits = places & _MASK
    for shift, factor in _ROUNDS:
        bits = ((bits ^ (bits >> shift)) * factor) & _MASK  # factors below 2^31: no product overflows
    return bits ^ (bits >> 16)
