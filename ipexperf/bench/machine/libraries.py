"""Libraries that a process can preload, and what enters it from outside its packages: libraries and modules.

`boot.py` imports this before anything else. A `sitecustomize.py` or a preloaded library keeps its name when its content
changes, so each has a digest.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ipexperf.bench.machine import kernel_files

IMPORTED = tuple(dict.fromkeys(name.partition(".")[0] for name in sys.modules))
"""The modules that were there before ours: what `sitecustomize`, `usercustomize` and `.pth` files imported."""
OURS = frozenset({"__main__", "__mp_main__", "ipexperf"})
OF_INSTALLERS = re.compile(r"_distutils_hack$|_virtualenv$|__editable__", re.ASCII)
"""Modules that setuptools, virtualenv and pip load in every process of an environment. They change nothing."""
PRELOADED = Path("/etc/ld.so.preload")
"""The libraries that the loader puts into every process."""
DIGITS = 8
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
    files = {Path(file).name for file in code(maps())}
    return {
        "openmp": sorted(name for name in files if re.match(r"lib(gomp|iomp5|omp)\b", name)),
        "allocator": sorted(name for name in files if re.match(r"lib(jemalloc|tcmalloc)", name)) or ["libc"],
    }


def modules(names: Iterable[str] = IMPORTED) -> dict[str, str]:
    """Return a digest of the file of each module that is neither Python's own nor ours."""
    others = {name for name in names if not OF_INSTALLERS.match(name)} - sys.stdlib_module_names - OURS
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in sorted(others)}
    return {name: _digest(file) for name, file in files.items() if file}


def preloaded(mapped: str, variables: Mapping[str, str] = os.environ, everywhere: Path = PRELOADED) -> dict[str, str]:
    """Return a digest of each mapped library that a variable or the system puts before those of the packages.

    `mapped` is the content of `/proc/self/maps`.
    """
    words = variables.get("LD_PRELOAD", "") + " " + (everywhere.read_text() if everywhere.exists() else "")
    named = {os.path.realpath(word) for word in re.split(r"[:\s]+", words) if "/" in word}
    places = {os.path.realpath(folder) for folder in variables.get("LD_LIBRARY_PATH", "").split(":") if folder}
    preloads = (Path(file) for file in code(mapped) if file in named or str(Path(file).parent) in places)
    return {file.name: _digest(str(file)) for file in preloads}


def system_digests(mapped: str) -> dict[str, str]:
    """Return a digest of each mapped library of the system."""
    places = set(map(os.path.realpath, of_system()))
    return {Path(file).name: _digest(file) for file in code(mapped) if str(Path(file).parent) in places}


def maps() -> str:
    return kernel_files.text("/proc/self/maps") or ""


def code(mapped: str) -> list[str]:
    """Return the files that are mapped as code. One that was removed since has another name there."""
    lines = (line.split(maxsplit=5) for line in mapped.splitlines())
    return sorted({words[5] for words in lines if len(words) > 5 and "x" in words[1]})


@functools.cache
def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:DIGITS]
    except OSError:
        return "unreadable"
