"""Packages as they were installed, as wheels in a folder, so that an environment can be made again.

    <store>/<content>/<name>==<version>/    the wheel of a package

An index may drop a nightly build, and a local file may be gone.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from ipexperf import scratch
from ipexperf.bench.machine.inventory import Package, normalised
from ipexperf.environments import installer
from ipexperf.errors import LockError

_SKIPPED = re.compile(r"^/|^(\.\./)+bin/|__pycache__|^[^/]+\.dist-info/(RECORD|INSTALLER|REQUESTED|uv_cache\.json)$")
"""Files of a RECORD that no wheel has: scripts, which name their interpreter, and what the installer wrote."""


class Store:
    """A folder of wheels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, package: Package, say: Callable[[str], None]) -> Path:
        """Keep an installed package, unless the store has it already. Return its wheel.

        The content of an editable package tells where its checkout is, not what is in it. So it is built each time, and
        replaces what was kept. Raise LockError if a file was edited since it was installed, or if the checkout cannot
        be built.
        """
        if not package.content:
            raise _refusal(package, "its installer recorded no files of it")
        if package.origin != "editable" and (kept := self.find(package)):
            return kept
        say(f"keeping {package.name} {package.version}")
        try:
            with scratch.folder("wheel", scratch.made(self.folder)) as part:
                wheel = _build(package, part) if package.origin == "editable" else _pack(package, part)
                return wheel.replace(scratch.made(self.folder_of(package)) / wheel.name)
        except OSError as error:
            raise LockError(f"{package.name} {package.version} cannot be kept in {self.folder}: {error}") from error

    def find(self, package: Package) -> Path | None:
        """Return the wheel of the package with this name, version and content, or None."""
        return next(self.folder_of(package).glob("*.whl"), None)

    def folder_of(self, package: Package) -> Path:
        """Return where a package is, if it is kept."""
        # Packages that consist only of requirements have equal contents, so name and version must differ too.
        return self.folder / package.content / f"{package.name}=={package.version}"


def _refusal(package: Package, why: str) -> LockError:
    return LockError(f"{package.name} {package.version} cannot be kept: {why}")


def _information(package: Package) -> Path:
    """Return the folder of a package's metadata. Raise LockError if the package is gone."""
    for path in Path(package.folder).glob("*.dist-info"):
        name = path.name.removesuffix(".dist-info").rpartition("-")[0]
        # An uninstallation may leave a folder without them.
        if normalised(name) == package.name and (path / "METADATA").is_file() and (path / "RECORD").is_file():
            return path
    raise LockError(f"{package.name} {package.version} is no longer in {package.folder}")


def _pack(package: Package, folder: Path) -> Path:
    """Make a wheel of the files that an installer recorded. Raise LockError if one was edited.

    It is not compressed. `direct_url.json` comes along, and tells again where the package came from.
    """
    information = _information(package)
    stem, site = information.name.removesuffix(".dist-info"), information.parent
    wheel = folder / f"{stem}-py3-none-any.whl"
    rows = io.StringIO()
    record = csv.writer(rows, lineterminator="\n")
    with zipfile.ZipFile(wheel, "w", strict_timestamps=False) as archive:
        for name, *facts in csv.reader((information / "RECORD").read_text(encoding="utf-8").splitlines()):
            if _SKIPPED.search(name):
                continue
            # Metadata is not checked: a vendor's wheel may record a wrong digest of it, as Intel's do.
            if not _is_as_recorded(site / name, "" if ".dist-info/" in name else facts[0]):
                raise _refusal(package, f"{site / name} is not what was installed")
            inside = os.path.normpath(f"lib/{site.parent.name}/{site.name}/{name}")
            inside = f"{stem}.data/data/{inside}" if name.startswith("../") else name
            archive.write(site / name, inside)
            record.writerow([inside, *facts])
        record.writerow([f"{stem}.dist-info/RECORD", "", ""])
        archive.writestr(f"{stem}.dist-info/RECORD", rows.getvalue())
    return wheel


def _is_as_recorded(path: Path, digest: str) -> bool:
    """Return True if a file is there and has this digest, if any: `sha256=` and base64 without padding."""
    kind, _, encoded = digest.partition("=")
    try:
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, kind).digest() if digest else b""
    except OSError:
        return False
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode() == encoded.rstrip("=")


def _build(package: Package, folder: Path) -> Path:
    """Build a wheel of an editable checkout as it is now. Download nothing."""
    metadata = _information(package)
    url = json.loads((metadata / "direct_url.json").read_text(encoding="utf-8"))["url"]
    source = Path(unquote(urlparse(url).path))
    if not source.is_dir():
        raise _refusal(package, f"its source folder {source} does not exist")
    python = metadata.parent.absolute() / "../../../bin/python"
    # Otherwise setuptools builds in the checkout, with modules that an earlier build left there.
    extra = folder / "setup.cfg"
    options = f"[build]\nbuild_base = {folder / 'build'}\n[egg_info]\negg_base = {folder}\n"
    extra.write_text(options, encoding="utf-8")
    words = ["build", "--wheel", "--no-build-isolation", "--offline", "--out-dir", str(folder), str(source)]
    words += ["--python", str(python if python.exists() else sys.executable)]
    try:
        installer.run(*words, variables={"DIST_EXTRA_CONFIG": str(extra)})
    except LockError as error:
        raise _refusal(package, f"{source} cannot be built: {error}") from None
    [wheel] = folder.glob("*.whl")
    version = parse_wheel_filename(wheel.name)[1]
    if version != Version(package.version):
        raise _refusal(package, f"{source} is version {version} by now")
    return wheel
