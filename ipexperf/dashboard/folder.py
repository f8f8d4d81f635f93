"""Write a folder completely or not at all, and never over files that are not ours."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ipexperf import scratch
from ipexperf.errors import UsageError

MANIFEST = "ipexperf-report.json"
"""The name of the file that lists every file of a report. Other files are not ours."""
MAKER = "ipexperf report"


def check(folder: Path) -> None:
    """Raise UsageError if the folder is not writable, or holds anything but a report."""
    try:
        _check_place(folder)
    except OSError as error:  # such as a name that is too long
        raise UsageError(f"the report {str(folder)!r} cannot be written: {error.strerror or error}") from error


def check_apart(folder: Path, places: Mapping[str, Path | None]) -> None:
    """Raise UsageError if the run writes something else into this folder. `places` names what it writes, and where."""
    target = _real(folder)
    for name, place in places.items():
        if place is not None and (_real(place) == target or target in _real(place).parents):
            raise UsageError(f"the report {folder} cannot be written: the run writes its {name} there, {place}")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _check_place(folder: Path) -> None:
    if not folder.parent.is_dir():
        raise UsageError(f"the report {folder} cannot be written: there is no folder {folder.parent}")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is not a folder: name a new one, an empty one or an older report")
    if folder.is_dir() and (foreign_file := _foreign_file(folder)):
        advice = "name a folder that is new, empty or an older report"
        raise UsageError(f"{folder} holds {foreign_file}, which does not belong to a report: {advice}")


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside this one, and move it into place at the end of the block."""
    folder = folder.absolute()
    check(folder)
    try:
        with scratch.folder("report", folder.parent) as place:
            new = place / "new"
            new.mkdir()
            yield new
            _list(new)
            new.chmod(0o755)  # whatever the umask: the permissions of a normal folder
            if folder.exists():
                folder.rename(place / "old")
            new.rename(folder)
    except OSError as error:
        raise UsageError(f"the report {folder} cannot be written: {error.strerror or error}") from error


def _foreign_file(folder: Path) -> str:
    """Return a file in a folder that no report wrote, or an empty text."""
    first = min(folder.iterdir(), default=None)
    if first is None:
        return ""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        written = set(manifest["files"]) if manifest["made_by"] == MAKER else set()
    except (OSError, ValueError, KeyError, TypeError):
        written = set()
    if not written:
        return first.name  # without a manifest it is no report, and may be a whole disk: do not walk it
    return next((name for name in _files(folder) if name not in written), "")


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def _list(folder: Path) -> None:
    document = {"made_by": MAKER, "files": [*_files(folder), MANIFEST]}
    (folder / MANIFEST).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
