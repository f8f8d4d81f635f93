"""What the runtimes' own words say became of a launch: its device is lost, or a memory was full."""

from __future__ import annotations

import re
from typing import Literal

LOST = re.compile(
    r"DEVICE_LOST"  # Level Zero, Unified Runtime and SYCL: ZE_RESULT_ERROR_..., UR_RESULT_ERROR_...
    r"|device-side assert|unspecified launch failure|uncorrectable ECC|GPU is lost|fallen off the bus",
    re.IGNORECASE,
)
FULL = re.compile(
    r"OutOfMemory|OUT_OF_DEVICE_MEMORY|OUT_OF_HOST_MEMORY|can't allocate memory|"
    r"CUDA error: out of memory|C(?:UBLAS|UDNN)_STATUS_ALLOC_FAILED",
)


def told(text: str) -> Literal["device_lost", "out_of_memory"] | None:
    """The outcome that a text names, if it names one. A device that is lost over a full memory is lost."""
    if LOST.search(text):
        return "device_lost"
    return "out_of_memory" if FULL.search(text) else None
