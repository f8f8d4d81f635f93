"""The yardstick: fixed work in a pinned environment that takes turns with cases, so that runs can be compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.conduct.worker import Worker
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Sample

FOLDER = "yardstick"
LIST = Path(__file__).with_name("yardstick.txt")
"""The default list of pinned packages."""
WAIT = 120.0
"""Time limit in seconds for its description."""
STEPS = 2
"""Samples per turn."""


def python_of(cache: Path) -> Path:
    """The path of the yardstick's interpreter in a cache, whether it exists or not."""
    return cache / FOLDER / "bin" / "python"


def find(cache: Path) -> str:
    """That interpreter. Raises UsageError if it does not exist."""
    python = python_of(cache)
    if not python.exists():
        text = f"there is no yardstick in {cache}: make one with `ipexperf yardstick make`"
        raise UsageError(f"--perf-yardstick: {text}")
    return str(python.absolute())


def pip_install(environment: Path, packages: Path) -> None:
    """Install the packages of a list into an environment that has no pip."""
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "-r", str(packages)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"the packages of {packages} cannot be installed: {last}")


def make(
    cache: Path,
    packages: Path,
    say: Callable[[str], None],
    install: Callable[[Path, Path], None] = pip_install,
) -> Path:
    """Make an environment with exactly these packages. It replaces an older one once it is complete."""
    place, part, old = (cache / f"{FOLDER}{end}" for end in ("", ".part", ".old"))
    if not packages.is_file():
        raise UsageError(f"{packages}: there is no such list of packages")
    try:
        # Installing takes minutes, so find out first whether the folder can be written to.
        _clear(cache, part, old)
        say(f"making an environment of {packages.name}")
        try:
            # Without pip, which is not pinned.
            venv.create(part, symlinks=True)
            install(part, packages)
            _replace(place, part, old)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except (OSError, ValueError) as error:  # a ValueError: the folder has a name that no PATH can hold
        raise UsageError(f"no yardstick can be made in {cache}: {error}") from error
    try:
        _remove(old)
    except OSError as error:
        say(f"the yardstick is made; what was there before is left in {old}: {error}")
    return python_of(cache)


def _clear(cache: Path, part: Path, old: Path) -> None:
    """Make the folder and an empty one inside for the new environment. Removes remains of earlier attempts."""
    if cache.exists() and not cache.is_dir():
        raise UsageError(f"{cache} is not a folder: name one with --cache")
    _remove(part)
    _remove(old)
    scratch.made(part)


def _replace(place: Path, part: Path, old: Path) -> None:
    """Move the old environment away and the new one into its place. On failure, move the old one back."""
    existed = place.is_symlink() or place.exists()
    if existed:
        place.rename(old)
    try:
        part.rename(place)
    except BaseException:
        if existed:
            old.rename(place)
        raise


def _remove(path: Path) -> None:
    """Remove a file or folder if it exists. Of a link, remove only the link."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def ask(python: str) -> dict[str, Any]:
    """Ask a yardstick's environment to describe itself."""
    with Worker(python, timeout=WAIT, bare=True) as worker:
        return worker.ask("yardstick", work="arithmetic", dtype="", threads=1, placement=None)


def describe(cache: Path) -> dict[str, Any]:
    """Ask the yardstick of a cache to describe itself. Raise UsageError if it cannot run."""
    try:
        return ask(find(cache))
    except WorkerError as error:
        raise UsageError(f"the yardstick in {cache} cannot run: {error}") from None


def content(cache: Path) -> str:
    """The digest of a yardstick's environment, by which it is named."""
    return str(describe(cache)["content"])


class Stick:
    """A live yardstick process."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.description: dict[str, Any] = {}
        """Its description: `content`, `packages` and `work`."""
        self.block = 1
        self._work = ""

    def begin(self, work: str, dtype: str, request: Mapping[str, Any]) -> None:
        """Send the request to prepare this work, without waiting for the reply."""
        self._work = f"{work} {dtype}".strip()
        self.worker.send("yardstick", work=work, dtype=dtype, **request)

    def ready(self) -> None:
        self.description = {**self.worker.receive(), "work": self._work}

    def warm(self) -> None:
        self.block = int(self.worker.ask("warm")["block"])

    def sample(self) -> list[Sample]:
        return [Sample(*raw) for raw in self.worker.ask("sample", count=STEPS, block=self.block)["samples"]]
