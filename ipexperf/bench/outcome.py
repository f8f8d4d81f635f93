"""What the runtimes' own words say became of a launch: its device is lost, a memory was full, or why it failed."""

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

INSIDE = "The following operation failed in the TorchScript interpreter."
"""What a frozen graph says first; what went wrong comes last."""


def told(text: str) -> Literal["device_lost", "out_of_memory"] | None:
    """The outcome that a text names, if it names one. A device that is lost over a full memory is lost."""
    if LOST.search(text):
        return "device_lost"
    return "out_of_memory" if FULL.search(text) else None


def sentence(error: BaseException) -> str:
    """What an error says, in one line. The log of the launch has all of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return f"{type(error).__name__}: {lines[-1] if lines[0] == INSIDE else lines[0]}"
