"""A driver for Intel GPUs as a word of an arm: `driver:FOLDER` is short for the variables by which it is loaded."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from ipexperf.errors import UsageError

DRIVER = "driver:"
LIBRARY = "libze_intel_gpu.so.1"
_COMPILER = "libig*.so*"
"""The libraries that a driver loads: its compiler, and what lays out memory."""


def spelled_out(word: str, where: str) -> list[str]:
    """Return the variables that a word stands for, or the word itself. `where` names it in errors."""
    if not word.startswith(DRIVER):
        return [word]
    folder = Path(word.removeprefix(DRIVER)).absolute()
    if not os.path.isdir(folder):  # noqa: PTH112 - False for any text
        raise UsageError(f"{where}: {folder} is no folder: name one with the unpacked packages of a driver")
    found = sorted(folder.rglob(LIBRARY))
    if len(found) != 1:
        advice = "unpack one driver there, by dpkg -x"
        raise UsageError(f"{where}: {folder} has {LIBRARY} {len(found)} times, not once: {advice}")
    if _processor(found[0]) != _processor(Path("/proc/self/exe")):
        raise UsageError(f"{where}: {found[0]} is no library for {platform.machine()}: unpack packages that are")
    beside = (file.parent for file in sorted(folder.rglob(_COMPILER)))
    places = [*map(str, dict.fromkeys([found[0].parent, *beside])), os.environ.get("LD_LIBRARY_PATH")]
    return [f"ZE_ENABLE_ALT_DRIVERS={found[0]}", f"LD_LIBRARY_PATH={os.pathsep.join(filter(None, places))}"]


def _processor(program: Path) -> bytes:
    """Return what the head of an ELF file says of the processor that it is for. Empty for another file."""
    try:
        with program.open("rb") as file:
            head = file.read(20)
    except OSError:
        return b""
    return head[4:6] + head[18:] if head.startswith(b"\x7fELF") else b""
