"""Make the environment of a lock, find it again, and check it by what its own interpreter says.

An environment lies in `<cache>/environments/<name by content>/`. It is built beside its final place and moved there
when it is complete and checked, so nobody uses an incomplete one. uv installs the packages: those of the store, and the
others from an index, as wheels only, because building an sdist runs its code. What no index has as the lock says is
taken from where it is installed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ipexperf import scratch
from ipexperf.bench.machine import inventory as own_inventory
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.conduct import lease, process
from ipexperf.conduct.process import variables_for
from ipexperf.environments import indexes, installer
from ipexperf.environments.store import Store
from ipexperf.errors import LockError
from ipexperf.lock import Lock, series

FOLDER = "environments"
STORE = "store"
LOCK = "lock.txt"
"""The file in an environment that says what it has. It is written last."""
WAIT = 60.0
"""Time limit in seconds for an interpreter to list its packages."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment of a lock."""

    folder: Path

    @property
    def python(self) -> str:
        return _python(self.folder)


def _python(folder: Path) -> str:
    return str(folder / "bin" / "python")


def take_inventory(python: str | None = None) -> Inventory:
    """Ask an interpreter which packages it has. None: a new process of this one, since packages may have changed."""
    interpreter = python or sys.executable
    why = f"{shlex.quote(interpreter)} cannot list its packages"
    try:
        reply, errors = process.ask(interpreter, "inventory", variables=variables_for(python), seconds=WAIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LockError(f"{why}: {error}") from error
    if not reply:
        raise LockError(f"{why}: {installer.reason(errors)}")
    return Inventory.from_json(json.loads(reply))


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
    is_complete = (folder / LOCK).is_file() and os.access(_python(folder), os.X_OK)
    return Environment(folder) if is_complete else None


def make(
    cache: Path,
    lock: Lock,
    say: Say,
    also: Iterable[str] = (),
    *,
    leasing: str = lease.WAIT,
) -> Environment:
    """Find the environment of a lock, or make it.

    `also`: more interpreters whose packages may be taken.
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
        with lease.for_work(leasing, say), _one_at_a_time(Path(f"{place}.lock"), say, waiting):
            if environment := find(cache, lock):  # another process made it meanwhile
                return environment
            return _build(place, lock, python, store_of(cache), [None, *also], say)
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
    try:
        return installer.run("python", "find", "--system", version).strip()
    except LockError:
        raise LockError(
            f"the lock needs Python {version}, and there is no python{version} in PATH: install it"
        ) from None


def _build(place: Path, lock: Lock, python: str, store: Store, pythons: Sequence[str | None], say: Say) -> Environment:
    began = time.monotonic()
    part = place.with_name(f"{place.name}.part")
    wheels = {package: wheel for package in lock.packages if (wheel := store.find(package))}
    of_no_index = [package for package in lock.packages if package.origin and package not in wheels]
    wheels |= _packed(of_no_index, store, pythons, say)
    if lost := next((package for package in of_no_index if package not in wheels), None):
        raise LockError(_lost(lost, lock))
    say(f"making an environment of {len(lock.packages)} packages from the lock {lock.digest}")
    try:
        wrong, missing = _made(part, lock, python, wheels, say)
        if more := _packed(missing, store, pythons, say):
            wheels |= more
            wrong, _ = _made(part, lock, python, wheels, say)
        if wrong:
            raise LockError(wrong)
        (part / LOCK).write_text(lock.text, encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    counts = ((len(wheels), "from the store"), (len(lock.packages) - len(wheels), "from an index"))
    origins = ", ".join(f"{count} packages {where}" for count, where in counts if count) or "no packages"
    say(f"environment {place.name}: {origins}, in {time.monotonic() - began:.0f} s")
    return Environment(place)


def _lost(package: Package, lock: Lock) -> str:
    if package.origin == "tree":
        return f"{package.name} {package.version} is no longer installed from this tree: pip install -e ."
    return (
        f"{package.name} {package.version} came from no index ({lock.perishable[package.name]}), and the store lacks "
        "it: accept with --keep where it is still installed"
    )


def _packed(wanted: Sequence[Package], store: Store, pythons: Sequence[str | None], say: Say) -> dict[Package, Path]:
    """Put those of these packages that an interpreter here has into the store, and return their wheels.

    One that was edited since is not what a lock means. An editable one must be asked for, by `baseline accept --keep`.
    """
    wheels = {}
    inventories = [take_inventory(python) for python in pythons] if wanted else []
    here = {_identity(package): package for inventory in reversed(inventories) for package in inventory.packages}
    for package in wanted:
        installed = here.get(_identity(package))
        if installed and installed.content and installed.origin != "editable":
            try:
                wheels[package] = store.add(installed, say)
            except LockError as error:
                say(str(error))
    return wheels


def _identity(package: Package) -> tuple[str, str, str]:
    return package.name, package.version, package.content


def _made(folder: Path, lock: Lock, python: str, wheels: Mapping[Package, Path], say: Say) -> tuple[str, list[Package]]:
    """Make an environment in this folder. Return what is wrong with it, and which packages are missing for that."""
    _create(folder, python)
    others = [package for package in lock.packages if package not in wheels]
    try:
        if wheels:
            links = [word for wheel in wheels.values() for word in ("--find-links", str(wheel.parent))]
            # By its address, uv sees that a checkout was built again, and notes that the package came from a file.
            kept = (
                wheel.as_uri() if package.origin == "editable" else _pin(package) for package, wheel in wheels.items()
            )
            _install(folder, kept, say, "--no-index", *links)
        if others:
            _install(folder, map(_pin, others), say, extra=indexes.of_packages(lock.versions.items()))
    except LockError as error:
        return f"a package of the lock cannot be installed: {error}", others
    inventory = take_inventory(_python(folder))
    wrong = mismatches(lock, inventory)
    installed = {_identity(package) for package in inventory.packages}
    problem = f"what was installed is not what the lock says: {'; '.join(wrong[:3])}" if wrong else ""
    return problem, [package for package in others if wrong and _identity(package) not in installed]


def _pin(package: Package) -> str:
    return f"{package.name}=={package.version}"


def _create(folder: Path, python: str) -> None:
    """Make an empty environment, without pip, because no lock pins pip. Its scripts may be moved."""
    shutil.rmtree(folder, ignore_errors=True)
    installer.run("venv", "--quiet", "--relocatable", "--python", python, str(folder))


def _install(environment: Path, requirements: Iterable[str], say: Say, *words: str, extra: Sequence[str] = ()) -> None:
    """Install exactly these packages, without their requirements: a lock lists everything. Compile them.

    In a read-only environment every import would compile again. `extra`: more indexes.
    """
    command = ("pip", "install", "--quiet", "--no-deps", "--no-build", "--compile-bytecode")
    where = ("--python", _python(environment), *words, "--requirements", "-")
    installer.run(*command, *where, say=say, send="\n".join(requirements), indexes=extra)


def keep_wheel(cache: Path, wheel: Path, lock: Lock, say: Say) -> Package:
    """Put what a wheel installs into the store, and return its package as a lock of this Python names it.

    Raise LockError if it cannot be installed.
    """
    cache = cache.absolute()
    try:
        scratch.made(cache / FOLDER)
        with scratch.folder("wheel", cache / FOLDER) as place:
            _create(place / "environment", base_python(lock))
            try:
                _install(place / "environment", [wheel.absolute().as_uri()], say, "--offline")
            except LockError as error:
                raise LockError(f"{wheel.name} cannot be installed: {error}") from None
            installed = take_inventory(_python(place / "environment")).packages
            if len(installed) != 1:
                raise LockError(f"{wheel.name} installs no package")
            store_of(cache).add(installed[0], say)
    except OSError as error:
        raise LockError(f"{wheel.name} cannot be installed in {cache / FOLDER}: {error.strerror or error}") from error
    return replace(installed[0], folder="", requires=())


@contextmanager
def _one_at_a_time(lock: Path, say: Say, waiting: str) -> Iterator[None]:
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
