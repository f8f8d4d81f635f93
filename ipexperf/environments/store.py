"""Packages as they were installed, in a folder, named by content, so that an environment can be made again.

    <store>/<content>/<name>==<version>/    the files of a package; the time of this folder: last use
    <store>/.part/                          what is being written
    <store>/.lock                           locked by the process that writes

An index may drop a nightly build, and a local file may be gone. One process writes at a time. It first clears `.part/`,
which holds only remains of killed processes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import unquote, urlparse

from ipexperf import scratch
from ipexperf.bench.machine.inventory import Package
from ipexperf.environments import copying
from ipexperf.errors import LockError

GB = 10**9
LIMIT = 20 * GB
"""Bytes that a store may hold."""
BUILD_SECONDS = 3600.0
"""Time limit for building an editable checkout."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A package in the store."""

    name: str
    version: str
    content: str
    """The digest of the package as it was installed, by which locks name it."""
    bytes: int
    folder: Path


class Store:
    """A folder of packages that holds at most `limit` bytes."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self._limit = limit

    def add(self, package: Package, say: Callable[[str], None]) -> None:
        """Keep an installed package. Do nothing if the store has it already.

        The content of an editable package tells where its checkout is, not what is in it. So it is built each time, and
        replaces what was kept. Raise LockError if a file was edited since it was installed, if the checkout cannot be
        built, or if the store has no room.
        """
        if not package.content:
            raise _refusal(package, "its installer recorded no files of it")
        if package.origin != "editable" and self.find(package):
            return
        try:
            with self._writing(say) as part:
                say(f"keeping {package.name} {package.version}")
                if package.origin == "editable":
                    _build(package, part)
                else:
                    _copy(package, part)
                self._move_in(package, part, say)
        except OSError as error:
            raise LockError(f"{package.name} {package.version} cannot be kept in {self.folder}: {error}") from error

    def find(self, package: Package) -> Package | None:
        """Return the package with this name, version and content as the store has it, or None. Counts as a use."""
        folder = self.folder_of(package)
        if not folder.is_dir():
            return None
        with suppress(OSError):  # a shared store may be read-only: the use is not recorded then
            os.utime(folder)
        return replace(package, folder=str(copying.packages_folder(folder)))

    def folder_of(self, package: Package) -> Path:
        """Return where a package is, if it is kept."""
        # Packages that consist only of requirements have equal contents, so name and version must differ too.
        return self.folder / package.content / f"{package.name}=={package.version}"

    def every(self) -> list[Kept]:
        """Return all packages, the latest used first."""
        kept = []
        for folder in sorted(self.folder.glob("[!.]*/*==*"), key=lambda folder: -folder.stat().st_mtime):
            name, _, version = folder.name.partition("==")
            kept.append(Kept(name, version, folder.parent.name, copying.size(folder), folder))
        return kept

    def size(self) -> int:
        """Return the bytes of all packages."""
        return sum(one.bytes for one in self.every())

    @contextmanager
    def _writing(self, say: Callable[[str], None]) -> Iterator[Path]:
        """Yield an empty folder for new files. Only one process at a time is in the block."""
        scratch.made(self.folder)
        part = self.folder / ".part"
        with one_at_a_time(self.folder / ".lock", say, f"waiting for another process that writes to {self.folder}"):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            try:
                yield part
            finally:
                shutil.rmtree(part, ignore_errors=True)

    def _move_in(self, package: Package, new: Path, say: Callable[[str], None]) -> None:
        """Move a new package into its place. Raise LockError if the store has no room for it."""
        folder = self.folder_of(package)
        if folder.exists() and _record(folder) != _record(new):
            say(f"{package.name} {package.version}: its source has changed since it was kept, so it is replaced")
        size, used = copying.size(new), self.size() - copying.size(folder)
        if used + size > self._limit:
            raise LockError(
                f"{package.name} {package.version} takes {_gb(size)}, and {self.folder} holds {_gb(used)} of at most "
                f"{_gb(self._limit)}: remove packages from there that no lock needs"
            )
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        new.rename(folder)


def _refusal(package: Package, why: str) -> LockError:
    return LockError(f"{package.name} {package.version} cannot be kept: {why}")


def _record(folder: Path) -> str:
    [record] = copying.packages_folder(folder).glob("*.dist-info/RECORD")
    return record.read_text(encoding="utf-8")


def _copy(package: Package, folder: Path) -> None:
    """Copy the files of an installed package into an empty folder. Raise LockError if one was edited."""
    if edited := copying.edited(copying.information(package) / "RECORD"):
        raise _refusal(package, f"{Path(package.folder) / edited[0]} is not what was installed")
    series = re.search(r"python3\.\d+", package.folder)
    python = series[0] if series else f"python3.{sys.version_info[1]}"
    copying.install_from(package, folder / "lib" / python / "site-packages", link=False)


def _build(package: Package, folder: Path) -> None:
    """Build an editable checkout as it is now, and install it into an empty folder. Download nothing."""
    metadata = copying.information(package)
    url = json.loads((metadata / "direct_url.json").read_text(encoding="utf-8"))["url"]
    source = Path(unquote(urlparse(url).path))
    if not source.is_dir():
        raise _refusal(package, f"its source folder {source} does not exist")
    python = metadata.parent / "../../../bin/python"
    words = ["--quiet", "--no-warn-script-location", "--no-index", "--no-deps", "--no-build-isolation"]
    words += ["--prefix", str(folder.absolute()), str(source)]
    with scratch.folder("build") as place:
        # Otherwise setuptools builds in the checkout, with modules that an earlier build left there.
        extra = place / "setup.cfg"
        options = f"[build]\nbuild_base = {place / 'build'}\n[egg_info]\negg_base = {place}\n"
        extra.write_text(options, encoding="utf-8")
        try:
            completed = pip_install(
                str(python if python.exists() else sys.executable),
                words,
                BUILD_SECONDS,
                {"DIST_EXTRA_CONFIG": str(extra), **os.environ},
            )
        except subprocess.TimeoutExpired:
            raise _refusal(package, f"building {source} took more than {BUILD_SECONDS:.0f} s") from None
    if completed.returncode:
        raise _refusal(package, f"{source} cannot be built: {reason(completed.stderr)}")
    [built] = distributions(path=[str(copying.packages_folder(folder))])
    if built.version != package.version:
        raise _refusal(package, f"{source} is version {built.version} by now")


@contextmanager
def one_at_a_time(lock: Path, say: Callable[[str], None], waiting: str) -> Iterator[None]:
    """Hold a lock, which ends with its process. If another process holds it, say that we are waiting, and wait."""
    import filelock

    guard = filelock.FileLock(lock)
    try:
        guard.acquire(timeout=0)
    except filelock.Timeout:
        say(waiting)
        guard.acquire()
    try:
        yield
    finally:
        guard.release()


def _gb(size: int) -> str:
    return f"{size / GB:.2f} GB"


def pip_install(
    python: str, words: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Let the pip of this interpreter install for that one, as if nothing were there. Raises TimeoutExpired."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install"),
            *("--disable-pip-version-check", "--ignore-installed", *words),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds,
        env=variables,
    )


def reason(text: str) -> str:
    """Return the line of an installer's or an interpreter's messages that tells the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Unavailable|Invalid)\b.*:", line)]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (causes or errors or lines or ["no message"])[-1].removeprefix("ERROR: ")
