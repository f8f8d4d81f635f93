"""A sketch of a network's answers, small enough for a baseline: two of them tell how far the answers are apart.

Each number is added to one of a few sums, or subtracted from it, as a hash of its place says (a count sketch). The
squared distance of two sketches is on average that of the answers, and at most a few tenths off. The hash is written
out here, so that it is the same in every process and version of torch.
"""

from __future__ import annotations

import base64
import hashlib
import math
import struct
import sys
from pathlib import Path
from typing import Any

from ipexperf.bench.api import Tensors
from ipexperf.bench.lazy import torch

SUMS = 64
NOTHING = base64.b64encode(bytes(4 * SUMS)).decode()
"""The sums of no numbers."""
CHUNK = 2**22
"""Numbers to add at a time. An output of a decoder has hundreds of millions."""
_ROUNDS = ((16, 0x7FEB352D), (15, 0x5F356495), (16, 0x2C1B3C6D))
_MASK = 2**32 - 1


def sketch(outputs: Tensors, numbers: Any, bound: float, weights: str | None = None) -> dict[str, Any] | None:
    """Return the sketch of these numbers of the outputs, in float64, of torch or NumPy. None if one is not finite.

    `bound` is the relative distance that is no change. `weights` is the file of trained weights, if there is one:
    answers of weights that were trained another time are other ones.
    """
    values = numbers.reshape(-1)
    numpy = sys.modules.get("numpy")
    library: Any = numpy if numpy and isinstance(values, numpy.ndarray) else torch
    norm = math.sqrt(float(values @ values))
    if not math.isfinite(norm):
        return None
    sums: Any = 0.0
    for begin in range(0, len(values) or 1, CHUNK):
        part = values[begin : begin + CHUNK]
        drawn = _hashed(library.arange(begin, begin + len(part)))
        signs = 1 - 2 * (drawn // SUMS % 2)
        sums = sums + library.bincount(drawn % SUMS, part * signs, SUMS)
    relative = (sums / norm if norm else sums).tolist()
    return {
        "shapes": ["x".join(map(str, value.shape)) for value in outputs],
        "norm": norm,
        "sums": base64.b64encode(struct.pack(f"<{SUMS}f", *relative)).decode(),
        "bound": bound,
        "weights": hashlib.sha256(Path(weights).read_bytes()).hexdigest()[:16] if weights else "",
    }


def _hashed(places: Any) -> Any:
    """Return 32 bits for each place that look random."""
    bits = places & _MASK
    for shift, factor in _ROUNDS:
        bits = ((bits ^ (bits >> shift)) * factor) & _MASK  # factors below 2^31: no product overflows
    return bits ^ (bits >> 16)
