"""Say which packages of two environments must be taken together, so that they satisfy one another's requirements.

A mix has each package from the good or from the bad end. Both ends were installed, so each requirement that breaks in a
mix is between a package from one end and a package from the other: the one from the bad end needs the other's, too.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ipexperf.judge.bisection import Candidate, Change

Packages: TypeAlias = Mapping[str, tuple[str, Sequence[str]]]
"""For each package its version and its Requires-Dist texts."""


def needs(changes: Sequence[Change], good: Packages, bad: Packages, python: str) -> dict[Change, Candidate]:
    """For each change all that must be taken with it, itself included, over any number of requirements.

    `python` is the version of both environments, such as "3.11". Requirements of extras, on packages that neither end
    has, and those that an end breaks itself are ignored. So both ends fit.
    """
    ties = _ties(good, bad, python)
    packages = {str(canonicalize_name(change.name)): change for change in changes if change.kind == "package"}
    needed = {change: frozenset({change}) for change in changes}
    for name, change in packages.items():
        reached, pending = {name}, [name]
        while pending:
            new = (ties.get(pending.pop(), set()) & set(packages)) - reached
            reached |= new
            pending += new
        needed[change] = frozenset(packages[other] for other in reached)
    return needed


def _ties(good: Packages, bad: Packages, python: str) -> dict[str, set[str]]:
    """For each package those whose version of the good end it does not accept, or that do not accept the other."""
    ends = [{canonicalize_name(name): package for name, package in end.items()} for end in (good, bad)]
    versions = [{name: version for name, (version, _) in end.items()} for end in ends]
    names = {*ends[0], *ends[1]}
    moved = {name for name in names if versions[0].get(name) != versions[1].get(name)}
    broken_pairs, broken_at_ends = [], set()
    for name, side in [*((name, 0) for name in sorted(names)), *((name, 1) for name in sorted(moved))]:
        for requirement in _requirements(ends[side].get(name, ("", ()))[1], python):
            other = canonicalize_name(requirement.name)
            for other_side in (0, 1) if other in names else ():
                if _fulfilled(requirement, versions[other_side].get(other)):
                    continue
                if side == other_side or not {name, other} <= moved:
                    broken_at_ends.add((name, str(requirement)))
                else:
                    broken_pairs.append(((name, str(requirement)), (name, other) if side else (other, name)))
    ties: dict[str, set[str]] = {}
    for key, (taken, needed) in broken_pairs:
        if key not in broken_at_ends:
            ties.setdefault(taken, set()).add(needed)
    return ties


def broken(packages: Packages, python: str) -> list[str]:
    """The requirements that an environment does not fulfil, a sentence each. Those of extras are ignored."""
    versions = {canonicalize_name(name): version for name, (version, _) in packages.items()}
    sentences = []
    for name, (version, requires) in sorted(packages.items()):
        for requirement in _requirements(requires, python):
            present = versions.get(canonicalize_name(requirement.name))
            if not _fulfilled(requirement, present):
                state = f"{requirement.name} is {present}" if present else f"there is no {requirement.name}"
                sentences.append(f"{name} {version} needs {requirement.name}{requirement.specifier}, and {state}")
    return sentences


def _requirements(texts: Sequence[str], python: str) -> Iterator[Requirement]:
    """The requirements that hold here. The installer accepted those that are no valid ones."""
    for text in texts:
        with contextlib.suppress(InvalidRequirement):
            if holds_here(requirement := Requirement(text), python):
                yield requirement


def _fulfilled(requirement: Requirement, version: str | None) -> bool:
    """Whether this version is accepted. None: the package is not there. What is no valid version is not checked."""
    try:
        # An installed pre-release counts: somebody chose it.
        return version is not None and requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True


def holds_here(requirement: Requirement, python: str) -> bool:
    """Whether a requirement holds on this machine under this version of Python. Those of extras do not."""
    return requirement.marker is None or requirement.marker.evaluate(_environment(python))


@functools.cache
def _environment(python: str) -> dict[str, str]:
    """The values that markers are evaluated with: of this machine, another Python, and no extra."""
    short = ".".join(python.split(".")[:2])
    full = python if python.count(".") > 1 else f"{python}.0"
    here = cast("dict[str, str]", default_environment())
    return here | {"python_version": short, "python_full_version": full, "extra": ""}
