"""Make the environment of a lock, find it again, and check it by what its own interpreter says.

An environment lies in `<cache>/environments/<name by content>/`. It is built beside its final place and moved there
when it is complete and checked, so nobody uses an incomplete one. Each package comes from the first of these that has
it: another environment of this machine, the store, an index. From an index only wheels are installed, because
building an sdist runs its code.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from ipexperf import scratch
from ipexperf.bench.machine import inventory as own_inventory
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.conduct import lease, process
from ipexperf.conduct.process import variables_for
from ipexperf.environments import copying, indexes
from ipexperf.environments.store import Store, one_at_a_time, reason
from ipexperf.errors import LockError
from ipexperf.lock import Lock, series

FOLDER = "environments"
STORE = "store"
MADE = "made.json"
LOCK = "lock.txt"
WAIT = 60.0
"""Time limit in seconds for an interpreter to list its packages."""
INSTALL_HOURS = 2
"""Time limit for an installation, which may download many GB."""
SPEAK_SECONDS = 30.0
"""Longest silence during an installation."""
Say = Callable[[str], None]
Installed = Mapping[tuple[str, str, str], tuple[Package, bool]]
"""Packages by name, version and content, each with True if its files may be linked."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment of a lock."""

    folder: Path
    seconds: float
    made_at: str
    copied: int
    """The number of packages that came from environments of this machine."""
    stored: int
    """The number that came from the store."""
    downloaded: int
    """The number that came from an index."""

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def lock(self) -> Path:
        return self.folder / LOCK


