"""What names a network of the user's own in place of a model: `module:callable`, `hf:NAME` or `timm:NAME`."""

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
    where: str
    """A module, a file, or the name in the hub."""
    what: str
    """The callable in the module; empty for a hub."""
    shapes: tuple[Shape, ...]
    """Shapes of one example of each input, if given."""

    @property
    def local(self) -> Path | None:
        """The local folder of a hub network, if it is named by one."""
        path = Path(os.path.expanduser(self.where))  # noqa: PTH111 - pathlib's raises for unknown users
        return path if self.hub and (self.where.startswith((".", "/", "~")) or path.is_dir()) else None

    @property
    def name(self) -> str:
        """The model name in ids: only letters, digits, `_`, `.` and `-`, for file names and `-k`."""
        if self.hub:
            parts = [self.hub, self.local.resolve().name if self.local else self.where]
        else:
            where = Path(self.where).stem if self.where.endswith(".py") else self.where
            parts = [where, self.what]
        parts += ["_".join("x".join(map(str, shape)) for shape in self.shapes)] if self.shapes else []
        return re.sub(r"[^\w.-]", "_", ".".join(part.replace("/", ".") for part in parts), flags=re.ASCII)


def is_target(text: str) -> bool:
    """Whether a model's name is the target of a user's own network."""
    return ":" in text


def parse(text: str) -> Target:
    """Parse a target. Raise UsageError if it is invalid."""
    body, at, shape = text.rpartition("@")
    if not at:
        body, shape = text, ""
    if at and not _SHAPE.fullmatch(shape):
        raise UsageError(f"'{text}': expected a shape such as 3x224x224 behind @, got '{shape}'")
    where, _, what = body.partition(":") if body.partition(":")[0] in HUBS else body.rpartition(":")
    shapes = tuple(tuple(map(int, part.split("x"))) for part in shape.split("+")) if shape else ()
    if not (where and what) or any(0 in part for part in shapes):
        raise UsageError(f"'{text}' is not a network: expected {FORMS}")
    if where in HUBS:
        return Target(text, where, what, "", shapes)
    if not what.isidentifier():
        raise UsageError(f"'{text}': '{what}' is not the name of a callable: expected {FORMS}")
    return Target(text, "", where, what, shapes)


def importable() -> None:
    """Make modules of the current folder importable, after all others, like `python -m`."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
