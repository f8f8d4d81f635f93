"""The lock of a baseline: the software that it ran on, as a text that a reviewer can read and pip can install.

A lock is data. Nothing in it is ever run: a line that is not one of ours is refused with its number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ipexperf.bench.machine import source as files
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.errors import LockError
from ipexperf.redaction import recorded

FORMAT = "ipexperf lock 1"
FOLDER = "locks"
"""The folder inside that of the baselines."""
DIGITS = 12
LIBRARIES = ("onednn", "mkl", "libc")
"""Libraries that are no packages, as a launch reports them. Not OpenMP, which varies by mode."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
_PIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)(?P<notes>( +# .*)?)")
_NOTE = re.compile(r"(content [0-9a-f]{16})?((^|, )from [^\s,]+)?")
_HEADER = re.compile(r"# (?P<key>[a-z]+) (?P<value>.+)")
_LABEL = re.compile(r"\+(cpu|xpu|cu\d+|rocm[\d.]+)$")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\S*")

Kind = Literal["python", "package", "library", "variable", "driver", "placement"]


@dataclass(frozen=True, slots=True)
class LockDifference:
    """One thing that differs between two locks. None: absent on that side."""

    kind: Kind
    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        return f"{self.name}: {self.old or 'unset'} -> {self.new or 'unset'}"


@dataclass(frozen=True, slots=True)
class Lock:
    """The software of cases: interpreter, packages, libraries, the user's variables, the commit of their source."""

    python: str
    platform: str
    packages: tuple[Package, ...] = ()
    """The packages without folders, which differ by machine, and without requirements, which an index knows."""
    libraries: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Variables of the user's shell that tune libraries."""
    placement: str = ""
    commit: str | None = field(default=None, compare=False)
    dirty: bool = field(default=False, compare=False)
    """`dirty`: the source had changes that were not committed."""
    driver: str = field(default="", compare=False)
    """The version of the card's driver. It cannot be made again: neither it, commit nor name is part of the digest."""
    name: str = field(default="", compare=False)
    """The name for people."""

    @property
    def text(self) -> str:
        """The whole file."""
        return "".join(f"{line}\n" for line in self._lines())

    @property
    def digest(self) -> str:
        """The hash of its content, which names the lock."""
        return _hash(replace(self, name="", commit=None, dirty=False, driver="").text)

    @property
    def environment(self) -> str:
        """The hash of Python, platform and packages: locks that differ only in the rest share an environment."""
        pins = [f"python {self.python}", f"platform {self.platform}", *map(_pin, self.packages)]
        return _hash("\n".join(pins))

    @property
    def versions(self) -> dict[str, str]:
        return {package.name: package.version for package in self.packages}

    @property
    def perishable(self) -> dict[str, str]:
        """The packages that may not be available later, each with the reason."""
        reasons = {package.name: _why_perishable(package) for package in self.packages}
        return {name: reason for name, reason in reasons.items() if reason}

    def _lines(self) -> Iterable[str]:
        yield f"# {FORMAT}"
        if self.name:
            yield f"# name {self.name}"
        yield f"# python {self.python}"
        yield f"# platform {self.platform}"
        if self.commit:
            yield f"# commit {self.commit}{' dirty' if self.dirty else ''}"
        if self.driver:
            yield f"# driver {self.driver}"
        if self.placement:
            yield f"# placement {self.placement}"
        for name, value in self.libraries:
            yield f"# library {name} {json.dumps(value)}"
        for name, value in self.variables:
            yield f"# variable {name} {json.dumps(recorded(name, value))}"
        yield from map(_pin, self.packages)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _pin(package: Package) -> str:
    notes = [f"content {package.content}"] if package.content else []
    notes += [f"from {package.origin}"] if package.origin else []
    return f"{package.name}=={package.version}" + (f"  # {', '.join(notes)}" if notes else "")


def _why_perishable(package: Package) -> str:
    if package.origin == "tree":
        return ""
    if package.origin == "editable":
        return "it is an editable checkout"
    if package.origin in ("file", "url"):
        return f"it was installed from a {package.origin}"
    if package.origin:
        return f"it was built from {package.origin}"
    if re.search(r"\.?(dev|a|b|rc)\d+", package.version):
        return "its index may remove this pre-release"
    if "+" in package.version and not label_of(package.version):
        return "the usual index has no versions with a local label"
    return ""


def label_of(version: str) -> str:
    """The label by which PyTorch says for which kind of device a version is, such as `xpu`, or an empty text."""
    label = _LABEL.search(version)
    return label[1] if label else ""


def make(
    inventory: Inventory,
    *,
    software: Mapping[str, Any],
    variables: Mapping[str, str],
    placement: str = "",
) -> Lock:
    """Make the lock of an interpreter's packages and of the libraries that a launch reported."""
    libraries = ((name, software.get(name)) for name in LIBRARIES)
    return Lock(
        python=inventory.python,
        platform=inventory.platform,
        packages=tuple(replace(package, folder="", requires=()) for package in inventory.packages),
        libraries=tuple((name, str(value)) for name, value in libraries if value),
        variables=tuple(sorted(variables.items())),
        placement=placement,
    )


def parse(text: str, source: str) -> Lock:
    """Parse a lock. Raise LockError with the number of any other line: options, addresses and markers are refused."""
    values: dict[str, str] = {}
    pairs: dict[str, list[tuple[str, str]]] = {"library": [], "variable": []}
    packages: list[Package] = []
    lines = text.splitlines()
    if not lines or lines[0] != f"# {FORMAT}":
        raise LockError(f"{source} is not a lock: its first line must be '# {FORMAT}'")
    for number, line in enumerate(lines[1:], 2):
        line_name = f"{source}, line {number}"
        header = _HEADER.fullmatch(line)
        if header is None:
            packages.append(_package(line, line_name))
            continue
        key, value = header["key"], header["value"]
        if key in pairs:
            pairs[key].append(_pair(value, line_name))
        elif key in ("name", "python", "platform", "commit", "driver", "placement") and key not in values:
            values[key] = value
        else:
            raise LockError(f"{line_name}: '{key}' is unknown, or there twice")
    return _checked(values, pairs, packages, source)


def _checked(
    values: Mapping[str, str], pairs: Mapping[str, list[tuple[str, str]]], packages: list[Package], source: str
) -> Lock:
    missing = [key for key in ("python", "platform") if key not in values]
    if missing:
        raise LockError(f"{source} names no {missing[0]}: it is damaged, accept the baseline anew")
    if not _VERSION.fullmatch(values["python"]):
        raise LockError(f"{source}: '{values['python']}' is no version of Python")
    if "name" in values and not NAME.fullmatch(values["name"]):
        raise LockError(f"{source}: '{values['name']}' is no name: expected letters, digits, '.', '_', '-'")
    names = [package.name for package in packages]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise LockError(f"{source} has {twice[0]} twice")
    commit, _, dirty = values.get("commit", "").partition(" ")
    if dirty not in ("", "dirty") or not re.fullmatch(r"[0-9a-f]*", commit):
        raise LockError(f"{source}: '{values['commit']}' is no commit")
    return Lock(
        python=values["python"],
        platform=values["platform"],
        packages=tuple(packages),
        libraries=tuple(pairs["library"]),
        variables=tuple(pairs["variable"]),
        placement=values.get("placement", ""),
        commit=commit or None,
        dirty=bool(dirty),
        driver=values.get("driver", ""),
        name=values.get("name", ""),
    )


def _package(line: str, place: str) -> Package:
    match = _PIN.fullmatch(line)
    if match is None:
        raise LockError(f"{place}: expected NAME==VERSION, got '{line[:80]}': options and addresses are refused")
    notes = match["notes"].strip().removeprefix("# ")
    if not _NOTE.fullmatch(notes):
        raise LockError(f"{place}: expected '# content DIGEST, from ORIGIN' after the version, got '{notes[:80]}'")
    content = re.search(r"content ([0-9a-f]+)", notes)
    origin = re.search(r"from (\S+)", notes)
    return Package(
        match["name"], match["version"], content.group(1) if content else "", origin=origin.group(1) if origin else ""
    )


def _pair(text: str, place: str) -> tuple[str, str]:
    name, _, encoded = text.partition(" ")
    try:
        value = json.loads(encoded)
    except ValueError:
        value = None
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise LockError(f"{place}: expected NAME \"VALUE\", got '{text[:80]}'")
    return name, value


def differences(old: Lock, new: Lock) -> list[LockDifference]:
    """Return the differences, packages first. Packages of one version may differ in their content."""
    rows: list[LockDifference] = []
    before, after = ({package.name: package for package in side.packages} for side in (old, new))
    for name in sorted({*before, *after}):
        sides = [_version_text(side.get(name), other.get(name)) for side, other in ((before, after), (after, before))]
        if sides[0] != sides[1]:
            rows.append(LockDifference("package", name, *sides))
    if old.python != new.python:
        rows.append(LockDifference("python", "python", old.python, new.python))
    variables = [[(name, recorded(name, value)) for name, value in side.variables] for side in (old, new)]
    for kind, pairs in (("variable", variables), ("library", (old.libraries, new.libraries))):
        left, right = map(dict, pairs)
        rows += [
            LockDifference(kind, name, left.get(name), right.get(name))  # type: ignore[arg-type]
            for name in sorted({*left, *right})
            if left.get(name) != right.get(name)
        ]
    if old.driver and new.driver and old.driver != new.driver:
        rows.append(LockDifference("driver", "driver", old.driver, new.driver))
    if old.placement != new.placement:
        rows.append(LockDifference("placement", "placement", old.placement or None, new.placement or None))
    return rows


def _version_text(package: Package | None, other: Package | None) -> str | None:
    """Return the version of a package, with its digest if the other side has the version with other content."""
    if package is None:
        return None
    equal_versions = other is not None and other.version == package.version
    differs = (
        equal_versions and other is not None and package.content and other.content and other.content != package.content
    )
    return f"{package.version} ({package.content})" if differs else package.version


def with_package(lock: Lock, package: Package) -> Lock:
    """Return the lock with this package in place of the version that it has."""
    packages = {present.name: present for present in lock.packages} | {package.name: package}
    return replace(lock, packages=tuple(packages[name] for name in sorted(packages)), libraries=(), name="")


def same_software(old: Lock, new: Lock) -> bool:
    """Return True if two locks have the same packages and variables, and the same series of Python."""
    if series(old.python) != series(new.python):
        return False
    return not any(difference.kind in ("package", "variable") for difference in differences(old, new))


def series(version: str) -> tuple[str, ...]:
    """Return the part of Python's version that packages are built for. An environment may have any patch of it."""
    return tuple(version.split(".")[:2])


def path_of(baselines: Path, digest: str) -> Path:
    """Return the path of a lock in a folder of baselines. Raise UsageError for a digest that leads elsewhere."""
    return files.inside(baselines, f"{FOLDER}/{digest}.txt")


def read(path: Path) -> Lock:
    """Read a lock's file. Raise LockError if it is not there or damaged."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LockError(f"there is no lock {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LockError(f"{path} cannot be read as a lock: {error}") from error
    return parse(text, str(path))


def every(baselines: Path) -> list[Lock]:
    """Read all locks of a folder of baselines."""
    return [read(path_of(baselines, path.stem)) for path in sorted((baselines / FOLDER).glob("*.txt"))]


def find(baselines: Path, name: str) -> Lock:
    """Return the accepted lock of this name or beginning of a digest. Raise LockError if none or several match."""
    accepted = every(baselines)
    matches = [lock for lock in accepted if name and lock.name == name] or [
        lock for lock in accepted if lock.digest.startswith(name)
    ]
    if len(matches) != 1:
        names = ", ".join(sorted(lock.name or lock.digest for lock in accepted)) or "none"
        many = "several locks" if matches else "no lock"
        raise LockError(f"there {'are' if matches else 'is'} {many} '{name}' in {baselines / FOLDER} (there: {names})")
    return matches[0]
