"""Archives for hosts, named by their content: this package with the files of `--perf-load`, and wheels of locks."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import ipexperf
from ipexperf import scratch
from ipexperf.environments import store

if TYPE_CHECKING:
    from ipexperf.lock import Lock

LOADED = "loaded"
"""The folder of the files of `--perf-load`, beside the package."""
WHEELS = "wheels"
"""The folder of an archive of wheels, which is a store of them."""
SKIPPED = ("__pycache__",)


def pack(load: Iterable[str] = ()) -> tuple[str, bytes]:
    """The digest and the archive of this package and of these files. Modules must be installed on the host."""
    package = Path(ipexperf.__file__).parent
    files = {
        f"ipexperf/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and not any(part in SKIPPED for part in path.parts)
    }
    for name in load:
        if name.endswith(".py"):
            files[loaded(name)] = Path(name).read_bytes()
    return _archive(files)


def pack_wheels(wheels: Iterable[Path]) -> tuple[str, bytes]:
    """The digest and the archive of these wheels of a store. Both are empty if there are none."""
    paths = (path for wheel in wheels for path in (wheel, store.digest_file(wheel)))
    files = {f"{WHEELS}/{path.parent.name}/{path.name}": path.read_bytes() for path in paths}
    return _archive(files) if files else ("", b"")


def wheels_of(lock: Lock, stored: store.Store) -> list[Path]:
    """The wheels of packages that no index has. Hosts get everything else of a lock themselves."""
    of_no_index = [package for package in lock.packages if package.origin]
    return [path for package in of_no_index if (path := stored.find(package, check=True)) is not None]


def _archive(files: Mapping[str, bytes]) -> tuple[str, bytes]:
    digest = hashlib.sha256()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for name in sorted(files):
            digest.update(f"{len(name)} {name} {len(files[name])} ".encode() + files[name])
            out.writestr(name, files[name])
    return digest.hexdigest()[:16], archive.getvalue()


def loaded(name: str) -> str:
    """The path of a file of `--perf-load` inside the archive: files of one name stay apart."""
    folder = hashlib.sha256(os.fsencode(Path(name).resolve())).hexdigest()[:8]
    return f"{LOADED}/{folder}/{Path(name).name}"


def unpack(archive: bytes, digest: str, folder: Path) -> Path:
    """Unpack the code below this folder of the host, unless it is there. Return its folder."""
    target = folder / digest
    if target.is_dir():
        return target
    scratch.made(folder)
    with scratch.folder("unpacking", folder) as fresh:
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            packed.extractall(fresh)
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # else another run unpacked the same code meanwhile
                raise
    return target
