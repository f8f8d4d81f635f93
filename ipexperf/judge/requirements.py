"""Say which mixes of the packages of two environments satisfy one another's requirements.

A mix has each package from the good or from the bad end. Both ends were installed, so each requirement that breaks in a
mix is between a package from one end and a package from the other. The table of such pairs is made once, and a mix is
then checked without parsing.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ipexperf.judge.bisection import Candidate, Change

Packages: TypeAlias = Mapping[str, tuple[str, Sequence[str]]]
"""For each package its version and its Requires-Dist texts."""


@dataclass(frozen=True, slots=True)
class _Conflict:
    """A package from one end does not accept another from the other end. The sides say whether it is the bad end."""

    package: str
    from_bad: bool
    other: str
    other_from_bad: bool


class Mixes:
    """The mixes of two environments, under one version of Python such as "3.11".

    Requirements of extras, on packages that neither end has, and those that an end breaks itself are ignored. So both
    ends fit. Versions and requirements that are no valid ones are not checked.
    """

    def __init__(self, good: Packages, bad: Packages, python: str) -> None:
        self._good: Packages = {canonicalize_name(name): package for name, package in good.items()}
        self._bad: Packages = {canonicalize_name(name): package for name, package in bad.items()}
        self._names = sorted({*self._good, *self._bad})
        self._python = python
        self._conflicts = self._all_conflicts()

    def changes(self) -> list[Change]:
        """The packages whose versions differ, sorted by name."""
        return [
            Change("package", name, _version(self._good, name), _version(self._bad, name))
            for name in self._names
            if self._differs(name)
        ]

    def fits(self, candidate: Candidate) -> bool:
        """Whether the packages of the mix accept one another."""
        taken = {canonicalize_name(change.name) for change in candidate if change.kind == "package"}
        return not any(
            (conflict.package in taken) is conflict.from_bad and (conflict.other in taken) is conflict.other_from_bad
            for conflict in self._conflicts
        )

    def ties(self) -> dict[Change, list[Change]]:
        """For each change the others that must be taken with it, so that a search finds mixes that fit."""
        change_of = {change.name: change for change in self.changes()}
        ties: dict[Change, list[Change]] = {}
        for conflict in self._conflicts:
            taken, missing = conflict.package, conflict.other
            if not conflict.from_bad:
                taken, missing = missing, taken
            ties.setdefault(change_of[taken], []).append(change_of[missing])
        return ties

    def _differs(self, name: str) -> bool:
        return _version(self._good, name) != _version(self._bad, name)

    def _all_conflicts(self) -> list[_Conflict]:
        """The requirements that one end fulfils and the other package's version of the other end breaks."""
        conflicts = []
        broken_at_ends = set()
        for name in self._names:
            for from_bad in (False, True) if self._differs(name) else (False,):
                for requirement in self._requirements(name, from_bad=from_bad):
                    other = canonicalize_name(requirement.name)
                    for other_from_bad in (False, True):
                        if self._fulfilled(requirement, from_bad=other_from_bad):
                            continue
                        at_an_end = from_bad == other_from_bad or not (self._differs(name) and self._differs(other))
                        if at_an_end:
                            broken_at_ends.add((name, str(requirement)))
                        else:
                            conflict = _Conflict(name, from_bad, other, other_from_bad)
                            conflicts.append(((name, str(requirement)), conflict))
        return [conflict for key, conflict in conflicts if key not in broken_at_ends]

    def _requirements(self, name: str, *, from_bad: bool) -> list[Requirement]:
        """The requirements that hold here, on packages of at least one end."""
        requirements = []
        for text in (self._bad if from_bad else self._good).get(name, ("", ()))[1]:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            if canonicalize_name(requirement.name) in self._names and holds_here(requirement, self._python):
                requirements.append(requirement)
        return requirements

    def _fulfilled(self, requirement: Requirement, *, from_bad: bool) -> bool:
        """Whether this end has the required package in a version that is accepted."""
        version = _version(self._bad if from_bad else self._good, canonicalize_name(requirement.name))
        try:
            # An installed pre-release counts: somebody chose it.
            return version is not None and requirement.specifier.contains(Version(version), prereleases=True)
        except InvalidVersion:
            return True


def broken(packages: Packages, python: str) -> list[str]:
    """The requirements that an environment does not fulfil, a sentence each. Those of extras are ignored."""
    versions = {canonicalize_name(name): version for name, (version, _) in packages.items()}
    sentences = []
    for name, (version, requires) in sorted(packages.items()):
        for text in requires:
            try:
                requirement = Requirement(text)
                present = versions.get(canonicalize_name(requirement.name))
                fits = present is not None and requirement.specifier.contains(Version(present), prereleases=True)
            except (InvalidRequirement, InvalidVersion):
                continue  # the installer accepted it
            if not fits and holds_here(requirement, python):
                state = f"{requirement.name} is {present}" if present else f"there is no {requirement.name}"
                sentences.append(f"{name} {version} needs {requirement.name}{requirement.specifier}, and {state}")
    return sentences


def holds_here(requirement: Requirement, python: str) -> bool:
    """Whether a requirement holds on this machine under this version of Python. Those of extras do not."""
    return requirement.marker is None or requirement.marker.evaluate(_environment(python))


def _version(packages: Packages, name: str) -> str | None:
    return packages[name][0] if name in packages else None


@functools.cache
def _environment(python: str) -> dict[str, str]:
    """The values that markers are evaluated with: of this machine, another Python, and no extra."""
    short = ".".join(python.split(".")[:2])
    full = python if python.count(".") > 1 else f"{python}.0"
    here = cast("dict[str, str]", default_environment())
    return here | {"python_version": short, "python_full_version": full, "extra": ""}
