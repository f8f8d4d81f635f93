"""What is made once and kept by content, such as trained weights: whole and as it was made, or made again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from ipexperf.conduct import seal


def keep(path: Path, make: Callable[[Path], None], damaged: Callable[[str], None], sides: Sequence[str] = ()) -> bool:
    """Makes the file where it is not, or is damaged; whoever comes meanwhile waits, and finds it.

    `make` writes it, and beside it what has its name and one of the `sides`. All of them are sealed. Tells whether it
    was made now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [Path(f"{path}{side}") for side in ("", *sides)]
    with FileLock(f"{path}.lock"):
        if path.exists():
            flaw = next(filter(None, map(_flaw, files)), "")
            if not flaw:
                return False
            damaged(flaw)
        part = path.with_suffix(f".{os.getpid()}.part")
        parts = [Path(f"{part}{side}") for side in ("", *sides)]
        try:
            make(part)
            # The file itself is the last to be moved: where it is, what belongs to it is too.
            for new, file in reversed(list(zip(parts, files, strict=True))):
                seal.put(new, file)
        finally:
            for new in parts:
                new.unlink(missing_ok=True)
    return True


def _flaw(file: Path) -> str:
    return seal.flaw(file) if file.exists() else f"{file.name} is missing"
