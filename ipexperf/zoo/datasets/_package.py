"""Data in files of ours or of installed packages: found without importing the package, and known by their SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
import io
from pathlib import Path
from typing import Any

from ipexperf.ext import WorkerError, torch

OURS = Path(__file__).parents[1] / "data"
"""The folder of the data that come with ipexperf."""


def folder(module: str) -> Path | None:
    """Return the folder of an installed module, or None."""
    spec = importlib.util.find_spec(module)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def find(module: str, package: str, absent: str, *paths: str) -> tuple[str | None, str | None]:
    """Return the first of these paths in a package and None if all exist, or None and why not.

    `absent` is the reason if the package is not installed.
    """
    root = folder(module)
    if root is None:
        return None, absent
    lacking = [path for path in paths if not (root / path).exists()]
    return (None, f"{package} has no {', '.join(lacking)} in {root}") if lacking else (str(root / paths[0]), None)


def check(data: bytes, sha256: str, unknown: str) -> None:
    """Raise WorkerError, which begins with `unknown`, if these are other data than the known ones."""
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise WorkerError("error", f"{unknown}: sha256 {digest}")


def image(path: Path, sha256: str, *, colours: bool = True) -> Any:
    """Return the pixels of a known image: channels, height, width. They are bytes, or 16 bits if the file has those."""
    from PIL import Image

    data = path.read_bytes()
    check(data, sha256, f"{path} is not the known one")
    with Image.open(io.BytesIO(data)) as opened:
        read = opened.convert("RGB") if colours else opened
        kind = torch.int16 if read.mode == "I;16" else torch.uint8
        pixels = torch.frombuffer(bytearray(read.tobytes()), dtype=kind)
        return pixels.view(read.height, read.width, -1).permute(2, 0, 1)
