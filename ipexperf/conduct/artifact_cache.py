"""A cache of files that are made once, such as trained weights. Damaged files are made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from ipexperf import scratch
from ipexperf.conduct import checksum


def make_once(
    path: Path, make: Callable[[Path], None], damaged: Callable[[str], None], suffixes: Sequence[str] = ()
) -> bool:
    """Make the file if it is missing or damaged. Other processes wait, and then find it.

    `make` writes the file, and companions named like it with one of these `suffixes` added. All get checksums.
    Returns whether the file was made now.
    """
    scratch.made(path.parent)
    files = [Path(f"{path}{side}") for side in ("", *suffixes)]
    with FileLock(f"{path}.lock"):
        if path.exists():
            flaw = next(filter(None, map(_flaw, files)), "")
            if not flaw:
                return False
            damaged(flaw)
        with scratch.folder("artifact", path.parent) as place:
            make(place / path.name)
            # Move the file itself last, so that where it is, its companions are too.
            for file in reversed(files):
                checksum.move_with_checksum(place / file.name, file)
    return True


def _flaw(file: Path) -> str:
    return checksum.flaw(file) if file.exists() else f"{file.name} is missing"
