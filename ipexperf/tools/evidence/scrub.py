"""Take names of hosts, people and folders out of what is published."""

from __future__ import annotations

import getpass
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HARDWARE = ("cpu", "isa", "cores", "cores_total", "memory", "governor", "huge_pages", "accelerator")
"""The facts of the hardware that are published: not the host, its kernel, or which of its cores were free."""
SOFTWARE = ("python", "libc", "torch", "torchvision", "ipex", "onednn", "mkl", "capability")
PACKAGES = ("torchao", "intel-openmp", "oneccl_bind_pt", "numpy", "transformers", "timm")
"""Packages whose versions are published, if they are installed."""
PRIVATE = ("pinned",)
"""Facts of an accelerator that are not published: they tell which of a host's it is."""
PRELOAD = "LD_PRELOAD"
SHORTEST = 3
"""Shorter names stay: replacing them would damage other words."""


def hardware(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hardware of an environment as it is published."""
    values = {name: document.get(name) for name in HARDWARE}
    if values["accelerator"]:
        values["accelerator"] = {name: fact for name, fact in values["accelerator"].items() if name not in PRIVATE}
    return values


def software(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the software of an environment as it is published."""
    installed = document.get("packages") or {}
    packages = {name: installed[name] for name in PACKAGES if name in installed}
    return {name: document[name] for name in SOFTWARE if document.get(name) is not None} | packages


def variables(document: Mapping[str, str]) -> dict[str, str]:
    """Return the variables as they are published: without paths, but with the names of preloaded libraries."""
    values = {name: value for name, value in document.items() if name == PRELOAD or "/" not in value}
    if PRELOAD in values:
        values[PRELOAD] = ":".join(Path(part).name for part in values[PRELOAD].split(":"))
    return values


def words() -> dict[str, str]:
    """Return the word to put in place of each private name: folders of this environment, the user, the host."""
    substitutes = {
        str(Path.cwd()): "FOLDER",
        sys.prefix: "ENVIRONMENT",
        sys.base_prefix: "PYTHON",
        str(Path.home()): "HOME",
        str(Path(__file__).parents[3]): "CHECKOUT",
        platform.node(): "HOST",
        _person(): "USER",
    }
    return {name: word for name, word in substitutes.items() if len(name) >= SHORTEST and name != "root"}


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""  # a container whose user has no name


def text(line: str, names: Mapping[str, str]) -> str:
    """Replace these names in a text, the longest first."""
    for name in sorted(names, key=len, reverse=True):
        line = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", names[name], line)
    return line
