"""A file's SHA-256, kept beside it: what changed since it was made is not used."""

from __future__ import annotations

import hashlib
from pathlib import Path

CHUNK = 2**20


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def digest(path: Path) -> str:
    """The file's SHA-256, read in pieces."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def put(part: Path, path: Path) -> None:
    """Moves a finished file to its place, and writes its sum, in the form that `sha256sum -c` reads."""
    new = beside(part)
    try:
        new.write_text(f"{digest(part)}  {path.name}\n")
        part.replace(path)
        # Whoever is stopped here leaves a file that does not fit its sum: it is made again, never used.
        new.replace(beside(path))
    finally:
        new.unlink(missing_ok=True)


def flaw(path: Path) -> str:
    """Why the file cannot be trusted, or an empty text."""
    try:
        kept = beside(path).read_text().split()
    except FileNotFoundError:
        return f"{beside(path).name} is missing"
    except UnicodeDecodeError:
        kept = []
    return "" if kept[:1] == [digest(path)] else f"its SHA-256 is not the one in {beside(path).name}"
