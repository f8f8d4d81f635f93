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
    """Return a digest of each mapped library of the system, or that a variable puts before those of the packages.

    `maps` is the content of `/proc/self/maps`.
    """
    words = variables.get("LD_PRELOAD", "") + " " + (everywhere.read_text() if everywhere.exists() else "")
    preloaded = {os.path.realpath(word) for word in re.split(r"[:\s]+", words) if "/" in word}
    named = [folder for folder in variables.get("LD_LIBRARY_PATH", "").split(":") if folder]
    folders = {os.path.realpath(folder) for folder in (*named, *of_system())}
    mapped = sorted(set(re.findall(r"(/\S+\.so\S*)", maps)))
    return {Path(file).name: _digest(file) for file in mapped if file in preloaded or str(Path(file).parent) in folders}


@functools.cache
def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:DIGITS]
    except OSError:
        return "unreadable"
