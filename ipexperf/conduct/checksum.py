"""SHA-256 checksums in files beside the files, to detect damage."""

from __future__ import annotations

import hashlib
from pathlib import Path

CHUNK = 2**20


def checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def digest(path: Path) -> str:
    """The file's SHA-256."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def move_with_checksum(part: Path, path: Path) -> None:
    """Move a finished file to its place and write its checksum in the format of `sha256sum -c`."""
    new = checksum_file(part)
    try:
        new.write_text(f"{digest(part)}  {path.name}\n")
        part.replace(path)
        # If we are killed here, file and checksum do not match, and the file will be made again.
        new.replace(checksum_file(path))
    finally:
        new.unlink(missing_ok=True)


def flaw(path: Path) -> str:
    """Why the file does not match its checksum, or an empty text."""
    try:
        words = checksum_file(path).read_text().split()
    except FileNotFoundError:
        return f"{checksum_file(path).name} is missing"
    except UnicodeDecodeError:
        words = []
    return "" if words[:1] == [digest(path)] else f"its SHA-256 is not the one in {checksum_file(path).name}"
