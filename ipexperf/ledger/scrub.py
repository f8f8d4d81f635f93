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
"""What a file says of the hardware. Not the host, its kernel, and which of its cores were free."""
SOFTWARE = ("python", "libc", "torch", "torchvision", "ipex", "onednn", "mkl", "capability")
PACKAGES = ("torchao", "intel-openmp", "oneccl_bind_pt", "numpy", "scikit-learn", "transformers", "timm")
"""Packages whose versions a file has, where they are installed."""
PRIVATE = ("pinned",)
"""Facts of an accelerator that say which one of a host's it is."""
PRELOAD = "LD_PRELOAD"
SHORTEST = 3
"""Names of fewer letters are left: they would be taken out of other words."""


def hardware(document: Mapping[str, Any]) -> dict[str, Any]:
    """What is published of the hardware in an environment."""
    values = {name: document.get(name) for name in HARDWARE}
    if values["accelerator"]:
        values["accelerator"] = {name: one for name, one in values["accelerator"].items() if name not in PRIVATE}
    return values


def software(document: Mapping[str, Any]) -> dict[str, Any]:
    """What is published of the software in an environment."""
    installed = document.get("packages") or {}
    named = {name: installed[name] for name in PACKAGES if name in installed}
    return {name: document[name] for name in SOFTWARE if document.get(name) is not None} | named


def variables(document: Mapping[str, str]) -> dict[str, str]:
    """Variables that tune libraries: no paths, but for the names of preloaded libraries."""
    values = {name: value for name, value in document.items() if name == PRELOAD or "/" not in value}
    if PRELOAD in values:
        values[PRELOAD] = ":".join(Path(part).name for part in values[PRELOAD].split(":"))
    return values


def words() -> dict[str, str]:
    """What stands for what in texts: folders of this environment, the person's name, the host's."""
    substitutes = {
        str(Path.cwd()): "FOLDER",
        sys.prefix: "ENVIRONMENT",
        sys.base_prefix: "PYTHON",
        str(Path.home()): "HOME",
        str(Path(__file__).parents[2]): "CHECKOUT",
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
    """A text without these names, the longest first."""
    for name in sorted(names, key=len, reverse=True):
        line = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", names[name], line)
    return line
