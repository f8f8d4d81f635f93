"""Install a distribution by copying its installed files from another environment of this machine."""

from __future__ import annotations

import base64
import csv
import filecmp
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from ipexperf.bench.machine.inventory import Package, normalised
from ipexperf.errors import LockError

SKIPPED = re.compile(r"^/|^(\.\./)+bin/|__pycache__")
"""Files of a RECORD that are not copied: scripts, which name their interpreter, and compiled files."""


def install_from(package: Package, target: Path, *, link: bool) -> None:
    """Copy the recorded files of a distribution into another folder of packages.

    `link`: share the files instead of copying them, for sources that never change in place. Scripts are not copied.
    Compiled files are, because compiling takes minutes. Python uses one only if it fits size and time of its source,
    which stay the same.
    """
    source = Path(package.folder)
    environment = target.parents[2].resolve()
    series = target.parent.name.removeprefix("python").replace(".", "")
    for name, _ in recorded(information(package) / "RECORD"):
        destination = target / name
        if not destination.resolve().is_relative_to(environment):
            raise LockError(f"{package.name} has a file outside its environment: {name}")
        _place(source / name, destination, package, link=link)
        path = PurePath(name)
        if path.suffix == ".py":
            compiled = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.name}-{series}.pyc"
            with suppress(FileNotFoundError, LockError):  # Python compiles it again
                _place(source / compiled, target / compiled, package, link=link)


def recorded(record: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a RECORD, each with its digest, except scripts and compiled files."""
    for row in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        if row and not SKIPPED.search(row[0]):
            # Metadata has no digest here: a vendor's wheel may record a wrong one, as Intel's do.
            checked = len(row) > 1 and ".dist-info/" not in row[0]
            yield row[0], row[1] if checked else ""


def information(package: Package) -> Path:
    """Return the folder of a package's metadata. Raise LockError if the package is gone."""
    for path in Path(package.folder).glob("*.dist-info"):
        name = path.name.removesuffix(".dist-info").rpartition("-")[0]
        # An uninstallation may leave a folder without them.
        if normalised(name) == package.name and (path / "METADATA").is_file() and (path / "RECORD").is_file():
            return path
    raise LockError(f"{package.name} {package.version} is no longer in {package.folder}")


def edited(record: Path) -> list[str]:
    """Return the files of a RECORD that are gone, or not what was installed."""
    folder = record.parent.parent
    return [name for name, digest in recorded(record) if digest and not _has_digest(folder / name, digest)]


def _has_digest(path: Path, digest: str) -> bool:
    """Return True if a file has this digest, which RECORD spells as `sha256=` and base64 without padding."""
    kind, _, encoded = digest.partition("=")
    try:
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, kind).digest()
    except OSError:
        return False
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode() == encoded.rstrip("=")


def packages_folder(environment: Path) -> Path:
    """Return the folder of an environment's packages."""
    [folder] = (environment / "lib").glob("python3*/site-packages")
    return folder


def size(folder: Path) -> int:
    """Return the bytes of a folder on disk. A file that several environments share counts in each."""
    return sum(entry.lstat().st_blocks * 512 for entry in folder.rglob("*") if not entry.is_symlink())


def _place(source: Path, target: Path, package: Package, *, link: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        if filecmp.cmp(source, target, shallow=False):
            return
        raise LockError(f"{package.name} {package.version} and another package of the lock both have {target.name}")
    if link:
        with suppress(OSError):  # another file system: a copy is the same, only larger
            os.link(source, target)
            return
    shutil.copy2(source, target)
