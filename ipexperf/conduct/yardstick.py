"""The yardstick beside a launch: it takes turns with the case, and what disturbs one disturbs the other alike."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ipexperf.conduct.worker import Worker
from ipexperf.errors import UsageError
from ipexperf.result import Sample

FOLDER = "yardstick"
LIST = Path(__file__).with_name("yardstick.txt")
"""The packages of the environment that is made where no other list is given, each with its version."""
WAIT = 120.0
"""Seconds that it may take to say what it is."""
STEPS = 2
"""Samples a turn, as in pairs."""


def python_of(cache: Path) -> Path:
    """The interpreter of the yardstick that a cache has, or would have."""
    return cache / FOLDER / "bin" / "python"


def find(cache: Path) -> str:
    """That interpreter, which must be there."""
    python = python_of(cache)
    if not python.exists():
        told = f"there is no yardstick in {cache}: make one with `ipexperf yardstick make`"
        raise UsageError(f"--perf-yardstick: {told}")
    return str(python.absolute())


def make(cache: Path, packages: Path, say: Callable[[str], None]) -> Path:
    """An environment with just these packages, put in place when it is whole; one that is there is replaced."""
    place, part, old = (cache / f"{FOLDER}{end}" for end in ("", ".part", ".old"))
    if not packages.is_file():
        raise UsageError(f"{packages}: there is no such list of packages")
    try:
        # Installing takes minutes: a folder that nothing can be written to is found before.
        _clear(cache, part, old)
        say(f"making an environment of {packages.name}")
        try:
            # Without pip: what installs is no part of what is pinned.
            venv.create(part, symlinks=True)
            _install(part, packages)
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
    """Makes the folder, and in it an empty one for the new environment; what an earlier try left there goes."""
    if cache.exists() and not cache.is_dir():
        raise UsageError(f"{cache} is no folder: name one for the yardstick by --cache")
    _remove(part)
    _remove(old)
    part.mkdir(parents=True)


def _replace(place: Path, part: Path, old: Path) -> None:
    """Puts the new in the place of the old, which is out of the way then, and comes back where that fails."""
    there = place.is_symlink() or place.exists()
    if there:
        place.rename(old)
    try:
        part.rename(place)
    except BaseException:
        if there:
            old.rename(place)
        raise


def _remove(path: Path) -> None:
    """Takes away what is there, if anything; of a link only the link, for what it leads to is not ours."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _install(environment: Path, packages: Path) -> None:
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "-r", str(packages)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"the packages of {packages} cannot be installed: {last}")


def ask(python: str) -> dict[str, Any]:
    """What the environment of a yardstick says that it is."""
    with Worker(python, timeout=WAIT, bare=True) as worker:
        return worker.ask("yardstick", work="arithmetic", dtype="", threads=1, placement=None)


class Stick:
    """A live yardstick. What fails of it is its own fault, not the case's."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.told: dict[str, Any] = {}
        """What it is: `content`, `packages` and `work`."""
        self.block = 1
        self._work = ""

    def begin(self, work: str, dtype: str, request: Mapping[str, Any]) -> None:
        """Asks it to become the yardstick of this work, without waiting for that."""
        self._work = f"{work} {dtype}".strip()
        self.worker.send("yardstick", work=work, dtype=dtype, **request)

    def ready(self) -> None:
        self.told = {**self.worker.receive(), "work": self._work}

    def warm(self) -> None:
        self.block = int(self.worker.ask("warm")["block"])

    def sample(self) -> list[Sample]:
        return [Sample(*raw) for raw in self.worker.ask("sample", count=STEPS, block=self.block)["samples"]]
