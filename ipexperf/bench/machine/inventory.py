"""The packages that this interpreter can import, and a digest of what is installed of each.

`PYTHON boot.py inventory` lists them for any interpreter. It imports no package, not even torch.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from email import message_from_string
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from ipexperf.bench.machine import source
from ipexperf.bench.machine.facts import PACKAGES
from ipexperf.redaction import redacted

OURS = "ipexperf"
INSTALLERS = frozenset({"pip", "uv"})
CONTROLLER_EXTRAS = frozenset({"", "dev", "fleet", "postgresql"})
"""Extras of ipexperf whose packages serve the controller, not the workers. The empty name: its plain requirements."""
DIGITS = 16
_SCRIPT = re.compile(r"\"?(\.\./)+bin/")
"""A row of RECORD of a script, which names its interpreter."""


@dataclass(frozen=True, slots=True)
class Package:
    """An installed distribution."""

    name: str
    """The normalised name: lower case, with `-` for each run of `-`, `_` and `.`."""
    version: str
    content: str
    """The digest of the files that its installer recorded, without scripts. Empty if it recorded none."""
    folder: str = ""
    """The folder of packages that holds it."""
    origin: str = ""
    """Empty for a package of an index; else `file`, `editable`, `url`, or `git+URL@COMMIT`; `tree` for an editable
    checkout of the user's own tree, whose files are the source of a case."""
    requires: tuple[str, ...] = ()
    """Its `Requires-Dist` lines."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """An interpreter and the packages that a worker under it may import."""

    python: str
    platform: str
    packages: tuple[Package, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def versions(self) -> dict[str, str]:
        return {package.name: package.version for package in self.packages}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Inventory:
        packages = (Package(**{**package, "requires": tuple(package["requires"])}) for package in document["packages"])
        return cls(document["python"], document["platform"], tuple(packages))


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def gather() -> Inventory:
    """Describe this interpreter. Cached: its packages do not change while a worker runs."""
    installed: dict[str, Package] = {}
    # Not the folders of packages inside packages: setuptools puts that of its own copies on the path.
    inside = tuple(f"{sysconfig.get_path(kind)}{os.sep}" for kind in ("purelib", "platlib"))
    for folder in dict.fromkeys(entry for entry in sys.path if not entry.startswith(inside)):
        for package in _packages(Path(folder or ".")):
            installed.setdefault(package.name, package)  # the first on the path is the one that is imported
    kind = f"{platform.python_implementation()} {sys.platform} {platform.machine()}"
    packages = sorted(_used(installed), key=lambda package: package.name)
    return Inventory(platform.python_version(), kind, tuple(packages))


def _packages(folder: Path) -> Iterable[Package]:
    for information in sorted(folder.glob("*.dist-info")):
        if not (information / "METADATA").is_file():
            continue  # the remains of an uninstalled package
        text = (information / "METADATA").read_text(encoding="utf-8")
        headers = message_from_string(text.partition("\n\n")[0])  # without the page of the package, which may be long
        name, version = headers["Name"], headers["Version"]
        if name and version:
            content, origin = content_of(information / "RECORD"), _origin(information)
            lines = headers.get_all("Requires-Dist", ())
            requires = tuple(redacted(line) if "://" in line else line for line in lines)
            yield Package(normalised(name), version, content, str(folder), origin, requires)


def content_of(record: Path) -> str:
    """Return the digest of an installation: of those rows of RECORD that are the same in every installation."""
    try:
        rows = record.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    # Searches for a text are quicker than one for a pattern: torch and its companions have 30,000 rows.
    shared = (row for row in rows if ".dist-info/" not in row and "__pycache__" not in row)
    shared = (row for row in shared if not (row.startswith(("../", '"../')) and _SCRIPT.match(row)))
    return hashlib.sha256("\n".join(sorted(shared)).encode()).hexdigest()[:DIGITS]


def _origin(information: Path) -> str:
    """Return where a package came from, or an empty text if it came from an index (PEP 610)."""
    try:
        document = json.loads((information / "direct_url.json").read_text(encoding="utf-8"))
        url = redacted(str(document["url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    if "dir_info" in document:
        if not document["dir_info"].get("editable"):
            return "file"
        folder = Path(unquote(urlparse(url).path)).resolve()
        return "tree" if folder.is_relative_to(source.own_tree()) else "editable"
    if "vcs_info" in document:
        return f"{document['vcs_info'].get('vcs')}+{url}@{document['vcs_info'].get('commit_id')}"
    return "file" if url.startswith("file:") else "url"


def _used(installed: Mapping[str, Package]) -> list[Package]:
    """Return the packages that a worker may import: all except installers and what only the controller needs.

    An upgrade of a linter must not look like a change of the measured software.
    """
    ipexperf = installed.get(OURS)
    if ipexperf is None:
        return [package for name, package in installed.items() if name not in INSTALLERS]
    requirements = _requirements(ipexperf)
    of_controller = {name for name, extra in requirements if extra in CONTROLLER_EXTRAS}
    of_workers = {name for name, extra in requirements if extra not in CONTROLLER_EXTRAS}
    required = {name for package in installed.values() for name, extra in _requirements(package) if not extra}
    roots = {normalised(name) for name in PACKAGES} | of_workers
    roots |= set(installed) - required - of_controller - of_workers - INSTALLERS - {OURS}
    reached: set[str] = set()
    waiting = sorted(roots & set(installed))
    while waiting:
        name = waiting.pop()
        if name not in reached and name != OURS and name not in INSTALLERS:
            reached.add(name)
            waiting += [needed for needed, extra in _requirements(installed[name]) if needed in installed and not extra]
    return [installed[name] for name in sorted(reached)]


def _requirements(package: Package) -> list[tuple[str, str]]:
    """Return each required package with the extra that requires it, or an empty text."""
    requirements = []
    for line in package.requires:
        name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if name:
            requirements.append((normalised(name.group()), extra.group(1) if extra else ""))
    return requirements


def main() -> None:
    """Write the inventory as JSON to a separate descriptor, because this interpreter may print anything."""
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as reply:
        json.dump(gather().to_json(), reply)


if __name__ == "__main__":
    main()
