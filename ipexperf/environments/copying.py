"""Install a distribution by copying its installed files from another environment of this machine."""

from __future__ import annotations

import csv
import filecmp
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
    compiled = Compiled(source, sys.implementation.cache_tag.rpartition("-")[0], target.parent.name)
    for name in _files(package, source):
        destination = target / name
        if not destination.resolve().is_relative_to(environment):
            raise LockError(f"{package.name} has a file outside its environment: {name}")
        _place(source / name, destination, package, link=link)
        if (compiled_file := compiled.of(name)) is not None:
            with suppress(FileNotFoundError, LockError):  # Python compiles it again
                _place(source / compiled_file, target / compiled_file, package, link=link)


class Compiled:
    """The compiled files in a folder of packages that are for this Python, such as `python3.11`."""

    def __init__(self, folder: Path, implementation: str, python: str) -> None:
        self._folder = folder
        self._suffix = f".{implementation}-{python.removeprefix('python').replace('.', '')}.pyc"
        self._listed: dict[Path, frozenset[str]] = {}

    def of(self, name: str) -> Path | None:
        """Return the compiled file of a source file, or None if there is none."""
        path = Path(name)
        if path.suffix != ".py":
            return None
        cache = path.parent / "__pycache__"
        if cache not in self._listed:
            try:
                self._listed[cache] = frozenset(os.listdir(self._folder / cache))  # noqa: PTH208 - names, not paths
            except OSError:
                self._listed[cache] = frozenset()
        file_name = f"{path.stem}{self._suffix}"
        return cache / file_name if file_name in self._listed[cache] else None


def _files(package: Package, folder: Path) -> Iterator[str]:
    """Yield the names of a package's files, as its RECORD lists them."""
    record = information(package, folder) / "RECORD"
    try:
        yield from (name for name, _ in recorded(record))
    except (OSError, csv.Error) as error:
        raise LockError(f"{package.name} in {folder} cannot be copied: {error}") from error


def recorded(record: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a RECORD, each with its digest, except scripts and compiled files."""
    for row in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        if row and not SKIPPED.search(row[0]):
            # Metadata has no digest here: a vendor's wheel may record a wrong one, as Intel's do.
            checked = len(row) > 1 and ".dist-info/" not in row[0]
            yield row[0], row[1] if checked else ""


def information(package: Package, folder: Path) -> Path:
    """Return the folder of a package's metadata. Raise LockError if the package is gone."""
    for path in folder.glob("*.dist-info"):
        if normalised(path.name.partition("-")[0]) == package.name:
            return path
    raise LockError(f"{package.name} {package.version} is no longer in {folder}")


def _place(source: Path, target: Path, package: Package, *, link: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        if filecmp.cmp(source, target, shallow=False):
            return
        raise LockError(f"{package.name} {package.version} and another package of the lock both have {target.name}")
    if link:
        try:
            os.link(source, target)
        except OSError:  # another file system: a copy is the same, only larger
            shutil.copy2(source, target)
        else:
            return
    else:
        shutil.copy2(source, target)
