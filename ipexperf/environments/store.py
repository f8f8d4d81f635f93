"""Wheels kept by content: what no index may have any more when a lock is made again."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from ipexperf.bench.machine.inventory import Package, normalised
from ipexperf.environments import wheels
from ipexperf.errors import LockError

GB = 10**9
LIMIT = 20 * GB
OLD = 24 * 3600
"""Seconds after which a temporary file is of a killed process."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A kept wheel."""

    path: Path
    name: str
    version: str
    content: str
    bytes: int
    used: float
    """When it was last used, in seconds since the epoch."""


class Store:
    """A folder of wheels: `<content>/<wheel>`, each with its SHA-256 beside it."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self._limit = limit

    def add(self, package: Package, say: Callable[[str], None]) -> Path:
        """Keep an installed distribution. Return its wheel, which may be there already."""
        if (found := self.find(package)) is not None:
            return found
        place = self.folder / package.content
        say(f"keeping {package.name} {package.version}")
        try:
            place.mkdir(parents=True, exist_ok=True)
            path = wheels.repack(package, place)
            if self.size() > self._limit:
                path.unlink()
                raise LockError(
                    f"{package.name} {package.version} does not fit: {self.folder} may hold {self._limit / GB:.0f} GB; "
                    "make room with `ipexperf env prune`"
                )
            digest = path.with_name(f"{path.name}.sha256")
            digest.write_text(_sha256(path), encoding="utf-8")
        except OSError as error:
            raise LockError(f"{package.name} {package.version} cannot be kept in {self.folder}: {error}") from error
        return path

    def find(self, package: Package, *, check: bool = False) -> Path | None:
        """The wheel of this package and content, or None. `check`: raise LockError if it is damaged."""
        for path in (self.folder / package.content).glob("*.whl") if package.content else ():
            name, version = path.name.split("-")[:2]
            digest = path.with_name(f"{path.name}.sha256")
            if normalised(name) != package.name or not digest.exists() or not _alike(version, package.version):
                continue  # without a digest it is still being written, or its writer was killed
            if check and digest.read_text(encoding="utf-8") != _sha256(path):
                raise LockError(f"{path} is damaged: remove it")
            os.utime(path)
            return path
        return None

    def wheels(self) -> list[Wheel]:
        """All kept wheels, the latest used first."""
        kept = []
        for path in self.folder.glob("*/*.whl"):
            name, version = path.name.split("-")[:2]
            state = path.stat()
            kept.append(Wheel(path, normalised(name), version, path.parent.name, state.st_size, state.st_mtime))
        return sorted(kept, key=lambda one: -one.used)

    def size(self) -> int:
        """The bytes of all kept wheels."""
        return sum(one.bytes for one in self.wheels())

    def prune(self, limit: int, used: Collection[str]) -> list[str]:
        """Remove the longest unused wheels until the store is within a limit. Never those of a content in `used`."""
        lines = []
        size = self.size()
        for one in reversed(self.wheels()):
            if size > limit and one.content not in used:
                shutil.rmtree(one.path.parent)
                size -= one.bytes
                lines.append(f"removed the wheel {one.path.name}: {one.bytes / GB:.2f} GB")
        for remains in self.folder.glob("*/.*"):
            if time.time() - remains.stat().st_mtime > OLD:
                shutil.rmtree(remains) if remains.is_dir() else remains.unlink()
        if size > limit:
            lines.append(f"{size / GB:.2f} GB of wheels are left, because accepted locks need them")
        return lines


def _alike(of_wheel: str, version: str) -> bool:
    """Whether the version in a wheel's name, where some characters are replaced, is this one."""
    return of_wheel.replace("_", "-").lower() == version.replace("_", "-").lower() or of_wheel == version.replace(
        "-", "_"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
