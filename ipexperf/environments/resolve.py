"""Other versions of packages, together with those that belong to them.

Packages belong together where one requires an exact version of another: torch names the version of its kernels'
libraries, and torchvision that of torch. uv says which versions go together; nothing is installed for that.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ipexperf import lock as locks
from ipexperf import scratch
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.environments import indexes, installer, make
from ipexperf.errors import LockError
from ipexperf.judge.requirements import holds_here
from ipexperf.lock import Lock

Pins = tuple[tuple[str, str], ...]


@functools.cache  # a search asks for each of its candidates several times
def with_versions(lock: Lock, inventory: Inventory, pins: Pins) -> Lock:
    """The software of a lock with these versions of packages, and of those that belong to them.

    `inventory` is of the interpreter that the lock was made of. Raises LockError if no versions go together.
    """
    named = dict(pins)
    changed = {name: version for name, version in named.items() if lock.versions.get(name) != version}
    pairs = list(_exact(inventory))
    together = _together(pairs, named)
    if not changed or together <= named.keys():
        for name, version in changed.items():
            lock = locks.with_package(lock, Package(name, version, ""))
        return lock
    above = {first for first, _ in pairs} - {second for _, second in pairs}
    wanted = [f"{name}=={version}" for name, version in named.items()]
    wanted += sorted((together & above) - named.keys())
    others = [f"{name}=={version}" for name, version in inventory.versions.items() if name not in together]
    resolved = _resolve(make.base_python(lock), wanted, others, named)
    before = {package.name: package for package in lock.packages}
    packages = {name: package for name, package in before.items() if name not in together}
    for name, version in resolved.items():
        known = before.get(name)
        packages[name] = known if known and known.version == version else Package(name, version, "")
    return replace(lock, packages=tuple(packages[name] for name in sorted(packages)), libraries=(), name="")


def _exact(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Each two installed packages of which the first requires an exact version of the second, and has it."""
    for package in inventory.packages:
        for text in package.requires:
            try:
                requirement = Requirement(text)
                other = canonicalize_name(requirement.name)
                there = inventory.versions.get(other)
                # Who installed a package without what it requires knew better.
                has = there is not None and requirement.specifier.contains(there, prereleases=True)
            except (InvalidRequirement, InvalidVersion):
                continue  # the installer accepted it
            exact = [
                specifier
                for specifier in requirement.specifier
                if specifier.operator == "==" and not specifier.version.endswith(".*")
            ]
            if exact and has and holds_here(requirement, inventory.python):
                yield package.name, str(other)


def _together(pairs: Sequence[tuple[str, str]], names: dict[str, str]) -> set[str]:
    """These packages and all that belong to them."""
    together: set[str] = set()
    more = set(names)
    while more:
        together |= more
        more = {other for pair in pairs if together & set(pair) for other in pair} - together
    return together


def _resolve(python: str, wanted: list[str], others: list[str], named: dict[str, str]) -> dict[str, str]:
    """Ask uv which versions it would install, where these others stay as they are unless one does not fit."""
    try:
        early = any(Version(version).is_prerelease for version in named.values())
    except InvalidVersion as error:
        raise LockError(str(error)) from None
    with scratch.folder("resolve") as folder:
        versions = folder / "versions.txt"
        versions.write_text("\n".join(others), encoding="utf-8")  # uv prefers what stands where it will write
        words = ["--quiet", "--no-header", "--no-annotate", "--no-build", "--output-file", str(versions)]
        words += ["--python", python, "--prerelease", "allow" if early else "if-necessary-or-explicit", "-"]
        try:
            installer.run(
                *("pip", "compile", *words),
                send="\n".join(wanted),
                indexes=indexes.of_packages(named.items()),
            )
        except LockError as error:
            raise LockError(f"{' '.join(wanted)} do not go together: {error}") from None
        return dict(line.split("==") for line in versions.read_text(encoding="utf-8").split())
