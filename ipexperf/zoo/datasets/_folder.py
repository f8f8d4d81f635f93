"""Real data in a folder of the user, in the format in which they are published."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def find(
    folder: str | None, name: str, inside: str, files: Iterable[str], remedy: str
) -> tuple[str | None, str | None]:
    """Return the path of the folder `inside` that of `--perf-data` and None, or None and what is wrong with it.

    Only names are looked at: contents are read by workers. `remedy` is what must be there.
    """
    if folder is None:
        return None, f"{name} needs its folder: --perf-data=FOLDER"
    root = Path(folder)
    if not root.is_dir():
        return None, f"--perf-data={folder}: there is no such folder"
    path = root / inside
    if not path.is_dir():
        return None, f"--perf-data={folder} holds no {inside}: {remedy} there"
    lacking = [name for name in files if not (path / name).is_file()]
    if lacking:
        return None, f"--perf-data={path} lacks {', '.join(lacking)}: {remedy} there again"
    return str(path), None
