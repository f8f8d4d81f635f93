"""Tell outcomes from error messages of runtimes (a lost device, full memory), and name signals."""

from __future__ import annotations

import re
import signal
from typing import Literal

from ipexperf.bench.machine.source import Replaced
from ipexperf.errors import AbsentError, WorkerError

ABSENT = "absent"
"""What a worker answers if the tree that takes the place of the user's lacks a leaf or a network."""
LOST = re.compile(
    r"DEVICE_LOST"  # Level Zero, Unified Runtime and SYCL: ZE_RESULT_ERROR_..., UR_RESULT_ERROR_...
    r"|device-side assert|unspecified launch failure|uncorrectable ECC|GPU is lost|fallen off the bus",
    re.IGNORECASE,
)
FULL = re.compile(
    r"OutOfMemory|OUT_OF_DEVICE_MEMORY|OUT_OF_HOST_MEMORY|can't allocate memory|"
    r"CUDA error: out of memory|C(?:UBLAS|UDNN)_STATUS_ALLOC_FAILED",
)

SHORT_OF = re.compile(r"OUT_OF_RESOURCES")
"""Intel's runtime says this when a queue or a kernel fails, and often when memory is full."""
INSIDE = "The following operation failed in the TorchScript interpreter."
"""First line of errors in a frozen graph. The reason is the last line."""


def indicated(text: str) -> Literal["device_lost", "out_of_memory"] | None:
    """Return the outcome that an error message indicates, or None. A lost device takes precedence over full memory."""
    if LOST.search(text):
        return "device_lost"
    return "out_of_memory" if FULL.search(text) else None


def outcome_of(error: BaseException) -> str:
    """Return the outcome of a launch for an exception."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, WorkerError):
        return error.outcome
    if isinstance(error, AbsentError):
        return ABSENT if Replaced.of() else "error"
    if isinstance(error, MemoryError):
        return "out_of_memory"
    if named := indicated(text):
        return named
    return "import_error" if isinstance(error, ImportError) else "error"


def sentence(error: BaseException) -> str:
    """Return an error message in one line. The log of the launch has the whole message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    text = f"{type(error).__name__}: {lines[-1] if lines[0] == INSIDE else lines[0]}"
    if error.__cause__ is not None and str(error.__cause__) not in text:
        text = f"{text}: {sentence(error.__cause__)}"  # pytest names a plugin, and not what it lacks
    return f"{text}; the runtime reports full memory by this error too" if SHORT_OF.search(text) else text


def signal_name(number: int) -> str:
    """Return the name of a signal, or its number: Python names few of the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
