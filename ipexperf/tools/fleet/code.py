"""Archives for hosts, named by their content: this package with the files of `--perf-load`, and packages of locks."""

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

if TYPE_CHECKING:
    from ipexperf.environments.store import Store
    from ipexperf.lock import Lock

LOADED = "loaded"
"""The folder of the files of `--perf-load`, beside the package."""
KEPT = "kept"
"""The folder of an archive of kept packages, which is a store of them."""
SKIPPED = ("__pycache__",)


def pack(load: Iterable[str] = ()) -> tuple[str, bytes]:
    """The digest and the archive of this package and of these files. Modules must be installed on the host."""
    package = Path(ipexperf.__file__).parent
    files = {
        f"ipexperf/{path.relative_to(package).as_posix()}": path
        for path in package.rglob("*")
        if path.is_file() and not any(part in SKIPPED for part in path.parts)
    }
    for name in load:
        if name.endswith(".py"):
            files[loaded(name)] = Path(name)
    return _archive(files)


def pack_kept(lock: Lock, store: Store) -> tuple[str, bytes]:
    """The digest and the archive of the kept packages that no index has. Both are empty if there are none.

    Hosts get everything else of a lock themselves.
    """
    of_no_index = [store.folder_of(package) for package in lock.packages if package.origin and store.find(package)]
    paths = (path for folder in of_no_index for path in folder.rglob("*"))
    files = {f"{KEPT}/{path.relative_to(store.folder).as_posix()}": path for path in paths if path.is_file()}
    return _archive(files) if files else ("", b"")


def _archive(files: Mapping[str, Path]) -> tuple[str, bytes]:
    digest = hashlib.sha256()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for name, path in sorted(files.items()):
            content = path.read_bytes()
            digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
            entry = zipfile.ZipInfo(name)
            entry.external_attr = path.stat().st_mode << 16
            out.writestr(entry, content, zipfile.ZIP_DEFLATED)
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
            for entry in packed.infolist():
                Path(packed.extract(entry, fresh)).chmod(entry.external_attr >> 16)
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # else another run unpacked the same code meanwhile
                raise
    return target
