"""The versions of one package, each installed with the good end's other packages."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.conduct import lease
from ipexperf.environments import indexes, make, resolve
from ipexperf.errors import LockError, UsageError
from ipexperf.judge import requirements
from ipexperf.judge.bisection import Change
from ipexperf.lock import Lock
from ipexperf.tools.bisect.software import End, Installed, Say


@dataclass(frozen=True, slots=True)
class Release:
    """A version of a package, from a wheel or from an index."""

    version: str
    wheel: Path | None = None


@dataclass(frozen=True, slots=True)
class WithVersion:
    """The software of a candidate: the good end with another version of one package."""

    base: End
    package: str
    release: Release

    @property
    def key(self) -> str:
        release = self.release
        what = f"{self.package}=={release.version}" if release.wheel is None else _digest(release.wheel)
        return hashlib.sha256(f"{self.base.lock.digest} {what}".encode()).hexdigest()[:16]

    @contextlib.contextmanager
    def ready(self, cache: Path, say: Say) -> Iterator[Installed]:
        lock = self._resolved(cache, say)
        environment = make.make(cache, lock, say, [self.base.python], leasing=lease.OFF)
        if reasons := _conflicts(self.base.inventory, make.take_inventory(environment.python)):
            raise LockError(f"it does not fit the other packages: {'; '.join(reasons[:2])}")
        yield Installed(environment.python, lock.variables)

    def lock(self, cache: Path) -> Lock | None:
        return self._resolved(cache, lambda _: None)

    def _resolved(self, cache: Path, say: Say) -> Lock:
        """Return the lock of the whole environment. A wheel is installed once, because only that tells its content."""
        if self.release.wheel is None:
            return resolve.with_versions(self.base.lock, self.base.inventory, ((self.package, self.release.version),))
        return locks.with_package(self.base.lock, _stored(cache, self.release.wheel, self.base.lock, say))


_STORED: dict[tuple[Path, str, Lock], Package] = {}
"""The packages of wheels that this process has put into the store."""


def _stored(cache: Path, wheel: Path, lock: Lock, say: Say) -> Package:
    """Put what a wheel installs into the store, and return its package. Each wheel is installed once."""
    key = cache, _digest(wheel), lock
    if key not in _STORED:
        _STORED[key] = make.keep_wheel(cache, wheel, lock, say)
    return _STORED[key]


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _conflicts(before: Inventory, after: Inventory) -> list[str]:
    """Return the requirements that are broken after the change and were not before."""
    old, new = (
        requirements.broken(
            {package.name: (package.version, package.requires) for package in inventory.packages}, inventory.python
        )
        for inventory in (before, after)
    )
    return [sentence for sentence in new if sentence not in old]


def listed(text: str) -> list[Release]:
    """Parse the versions that a user lists, in this order."""
    versions = [word.strip() for word in text.split(",")]
    try:
        parsed = [Version(version) for version in versions]
    except InvalidVersion as error:
        raise UsageError(f"--versions: {error}") from None
    twice = sorted({str(version) for version in parsed if parsed.count(version) > 1})
    if twice:
        raise UsageError(f"--versions: {twice[0]} is there twice")
    return [Release(str(version)) for version in parsed]


def in_folder(folder: Path, package: str, python: str) -> list[Release]:
    """Return the versions of a package in a folder of wheels, oldest first, that fit this version of Python."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"--wheels {folder}: {error.strerror}") from None
    wheels: dict[Version, Path] = {}
    for path in paths:
        if path.suffix == ".whl" and (version := indexes.version_for(path.name, package, python)) is not None:
            wheels[version] = path
    return [Release(str(version), wheels[version]) for version in sorted(wheels)]


def in_index(url: str | None, package: str, first: str, last: str, python: str) -> list[Release]:
    """Return the versions from the first to the last that have wheels for this Python in an index, oldest first.

    The index is this one, else PyTorch's of the first version, or that which pip is set to ask.
    """
    try:
        lowest, highest = Version(first), Version(last)
    except InvalidVersion as error:
        raise UsageError(f"--versions: {error}") from None
    of_label = next(iter(indexes.of_packages([(package, first)])), "")
    try:
        found = indexes.versions(package, python, url or of_label)
    except UsageError as error:
        other = "list the versions with --versions A,B,C, or give a folder with --wheels"
        raise UsageError(f"{error}: name an index with --index, {other}") from None
    return [Release(str(version)) for version in found if lowest <= version <= highest]


def changes(package: str, releases: Sequence[Release]) -> list[Change]:
    """Describe each version as a change from the one before it. The first has none before."""
    names = [None, *(release.version for release in releases)]
    return [Change("package", package, old, str(new)) for old, new in itertools.pairwise(names)]
