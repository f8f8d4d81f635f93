"""Say which packages of two environments must be taken together, so that they satisfy one another's requirements.

A mix has each package from the good or from the bad end. Both ends were installed, so each requirement that breaks in a
mix is between a package from one end and a package from the other: the one from the bad end needs the other's, too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ipexperf.judge.bisection import Candidate, Change

Packages: TypeAlias = Mapping[str, tuple[str, Sequence[str]]]
"""For each package its version and its Requires-Dist texts."""


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
        self._ties = self._all_ties()

    def needs(self, changes: Sequence[Change]) -> dict[Change, Candidate]:
        """For each change all that must be taken with it, itself included, over any number of requirements."""
        packages = {str(canonicalize_name(change.name)): change for change in changes if change.kind == "package"}
        needs = {change: frozenset({change}) for change in changes}
        for name, change in packages.items():
            reached, pending = {name}, [name]
            while pending:
                new = (self._ties.get(pending.pop(), set()) & set(packages)) - reached
                reached |= new
                pending += new
            needs[change] = frozenset(packages[other] for other in reached)
        return needs

    def _differs(self, name: str) -> bool:
        return _version(self._good, name) != _version(self._bad, name)

    def _all_ties(self) -> dict[str, set[str]]:
        """For each package those whose version of the good end it does not accept, or that do not accept the other."""
        broken_pairs = []
        broken_at_ends = set()
        for name in self._names:
            for from_bad in (False, True) if self._differs(name) else (False,):
                for requirement in self._requirements(name, from_bad=from_bad):
                    other = canonicalize_name(requirement.name)
                    for other_from_bad in (False, True):
                        if self._fulfilled(requirement, from_bad=other_from_bad):
                            continue
                        if from_bad == other_from_bad or not (self._differs(name) and self._differs(other)):
                            broken_at_ends.add((name, str(requirement)))
                        else:
                            tie = (name, other) if from_bad else (other, name)
                            broken_pairs.append(((name, str(requirement)), tie))
        ties: dict[str, set[str]] = {}
        for key, (taken, needed) in broken_pairs:
            if key not in broken_at_ends:
                ties.setdefault(taken, set()).add(needed)
        return ties

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
