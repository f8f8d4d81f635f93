"""Make a wheel of a distribution from the files that are installed of it.

An index may forget a nightly build, and a local file may be gone: what is installed is all there is. The wheel holds
the same files, so the content of the package is the same wherever it is installed again. Scripts are left out: they
name their interpreter, and no worker runs them.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import posixpath
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlparse

from ipexperf.bench.machine.inventory import Package
from ipexperf.environments import copying
from ipexperf.errors import LockError

LEFT_OUT = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""Metadata that describes one installation, not the package."""
CHUNK = 2**20
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a wheel, so that the same files make the same wheel."""
PACKAGES = "lib/python/site-packages"
"""Where the folder of packages is in an environment, by depth."""


def repack(package: Package, folder: Path) -> Path:
    """Write the wheel of an installed distribution into a folder, whole or not at all."""
    if package.origin == "editable":
        return _build(package, folder)
    information = copying.information(package, Path(package.folder))
    stem = information.name.removesuffix(".dist-info")
    path = folder / f"{stem}-{_tag(information)}.whl"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".part", delete=False) as stream:
            temporary = Path(stream.name)
            try:
                with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
                    _write(wheel, package, information, stem)
                temporary.chmod(0o644)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise LockError(f"{package.name} {package.version} cannot be kept in {folder}: {error}") from error
    return path


def _write(wheel: zipfile.ZipFile, package: Package, information: Path, stem: str) -> None:
    rows = []
    for source, name, digest in sorted(_members(information, stem), key=lambda one: one[1]):
        found, size = _add(wheel, source, name)
        if digest and found != digest:
            raise LockError(
                f"{package.name} {package.version} cannot be kept: {source} was edited after it was installed"
            )
        rows.append((name, found, str(size)))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*rows, (f"{information.name}/RECORD", "", "")])
    wheel.writestr(zipfile.ZipInfo(f"{information.name}/RECORD", EPOCH), text.getvalue())


def _members(information: Path, stem: str) -> Iterator[tuple[Path, str, str]]:
    """Each file to keep: where it is, its name in the wheel, and its recorded digest."""
    for name, digest in copying.recorded(information / "RECORD"):
        path = PurePosixPath(name)
        if path.parts[0] == information.name and path.name in LEFT_OUT:
            continue
        if path.parts[0] != "..":
            yield information.parent / name, name, digest
            continue
        inside = PurePosixPath(posixpath.normpath(f"{PACKAGES}/{name}")).parts
        if inside[0] == "..":
            raise LockError(f"{stem} has a file outside its environment, and cannot be kept: {name}")
        kind = "headers" if inside[0] == "include" else "data"
        rest = "/".join(inside[1:] if kind == "headers" else inside)
        yield information.parent / name, f"{stem}.data/{kind}/{rest}", digest


def _add(wheel: zipfile.ZipFile, source: Path, name: str) -> tuple[str, int]:
    """Add a file piece by piece: libraries are larger than memory should be. Return its digest and size."""
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100755 if source.stat().st_mode & 0o100 else 0o100644) << 16
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as stream, wheel.open(entry, "w", force_zip64=source.stat().st_size > 2**31) as target:
        while piece := stream.read(CHUNK):
            digest.update(piece)
            size += len(piece)
            target.write(piece)
    return "sha256=" + base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode(), size


def _tag(information: Path) -> str:
    """The tag of the wheel's name, made of the tags that it was installed with."""
    try:
        text = (information / "WHEEL").read_text(encoding="utf-8")
    except OSError as error:
        raise LockError(f"{information.name} was not installed from a wheel, and cannot be kept") from error
    tags = re.findall(r"^Tag: (\S+)-(\S+)-(\S+)\s*$", text, re.MULTILINE)
    if not tags:
        raise LockError(f"{information.name} names no tag, and cannot be kept")
    return "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))


def _build(package: Package, folder: Path) -> Path:
    """The wheel of an editable checkout, as its source is now."""
    information = copying.information(package, Path(package.folder))
    try:
        url = json.loads((information / "direct_url.json").read_text(encoding="utf-8"))["url"]
    except (OSError, ValueError, KeyError) as error:
        raise LockError(f"{package.name} does not say where its source is, and cannot be kept") from error
    source = unquote(urlparse(url).path)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".") as place:
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", place]
        command = [sys.executable, "-m", "pip", "wheel", *options, source]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        wheels: Iterable[Path] = Path(place).glob("*.whl")
        wheel = next(iter(wheels), None)
        if done.returncode or wheel is None:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise LockError(f"{package.name} cannot be kept: no wheel can be built of {source}: {last}")
        return wheel.replace(folder / wheel.name)
