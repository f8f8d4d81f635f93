"""What enters a worker from outside its packages: modules that Python's start imports, and libraries of the system.

`boot.py` imports this before anything else. A `sitecustomize.py` or a preloaded library keeps its name when its content
changes, so each has a digest.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ipexperf.bench.machine.libraries import of_system

IMPORTED = tuple(dict.fromkeys(name.partition(".")[0] for name in sys.modules))
"""The modules that were there before ours: what `sitecustomize`, `usercustomize` and `.pth` files imported."""
OURS = frozenset({"__main__", "__mp_main__", "ipexperf"})
OF_INSTALLERS = re.compile(r"_distutils_hack$|_virtualenv$|__editable__", re.ASCII)
"""Modules that setuptools, virtualenv and pip load in every process of an environment. They change nothing."""
PRELOADED = Path("/etc/ld.so.preload")
"""The libraries that the loader puts into every process."""
DIGITS = 8


def modules(names: Iterable[str] = IMPORTED) -> dict[str, str]:
    """Return a digest of the file of each module that is neither Python's own nor ours."""
    others = {name for name in names if not OF_INSTALLERS.match(name)} - sys.stdlib_module_names - OURS
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in sorted(others)}
    return {name: _digest(file) for name, file in files.items() if file}


def libraries(maps: str, variables: Mapping[str, str] = os.environ, everywhere: Path = PRELOADED) -> dict[str, str]:
    """Return a digest of each mapped library that a variable or the system puts before those of the packages.

    `maps` is the content of `/proc/self/maps`.
    """
    words = variables.get("LD_PRELOAD", "") + " " + (everywhere.read_text() if everywhere.exists() else "")
    preloaded = {os.path.realpath(word) for word in re.split(r"[:\s]+", words) if "/" in word}
    folders = {os.path.realpath(folder) for folder in variables.get("LD_LIBRARY_PATH", "").split(":") if folder}
    return {Path(file).name: _digest(file) for file in _mapped(maps) if file in preloaded or _folder(file) in folders}


def system_libraries(maps: str) -> dict[str, str]:
    """Return a digest of each mapped library of the system."""
    folders = set(map(os.path.realpath, of_system()))
    return {Path(file).name: _digest(file) for file in _mapped(maps) if _folder(file) in folders}


def _mapped(maps: str) -> list[str]:
    return sorted(set(re.findall(r"(/\S+\.so\S*)", maps)))


def _folder(file: str) -> str:
    return str(Path(file).parent)


@functools.cache
def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:DIGITS]
    except OSError:
        return "unreadable"
