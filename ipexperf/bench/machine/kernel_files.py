"""Read the files of /proc and /sys. A kernel may lack any of them, and a container may hide it."""

from __future__ import annotations

from pathlib import Path


def text(path: str | Path) -> str | None:
    """Return the text of a file, without white space around it. None if it is not there or cannot be read."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None


def stat_fields(process: int | str) -> list[str]:
    """Return the fields of /proc/PROCESS/stat after the process's name. The first is its state.

    Raises FileNotFoundError or ProcessLookupError if the process has ended.
    """
    return Path(f"/proc/{process}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
