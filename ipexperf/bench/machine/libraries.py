"""Find libraries that a process can preload: beside its interpreter, in its packages, or in the system."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from ipexperf.bench.machine import kernel_files

SYSTEM = ("/usr/local/lib", "/usr/local/lib64", "/usr/lib", "/usr/lib64")


def prefixes() -> tuple[str, str, str]:
    """Return this interpreter's prefix, its base prefix and the folder of its packages."""
    return sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")


def folders(prefix: str, base: str, packages: str) -> Iterator[str]:
    """Yield every folder that may hold libraries of such an interpreter, its own first."""
    yield f"{prefix}/lib"
    yield packages
    yield f"{base}/lib"
    yield from of_system()
    yield str(Path.home() / ".local" / "lib")


def of_system() -> Iterator[str]:
    """Yield every folder that holds libraries of the system."""
    if multiarch := sysconfig.get_config_var("MULTIARCH"):
        yield f"/usr/lib/{multiarch}"
    yield from SYSTEM


def find(name: str, pattern: str, places: Iterable[str]) -> str | None:
    """Return the file of a library in the first of these folders that has it, or None."""
    for folder in places:
        paths = [path for path in Path(folder).glob(f"lib{name}*.so*") if re.match(pattern, path.name)]
        if paths:
            # `libjemalloc.so` before `libjemalloc.so.2`. Skip paths that contain a separator of LD_PRELOAD.
            path = str(min(paths, key=lambda path: (len(path.name), path.name)))
            if not re.search(r"[:\s]", path):
                return path
    return None


def loaded() -> dict[str, list[str]]:
    """Return the OpenMP runtimes and allocators that are mapped into this process."""
    maps = kernel_files.text("/proc/self/maps") or ""
    files = {Path(path).name for path in re.findall(r"(/\S+\.so\S*)", maps)}
    return {
        "openmp": sorted(name for name in files if re.match(r"lib(gomp|iomp5|omp)\b", name)),
        "allocator": sorted(name for name in files if re.match(r"lib(jemalloc|tcmalloc)", name)) or ["libc"],
    }