def take_inventory(python: str | None = None) -> Inventory:
    """Ask an interpreter which packages it has. None: a new process of this one, since packages may have changed."""
    interpreter = python or sys.executable
    why = f"{shlex.quote(interpreter)} cannot list its packages"
    try:
        reply, errors = process.ask(interpreter, "inventory", variables=variables_for(python), seconds=WAIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LockError(f"{why}: {error}") from error
    if not reply:
        raise LockError(f"{why}: {reason(errors)}")
    return Inventory.from_json(json.loads(reply))


@functools.cache
def inventory_of(environment: Environment) -> Inventory:
    """Return the inventory of one of our environments. It never changes, so we ask its interpreter only once."""
    return take_inventory(environment.python)


def mismatches(lock: Lock, inventory: Inventory) -> list[str]:
    """Return the differences of an interpreter's packages from a lock, one line each. Python's patch may differ."""
    lines = []
    if series(lock.python) != series(inventory.python):
        lines.append(f"python: {lock.python} -> {inventory.python}")
    if lock.platform != inventory.platform:
        lines.append(f"platform: {lock.platform} -> {inventory.platform}")
    present = {package.name: package for package in inventory.packages}
    for package in lock.packages:
        installed = present.pop(package.name, None)
        if installed is None:
            lines.append(f"{package.name}: {package.version} -> not installed")
        elif installed.version != package.version:
            lines.append(f"{package.name}: {package.version} -> {installed.version}")
        elif package.content and installed.content != package.content and package.origin != "editable":
            lines.append(f"{package.name} {package.version}: other content than the lock says")
    return [*lines, *(f"{name}: not in the lock -> {package.version}" for name, package in sorted(present.items()))]


def folder_of(cache: Path, lock: Lock) -> Path:
    return cache / FOLDER / lock.environment


def store_of(cache: Path) -> Store:
    return Store(cache / STORE)


def find(cache: Path, lock: Lock) -> Environment | None:
    """Return the environment of a lock, or None if it was never made. Raise LockError if it was changed since."""
    environment = read(folder_of(cache, lock))
    if environment is None:
        return None
    if wrong := mismatches(lock, take_inventory(environment.python)):
        raise LockError(
            f"{environment.folder} is no longer what its lock says ({'; '.join(wrong[:3])}): remove that folder, "
            "and it is made again"
        )
    return environment


def read(folder: Path) -> Environment | None:
    """Return the environment in a folder, or None. Its interpreter is not asked."""
    try:
        document = json.loads((folder / MADE).read_text(encoding="utf-8"))
        environment = Environment(folder=folder, **document)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return environment if os.access(environment.python, os.X_OK) else None


def every(cache: Path) -> list[Environment]:
    """Return all complete environments, the latest made first."""
    folders = (cache / FOLDER).glob("*")
    environments = [found for folder in folders if folder.suffix != ".part" and (found := read(folder)) is not None]
    return sorted(environments, key=lambda environment: -(environment.folder / MADE).stat().st_mtime)


def make(
    cache: Path,
    lock: Lock,
    say: Say,
    also: Iterable[str] = (),
    stores: Sequence[Store] = (),
    *,
    leasing: str = lease.WAIT,
) -> Environment:
    """Find the environment of a lock, or make it.

    `also`: more interpreters whose packages may be copied. `stores`: more stores.
    `leasing`: as `--perf-lease`. Making one needs the CPU to itself.
    """
    cache = cache.absolute()
    if environment := find(cache, lock):
        return environment
    python = base_python(lock)
    place = folder_of(cache, lock)
    waiting = f"another process is making the environment {place.name}: waiting for it"
    try:
        scratch.made(place.parent)
        # In this order, or else two processes could wait for each other: the lease first, then the environment.
        with lease.for_work(leasing, say), one_at_a_time(Path(f"{place}.lock"), say, waiting):
            if environment := find(cache, lock):  # another process made it meanwhile
                return environment
            return _build(place, lock, python, [store_of(cache), *stores], _installed_here(cache, also), say)
    except OSError as error:
        raise LockError(f"no environment can be made in {place.parent}: {error.strerror or error}") from error


def check_possible(lock: Lock) -> None:
    """Raise LockError if this machine cannot have the environment, whatever is installed or downloaded."""
    kind = own_inventory.gather().platform
    if lock.platform != kind:
        raise LockError(f"the lock is of {lock.platform}, and this machine is {kind}")
    base_python(lock)
    for name, value in lock.variables:
        if name == "LD_PRELOAD":
            missing = [path for path in value.replace(":", " ").split() if "/" in path and not Path(path).exists()]
            if missing:
                raise LockError(f"the lock preloads {missing[0]}, which is not on this machine")


def base_python(lock: Lock) -> str:
    """Return an interpreter of the lock's version. Raise LockError if this machine has none."""
    version = ".".join(series(lock.python))
    this_python = getattr(sys, "_base_executable", sys.executable)
    if series(lock.python) == tuple(str(part) for part in sys.version_info[:2]):
        return str(this_python)
    if path := shutil.which(f"python{version}"):
        return path
    if uv := shutil.which("uv"):
        completed = subprocess.run([uv, "python", "find", version], capture_output=True, text=True, check=False)
        if completed.returncode == 0 and completed.stdout.strip():
            return completed.stdout.strip()
    raise LockError(f"the lock needs Python {version}, and there is no python{version} in PATH: install it")


def _installed_here(cache: Path, also: Iterable[str]) -> Installed:
    """Return the packages on this machine. Those of our environments, which never change, come first."""
    inventories = []
    for environment in every(cache):
        with suppress(LockError):  # skip a damaged environment: `find` reports it when a lock needs it
            inventories.append((inventory_of(environment), True))
    inventories += [(take_inventory(python), False) for python in (None, *also)]
    packages: dict[tuple[str, str, str], tuple[Package, bool]] = {}
    for inventory, link in inventories:
        for package in inventory.packages:
            if package.content and package.origin != "editable":
                packages.setdefault((package.name, package.version, package.content), (package, link))
    return packages


def _build(
    place: Path, lock: Lock, python: str, stores: Sequence[Store], installed: Installed, say: Say
) -> Environment:
    began = time.monotonic()
    part = place.with_name(f"{place.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        _create(part, python)
        counts = _fill(part, lock, stores, installed, say)
        wrong = mismatches(lock, take_inventory(str(part / "bin" / "python")))
        if wrong:
            raise LockError(f"what was installed is not what the lock says: {'; '.join(wrong[:3])}")
        _compile(part)
        (part / LOCK).write_text(lock.text, encoding="utf-8")
        made_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        facts = {"seconds": round(time.monotonic() - began, 1), "made_at": made_at, **counts}
        (part / MADE).write_text(json.dumps(facts), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    environment = read(place)
    assert environment is not None  # noqa: S101 - it was written just now
    say(f"environment {place.name}: {_how(environment)}, in {environment.seconds:.0f} s")
    return environment


def _how(environment: Environment) -> str:
    parts = (
        (environment.copied, "copied"),
        (environment.stored, "from the store"),
        (environment.downloaded, "downloaded"),
    )
    return ", ".join(f"{count} packages {word}" for count, word in parts if count) or "no packages"


def _create(part: Path, python: str) -> None:
    """Create an empty environment, without pip, because no lock pins pip."""
    completed = subprocess.run(
        [python, "-m", "venv", "--without-pip", "--symlinks", str(part)], capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise LockError(f"{python} cannot make an environment: {reason(completed.stderr)}")


def _fill(part: Path, lock: Lock, stores: Sequence[Store], installed: Installed, say: Say) -> dict[str, int]:
    """Install every package of the lock. Return the number that came from each source."""
    copied: list[tuple[Package, bool]] = []
    stored: list[tuple[Package, bool]] = []
    to_download: list[Package] = []
    for package in lock.packages:
        if here := installed.get((package.name, package.version, package.content)):
            copied.append(here)
        elif kept := next(filter(None, (store.find(package) for store in stores)), None):
            stored.append((kept, False))
        else:
            to_download.append(package)
    lost = next((package for package in to_download if package.origin), None)
    if lost is not None:
        if lost.origin == "tree":
            raise LockError(f"{lost.name} {lost.version} is no longer installed from this tree: pip install -e .")
        raise LockError(
            f"{lost.name} {lost.version} came from no index ({lock.perishable[lost.name]}), and the store lacks "
            "it: accept with --keep where it is still installed"
        )
    say(f"making an environment of {len(lock.packages)} packages from the lock {lock.digest}")
    if to_download:
        names = ", ".join(f"{package.name} {package.version}" for package in to_download[:6])
        say(f"downloading {len(to_download)} packages: {names}{' ...' if len(to_download) > 6 else ''}")
        pins = [f"{package.name}=={package.version}" for package in to_download]
        _install(part, pins, say, indexes.of_packages(lock.versions.items()))
    for package, link in (*copied, *stored):  # last, for what cannot be had fails at once
        copying.install_from(package, copying.packages_folder(part), link=link)
    return {"copied": len(copied), "stored": len(stored), "downloaded": len(to_download)}


def keep_wheel(cache: Path, wheel: Path, lock: Lock, say: Say) -> Package:
    """Put what a wheel installs into the store, and return its package as a lock of this Python names it.

    Raise LockError if it cannot be installed.
    """
    cache = cache.absolute()
    try:
        scratch.made(cache / FOLDER)
        with scratch.folder("wheel", cache / FOLDER) as place:
            _create(place, base_python(lock))
            _install(place, [str(wheel.absolute())], say, offline=True)
            installed = take_inventory(str(place / "bin" / "python")).packages
            if len(installed) != 1:
                raise LockError(f"{wheel.name} installs no package")
            store_of(cache).add(installed[0], say)
    except OSError as error:
        raise LockError(f"{wheel.name} cannot be installed in {cache / FOLDER}: {error.strerror or error}") from error
    return replace(installed[0], folder="", requires=())


def _compile(environment: Path) -> None:
    """Compile what is not compiled yet, as pip does. In a read-only environment every import would compile again."""
    folder = copying.packages_folder(environment)
    command = [str(environment / "bin" / "python"), "-m", "compileall", "-q", "-q", "-j", "0", str(folder)]
    # A file that cannot be compiled cannot be imported either: some packages have such files in their tests.
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _install(
    environment: Path, requirements: Sequence[str], say: Say, addresses: Sequence[str] = (), *, offline: bool = False
) -> None:
    """Install exactly these packages, without their requirements: a lock lists everything.

    They come from these indexes or the usual one.
    """
    python = str(environment / "bin" / "python")
    uv = shutil.which("uv")
    source_options = ["--offline"] if uv and offline else ["--no-index"] if offline else ["--only-binary", ":all:"]
    source_options += [word for address in addresses for word in ("--extra-index-url", address)]
    # Else uv takes every package from the first index that knows its name.
    source_options += ["--index-strategy", "unsafe-best-match"] if uv and addresses else []
    installer = (
        [uv, "pip", "install", "--python", python]
        if uv
        else [sys.executable, "-m", "pip", "--python", python, "install"]
    )
    with scratch.folder("requirements") as folder:
        listed = folder / "requirements.txt"
        listed.write_text("".join(f"{line}\n" for line in requirements), encoding="utf-8")
        command = [*installer, "--quiet", "--no-deps", *source_options, "-r", str(listed)]
        status, errors = _patient(command, say)
    if status:
        subject = requirements[0] if len(requirements) == 1 else "a package of the lock"
        raise LockError(f"{subject} cannot be installed: {reason(errors)}")


def _patient(command: Sequence[str], say: Say) -> tuple[int, str]:
    """Run an installer, and say now and then that it still runs. Return its exit status and its messages of errors."""
    began = time.monotonic()
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, stdin=null, stdout=null, stderr=pipe, text=True, errors="replace") as process:
        try:
            while (seconds := time.monotonic() - began) < INSTALL_HOURS * 3600:
                with suppress(subprocess.TimeoutExpired):
                    _, errors = process.communicate(timeout=SPEAK_SECONDS)
                    return process.returncode, errors
                say(f"still installing, for {seconds + SPEAK_SECONDS:.0f} s")
        finally:
            process.kill()  # it still runs if we were interrupted, or if it took too long
    raise LockError(f"installing took more than {INSTALL_HOURS} hours")
