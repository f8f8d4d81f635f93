"""The versions of one package, each installed with the good end's other packages."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from ipexperf.bench.machine.inventory import Inventory
from ipexperf.conduct import lease
from ipexperf.environments import indexes, make, resolve
from ipexperf.errors import LockError, UsageError
from ipexperf.judge import requirements
from ipexperf.judge.bisection import Change
from ipexperf.lock import Lock
from ipexperf.tools.bisect.software import End, Installed, Say


@dataclass(frozen=True, slots=True)
class WithVersion:
    """The software of a candidate: the good end with another version of one package."""

    base: End
    package: str
    version: str

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.base.lock.digest} {self.package}=={self.version}".encode()).hexdigest()[:16]

    @contextlib.contextmanager
    def ready(self, cache: Path, say: Say) -> Iterator[Installed]:
        lock = self.lock(cache)
        environment = make.make(cache, lock, say, [self.base.python], leasing=lease.OFF)
        if reasons := _conflicts(self.base.inventory, make.take_inventory(environment.python)):
            raise LockError(f"it does not fit the other packages: {'; '.join(reasons[:2])}")
        yield Installed(environment.python, lock.variables)

    def lock(self, cache: Path) -> Lock:
        del cache
        return resolve.with_versions(self.base.lock, self.base.inventory, ((self.package, self.version),))


def _conflicts(before: Inventory, after: Inventory) -> list[str]:
    """Return the requirements that are broken after the change and were not before."""
    old, new = (
        requirements.broken(
            {package.name: (package.version, package.requires) for package in inventory.packages}, inventory.python
        )
        for inventory in (before, after)
    )
    return [sentence for sentence in new if sentence not in old]


def named(text: str, package: str, python: str) -> list[str]:
    """The versions A,B,C that a user lists, in this order, or those of FIRST..LAST that have wheels for this Python."""
    first, between, last = text.partition("..")
    words = [first, last] if between else [word.strip() for word in text.split(",")]
    try:
        versions = [Version(word) for word in words]
    except InvalidVersion as error:
        raise UsageError(f"--versions: {error}") from None
    if between:
        # PyTorch's index for such as 2.10.0+xpu, else that which pip is set to ask.
        of_label = next(iter(indexes.of_packages([(package, first)])), "")
        versions = [
            version for version in indexes.versions(package, python, of_label) if versions[0] <= version <= versions[1]
        ]
    if twice := sorted({str(version) for version in versions if versions.count(version) > 1}):
        raise UsageError(f"--versions: {twice[0]} is there twice")
    if len(versions) < 2:
        count = "one version" if versions else "no version"
        raise UsageError(f"--versions {text}: {count} of {package} for Python {python}: a search needs two ends")
    return [str(version) for version in versions]


def changes(package: str, versions: Sequence[str]) -> list[Change]:
    """Describe each version as a change from the one before it. The first has none before."""
    before = (None, *versions[:-1])
    return [Change("package", package, old, new) for old, new in zip(before, versions, strict=True)]
