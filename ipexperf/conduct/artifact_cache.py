"""A cache of files that are made once, such as trained weights. Damaged files, by their SHA-256, are made again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from ipexperf import scratch


def make_once(
    path: Path, make: Callable[[Path], None], damaged: Callable[[str], None], suffixes: Sequence[str] = ()
) -> None:
    """Make the file if it is missing or damaged. Other processes wait, and then find it.

    `make` writes the file, and companions named like it with one of these `suffixes` added. All get checksums.
    """
    scratch.made(path.parent)
    files = [Path(f"{path}{side}") for side in ("", *suffixes)]
    with FileLock(f"{path}.lock"):
        if path.exists():
            damage = next(filter(None, map(flaw, files)), "")
            if not damage:
                return
            damaged(damage)
        with scratch.folder("artifact", path.parent) as place:
            make(place / path.name)
            # Move the file itself last, so that where it is, its companions are too.
            for file in reversed(files):
                move_with_checksum(place / file.name, file)


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
    if not path.exists():
        return f"{path.name} is missing"
    try:
        words = checksum_file(path).read_text().split()
    except FileNotFoundError:
        return f"{checksum_file(path).name} is missing"
    return "" if words[:1] == [digest(path)] else f"its SHA-256 is not the one in {checksum_file(path).name}"
