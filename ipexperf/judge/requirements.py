"""Which mixes of two environments satisfy the requirements of their packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.markers import Marker, default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from ipexperf.bench.machine.inventory import Package
from ipexperf.judge.bisection import Candidate, Change

PACKAGE = "package"


@dataclass(frozen=True, slots=True)
class _Need:
    """A requirement of one version of a package."""

    by: str
    version: str
    of: str
    text: str
    specifier: Requirement

    def met(self, installed: str | None) -> bool:
        if installed is None:
            return False
        try:
            return self.specifier.specifier.contains(installed, prereleases=True)
        except InvalidVersion:
            return True  # a version that no standard knows: nothing can be said against it


class Requirements:
    """The requirements of the packages of two ends. What an end breaks itself counts for nothing: it runs."""

    def __init__(self, good: Iterable[Package], bad: Iterable[Package], python: str) -> None:
        self._ends = tuple({one.name: one.version for one in side} for side in (good, bad))
        broken = set()
        needs = []
        for packages, versions in zip((good, bad), self._ends, strict=True):
            for need in (need for package in packages for need in _needs(package, python)):
                needs.append(need)
                if not need.met(versions.get(need.of)):
                    broken.add((need.by, need.text))
        self._needs = [need for need in dict.fromkeys(needs) if (need.by, need.text) not in broken]

    def fits(self, candidate: Candidate) -> bool:
        return not self.conflicts(candidate)

    def conflicts(self, candidate: Candidate) -> list[str]:
        """Why a candidate cannot be installed, in words."""
        mix = dict(self._ends[0])
        for change in candidate:
            if change.kind == PACKAGE:
                _take(mix, self._ends[1], change.name)
        return [
            f"{need.by} {need.version} needs {need.text}, the mix has {mix.get(need.of) or 'none'}"
            for need in self._needs
            if mix.get(need.by) == need.version and not need.met(mix.get(need.of))
        ]

    def ties(self, changes: Iterable[Change]) -> dict[Change, list[Change]]:
        """For each change those that must be taken with it."""
        by_name = {change.name: change for change in changes if change.kind == PACKAGE}
        ties: dict[Change, list[Change]] = {change: [] for change in by_name.values()}
        good, bad = self._ends
        for need in self._needs:
            by, of = by_name.get(need.by), by_name.get(need.of)
            if by is None or of is None or by is of:
                continue
            if need.version == bad.get(need.by) and not need.met(good.get(need.of)):
                ties[by].append(of)
            if need.version == good.get(need.by) and not need.met(bad.get(need.of)):
                ties[of].append(by)
        return ties


def _take(mix: dict[str, str], versions: Mapping[str, str], name: str) -> None:
    if name in versions:
        mix[name] = versions[name]
    else:
        mix.pop(name, None)


def _needs(package: Package, python: str) -> Iterable[_Need]:
    environment: dict[str, str] = {name: str(value) for name, value in default_environment().items()}
    environment |= {"python_version": ".".join(python.split(".")[:2]), "python_full_version": python, "extra": ""}
    for text in package.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # written before there was a standard: nothing can be said against any version
        if _applies(requirement.marker, environment):
            of = canonicalize_name(requirement.name)
            yield _Need(package.name, package.version, of, f"{of}{requirement.specifier}", requirement)


def _applies(marker: Marker | None, environment: Mapping[str, str]) -> bool:
    return marker is None or marker.evaluate(dict(environment))
