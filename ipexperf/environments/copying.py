"""Install a distribution by copying what is installed of it elsewhere on this machine."""

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
"""Scripts, which name their interpreter, and compiled files, of which `RECORD` may list any."""


def install_from(package: Package, target: Path, *, link: bool) -> None:
    """Copy the recorded files of a distribution into another folder of packages.

    `link`: share the files instead of copying them, for sources that never change in place. Scripts stay behind.
    Compiled files come along, because compiling takes minutes: Python uses one only if it fits size and time of its
    source, which stay the same.
    """
    source = Path(package.folder)
    whole = target.parents[2].resolve()
    compiled = Compiled(source, sys.implementation.cache_tag.rpartition("-")[0], target.parent.name)
    for name in _files(package, source):
        place = target / name
        if not place.resolve().is_relative_to(whole):
            raise LockError(f"{package.name} has a file outside its environment: {name}")
        _place(source / name, place, package, link=link)
        if (done := compiled.of(name)) is not None:
            with suppress(FileNotFoundError, LockError):  # it is written again
                _place(source / done, target / done, package, link=link)


class Compiled:
    """The compiled files in a folder of packages, for the Python of another folder such as `python3.11`."""

    def __init__(self, folder: Path, implementation: str, python: str) -> None:
        self._folder = folder
        self._suffix = f".{implementation}-{python.removeprefix('python').replace('.', '')}.pyc"
        self._listed: dict[Path, frozenset[str]] = {}

    def of(self, name: str) -> Path | None:
        """The compiled file of a source file, if it is there."""
        path = Path(name)
        if path.suffix != ".py":
            return None
        cache = path.parent / "__pycache__"
        if cache not in self._listed:
            try:
                self._listed[cache] = frozenset(os.listdir(self._folder / cache))  # noqa: PTH208 - names, not paths
            except OSError:
                self._listed[cache] = frozenset()
        done = f"{path.stem}{self._suffix}"
        return cache / done if done in self._listed[cache] else None


def _files(package: Package, folder: Path) -> Iterator[str]:
    """The names of its files, as its RECORD lists them."""
    record = information(package, folder) / "RECORD"
    try:
        yield from (name for name, _ in recorded(record))
    except (OSError, csv.Error) as error:
        raise LockError(f"{package.name} in {folder} cannot be copied: {error}") from error


def recorded(record: Path) -> Iterator[tuple[str, str]]:
    """The files of a RECORD as seen from the folder of packages, each with its digest. No scripts, nothing compiled."""
    for row in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        if row and not SKIPPED.search(row[0]):
            # Of metadata nothing is checked: a vendor's own wheel may have a wrong digest of it, as Intel's have.
            checked = len(row) > 1 and ".dist-info/" not in row[0]
            yield row[0], row[1] if checked else ""


def information(package: Package, folder: Path) -> Path:
    """The folder of its metadata."""
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
