"""Where libraries lie that a process can preload: beside its interpreter, in its packages, or in the system."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

SYSTEM = ("/usr/local/lib", "/usr/local/lib64", "/usr/lib", "/usr/lib64")


def prefixes() -> tuple[str, str, str]:
    """What this interpreter's folders begin with: its own prefix, the one that it is based on, and its packages."""
    return sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")


def folders(prefix: str, base: str, packages: str) -> Iterator[str]:
    """Every folder in which the libraries of such an interpreter may lie, its own first."""
    yield f"{prefix}/lib"
    yield packages
    yield f"{base}/lib"
    if multiarch := sysconfig.get_config_var("MULTIARCH"):
        yield f"/usr/lib/{multiarch}"
    yield from SYSTEM
    yield str(Path.home() / ".local" / "lib")


def find(name: str, pattern: str, places: Iterable[str]) -> str | None:
    """The file of a library in the first of these folders that has it."""
    for folder in places:
        found = [path for path in Path(folder).glob(f"lib{name}*.so*") if re.match(pattern, path.name)]
        if found:
            # `libjemalloc.so` before `libjemalloc.so.2`; never a path with what separates two of them.
            path = str(min(found, key=lambda path: (len(path.name), path.name)))
            if not re.search(r"[:\s]", path):
                return path
    return None
