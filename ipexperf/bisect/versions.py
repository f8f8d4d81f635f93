"""The versions of one package, each beside the good end's other packages."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from packaging import tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.bisect.software import End, Installed, Locked, Say
from ipexperf.conduct import lease
from ipexperf.environments import make
from ipexperf.errors import LockError, UsageError
from ipexperf.judge import requirements
from ipexperf.judge.bisection import Change
from ipexperf.lock import Lock

INDEX_SECONDS = 30.0
"""Time limit for an index to list the versions of a package."""
_NO_INDEX = "no index answers: list the versions with --versions A,B,C, or give a folder with --wheels"


@dataclass(frozen=True, slots=True)
class Release:
    """A version of a package: from a wheel, or from wherever its lock can be installed from."""

    version: str
    wheel: Path | None = None
    date: str = ""
    """When it appeared in the index, if that says so."""


@dataclass(frozen=True, slots=True)
class WithVersion:
    """The good end with another version of one package."""

    base: End
    package: str
    release: Release

    @property
    def key(self) -> str:
        if self.release.wheel is None:
            return self._pinned().digest
        return hashlib.sha256(f"{self.base.lock.digest} {_digest(self.release.wheel)}".encode()).hexdigest()[:16]

    @contextlib.contextmanager
    def ready(self, cache: Path, say: Say) -> Iterator[Installed]:
        lock = self._resolved(cache, say)
        environment = make.make(cache, lock, say, [self.base.python], leasing=lease.OFF)
        if reasons := _conflicts(self.base.inventory, make.inventory_of(environment)):
            raise LockError(f"it does not fit beside the others: {'; '.join(reasons[:2])}")
        with Locked(lock).ready(cache, say) as installed:
            yield installed

    def lock(self, cache: Path) -> Lock | None:
        return self._resolved(cache, lambda _: None)

    def _resolved(self, cache: Path, say: Say) -> Lock:
        """The lock of the whole environment. The content of a wheel is known once it was installed."""
        if self.release.wheel is None:
            return self._pinned()
        return with_package(self.base.lock, _kept(cache, self.release.wheel, self.base.lock, say))

    def _pinned(self) -> Lock:
        same = {one.name: one for one in self.base.lock.packages}.get(self.package)
        if same is not None and same.version == self.release.version:
            return self.base.lock
        return with_package(self.base.lock, Package(self.package, self.release.version, ""))


_KEPT: dict[tuple[Path, str, Lock], Package] = {}
"""The packages of wheels that this process has put into the store."""


def _kept(cache: Path, wheel: Path, lock: Lock, say: Say) -> Package:
    """The package of a wheel that is in the store. Each wheel is installed once to see what its content is."""
    key = cache, _digest(wheel), lock
    if key not in _KEPT:
        _KEPT[key] = make.keep_wheel(cache, wheel, lock, say)
    return _KEPT[key]


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def with_package(lock: Lock, package: Package) -> Lock:
    """A lock with this package in place of another version of it."""
    packages = {one.name: one for one in lock.packages} | {package.name: package}
    return dataclasses.replace(lock, packages=tuple(packages[name] for name in sorted(packages)), libraries=(), name="")


def _conflicts(before: Inventory, after: Inventory) -> list[str]:
    """The requirements that the other version breaks, beside those that were broken before."""
    old, new = (
        requirements.broken({one.name: (one.version, one.requires) for one in side.packages}, side.python)
        for side in (before, after)
    )
    return [sentence for sentence in new if sentence not in old]


def listed(text: str) -> list[Release]:
    """The versions that a user lists, in this order."""
    versions = [word.strip() for word in text.split(",")]
    try:
        parsed = [Version(version) for version in versions]
    except InvalidVersion as error:
        raise UsageError(f"--versions: {error}") from None
    twice = sorted({str(one) for one in parsed if parsed.count(one) > 1})
    if twice:
        raise UsageError(f"--versions: {twice[0]} is there twice")
    return [Release(str(version)) for version in parsed]


def in_folder(folder: Path, package: str, python: str) -> list[Release]:
    """The versions of a package in a folder of wheels, oldest first. `python`: the version that they must fit."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"--wheels {folder}: {error.strerror}") from None
    wheels: dict[Version, Path] = {}
    for path in paths:
        if path.suffix == ".whl" and (version := _version_for(path.name, package, python)) is not None:
            wheels[version] = path
    return [Release(str(version), wheels[version]) for version in sorted(wheels)]


def _version_for(wheel: str, package: str, python: str) -> Version | None:
    """The version in the name of a wheel, if it is of this package and fits this Python."""
    try:
        name, version, _, of_wheel = parse_wheel_filename(wheel)
    except (InvalidWheelFilename, InvalidVersion):
        return None  # an sdist, or what no installer would take either
    fits = name == canonicalize_name(package) and _tags(python) & of_wheel
    return version if fits else None


@functools.cache
def _tags(python: str) -> frozenset[tags.Tag]:
    series = [int(part) for part in locks.series(python)]
    return frozenset([*tags.cpython_tags(series), *tags.compatible_tags(series)])


def in_index(url: str, package: str, first: str, last: str, python: str) -> list[Release]:
    """The versions from the first to the last of which an index has wheels for this Python, oldest first."""
    try:
        lowest, highest = Version(first), Version(last)
    except InvalidVersion as error:
        raise UsageError(f"--versions: {error}") from None
    dates: dict[Version, str] = {}
    for file in _files(url, package):
        version = _version_for(str(file.get("filename")), package, python)
        if version is not None and lowest <= version <= highest and not file.get("yanked"):
            dates[version] = min(
                filter(None, (dates.get(version), str(file.get("upload-time") or "")[:10])), default=""
            )
    return [Release(str(version), date=dates[version]) for version in sorted(dates)]


def _files(url: str, package: str) -> list[dict[str, Any]]:
    """What an index says of the files of a package (PEP 691)."""
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"--index {url}: expected the https address of an index")
    address = f"{url.rstrip('/')}/{canonicalize_name(package)}/"
    request = urllib.request.Request(address, headers={"Accept": "application/vnd.pypi.simple.v1+json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=INDEX_SECONDS) as reply:  # noqa: S310 - the scheme was checked
            document = json.load(reply)
        files = [dict(file) for file in document["files"]]
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            raise UsageError(f"the index has no package {package}") from None
        raise UsageError(f"{_NO_INDEX} ({error})") from None
    except OSError as error:  # urllib's own error is one
        raise UsageError(f"{_NO_INDEX} ({error})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(
            "the index does not answer in JSON (PEP 691): list the versions with --versions A,B,C"
        ) from None
    return files


def index_of(given: str | None) -> str:
    """The index that the user names, or that pip is configured to use."""
    if url := given or os.environ.get("PIP_INDEX_URL"):
        return url
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        raise UsageError("--versions FIRST..LAST asks an index: name it with --index URL, or list --versions A,B,C")
    return done.stdout.strip()


def changes(package: str, releases: Sequence[Release]) -> list[Change]:
    """What each version changes from the one before it. The first has none before."""
    before = [None, *(one.version for one in releases)]
    names = [f"{one.version} of {one.date}" if one.date else one.version for one in releases]
    return [Change("package", package, old, new) for old, new in zip(before, names, strict=False)]
