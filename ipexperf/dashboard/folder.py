"""Write a folder completely or not at all, and never over files that are not ours."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipexperf.errors import UsageError

MANIFEST = "ipexperf-report.json"
"""Lists every file of a report. Files that it does not list belong to somebody else."""
MAKER = "ipexperf report"


def check(folder: Path) -> None:
    """Refuse a folder that is not writable, or that holds anything but a report."""
    if not folder.parent.is_dir():
        raise UsageError(f"the report {folder} cannot be written: there is no folder {folder.parent}")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is not a folder: name a new one, an empty one or an older report")
    if folder.is_dir() and (other := _strange(folder)):
        wanted = "name a folder that is new, empty or an older report"
        raise UsageError(f"{folder} holds {other}, which does not belong to a report: {wanted}")


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside this one, and move it into place at the end of the block."""
    folder = folder.absolute()
    check(folder)
    try:
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise UsageError(f"the report {folder} cannot be written: {error.strerror}") from error
    try:
        yield new
        _list(new)
        # Temporary folders are private; give a report the permissions of a normal folder.
        new.chmod(0o755)
        _replace(new, folder)
    except OSError as error:
        raise UsageError(f"the report {folder} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _strange(folder: Path) -> str:
    """Return the first file in a folder that no report wrote, or an empty text."""
    files = _files(folder)
    if not files and not any(folder.iterdir()):
        return ""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        written = set(manifest["files"]) if manifest["made_by"] == MAKER else set()
    except (OSError, ValueError, KeyError, TypeError):
        written = set()
    return next((name for name in files if name not in written), "" if written else "something")


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def _list(folder: Path) -> None:
    document = {"made_by": MAKER, "files": [*_files(folder), MANIFEST]}
    (folder / MANIFEST).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _replace(new: Path, folder: Path) -> None:
    """Replace a folder by another. Restore it if that fails."""
    if not folder.exists():
        new.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old)
