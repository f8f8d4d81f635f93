"""Parse the target of a user's own network: `module:callable`, `hf:NAME` or `timm:NAME`, given in place of a model."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ipexperf.errors import UsageError

HUBS = {"hf": "transformers", "timm": "timm"}
"""Prefixes of networks from a hub, with the package that builds them."""
FORMS = "module:callable, file.py:callable, hf:NAME or timm:NAME, each with @SHAPE behind it where that is needed"
_SHAPE = re.compile(r"\d+(?:x\d+)*(?:\+\d+(?:x\d+)*)*")

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed target from the command line."""

    text: str
    hub: str
    """`hf`, `timm`, or empty."""
    location: str
    """A module, a file, or the name in the hub."""
    callable_name: str
    """The callable in the module; empty for a hub."""
    shapes: tuple[Shape, ...]
    """The shape of one example of each input, if the target has them."""

    @property
    def local(self) -> Path | None:
        """The local folder of a hub network, if it is named by one."""
        path = Path(os.path.expanduser(self.location))  # noqa: PTH111 - pathlib's raises for unknown users
        return path if self.hub and (self.location.startswith((".", "/", "~")) or path.is_dir()) else None

    @property
    def name(self) -> str:
        """The model name in ids: only letters, digits, `_`, `.` and `-`, for file names and `-k`."""
        if self.hub:
            parts = [self.hub, self.local.resolve().name if self.local else self.location]
        else:
            module = Path(self.location).stem if self.location.endswith(".py") else self.location
            parts = [module, self.callable_name]
        parts += ["_".join("x".join(map(str, shape)) for shape in self.shapes)] if self.shapes else []
        return re.sub(r"[^\w.-]", "_", ".".join(part.replace("/", ".") for part in parts), flags=re.ASCII)


def is_target(text: str) -> bool:
    """Return True if a model's name is the target of a user's own network."""
    return ":" in text


def parse(text: str) -> Target:
    """Parse a target. Raise UsageError if it is invalid."""
    body, at, shape = text.rpartition("@")
    if not at:
        body, shape = text, ""
    if at and not _SHAPE.fullmatch(shape):
        raise UsageError(f"'{text}': expected a shape such as 3x224x224 behind @, got '{shape}'")
    location, _, callable_name = body.partition(":") if body.partition(":")[0] in HUBS else body.rpartition(":")
    shapes = tuple(tuple(map(int, part.split("x"))) for part in shape.split("+")) if shape else ()
    if not (location and callable_name) or any(0 in part for part in shapes):
        raise UsageError(f"'{text}' is not a network: expected {FORMS}")
    if location in HUBS:
        return Target(text, location, callable_name, "", shapes)
    if not callable_name.isidentifier():
        raise UsageError(f"'{text}': '{callable_name}' is not the name of a callable: expected {FORMS}")
    return Target(text, "", location, callable_name, shapes)


def importable() -> None:
    """Make modules of the current folder importable, after all others, like `python -m`."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
