"""SHA-256 checksums in files beside the files, to detect damage."""

from __future__ import annotations

import hashlib
from pathlib import Path


def checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def digest(path: Path) -> str:
    """The file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def move_with_checksum(part: Path, path: Path) -> None:
    """Move a finished file to its place and write its checksum in the format of `sha256sum -c`."""
    new = checksum_file(part)
    new.write_text(f"{digest(part)}  {path.name}\n")
    part.replace(path)
    # If we are killed here, file and checksum do not match, and the file will be made again.
    new.replace(checksum_file(path))


def flaw(path: Path) -> str:
    """Why the file does not match its checksum, or an empty text."""
    try:
        words = checksum_file(path).read_text().split()
    except FileNotFoundError:
        return f"{checksum_file(path).name} is missing"
    return "" if words[:1] == [digest(path)] else f"its SHA-256 is not the one in {checksum_file(path).name}"
