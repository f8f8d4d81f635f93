"""Make the environment of a lock, find it again, and check it by what its own interpreter says.

An environment lies in `<cache>/environments/<name by content>/`. It is built beside its place and moved there when it
is complete and checked, so nothing half made is ever used. Each package comes from the first of: an environment of this
machine that has the same content, the store of wheels, an index. From an index come wheels only, because building an
sdist runs its code.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import scratch
from ipexperf.bench.machine import inventory as own_inventory
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.conduct import lease
from ipexperf.conduct.process import BOOT, variables_for
from ipexperf.environments import copying
from ipexperf.environments.store import Store
from ipexperf.errors import LockError, UsageError
from ipexperf.lock import Lock, series

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment of a lock."""

    folder: Path
    seconds: float
    made_at: str
    copied: int
    """How many packages came from environments of this machine."""
    stored: int
    """How many came from the store of wheels."""
    downloaded: int
    """How many came from an index."""

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def lock(self) -> Path:
        return self.folder / LOCK


def take_inventory(python: str | None = None) -> Inventory:
    """Ask an interpreter what it has. None: this one, whose packages may have changed since it started."""
    command = [python or sys.executable, str(BOOT), "inventory"]
    with tempfile.TemporaryFile() as answer:
        try:
            result = subprocess.run(
                [*command, "--into", str(answer.fileno())],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=WAIT,
                check=False,
                env=variables_for(python),
                pass_fds=[answer.fileno()],
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LockError(f"{shlex.quote(command[0])} cannot list its packages: {error}") from error
        answer.seek(0)
        reply = answer.read()
    if result.returncode or not reply:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise LockError(f"{shlex.quote(command[0])} cannot list its packages: {last}")
    return Inventory.from_json(json.loads(reply))


@functools.cache
def _taken_once(python: str, made_at: str) -> Inventory:
    del made_at  # another environment in the same place
    return take_inventory(python)


def inventory_of(environment: Environment) -> Inventory:
    """What one of our environments has. It never changes, so its interpreter is asked once a process."""
    return _taken_once(environment.python, environment.made_at)


def mismatches(lock: Lock, inventory: Inventory) -> list[str]:
    """How an interpreter differs from a lock in what is installed, one line each. Python's patch may differ."""
    lines = []
    if series(lock.python) != series(inventory.python):
        lines.append(f"python: {lock.python} -> {inventory.python}")
    if lock.platform != inventory.platform:
        lines.append(f"platform: {lock.platform} -> {inventory.platform}")
    there = {package.name: package for package in inventory.packages}
    for package in lock.packages:
        installed = there.pop(package.name, None)
        if installed is None:
            lines.append(f"{package.name}: {package.version} -> not installed")
        elif installed.version != package.version:
            lines.append(f"{package.name}: {package.version} -> {installed.version}")
        elif package.content and installed.content != package.content and package.origin != "editable":
            lines.append(f"{package.name} {package.version}: other content than the lock says")
    return [*lines, *(f"{name}: not in the lock -> {package.version}" for name, package in sorted(there.items()))]


def folder_of(cache: Path, lock: Lock) -> Path:
    return cache / FOLDER / lock.environment


def store_of(cache: Path) -> Store:
    return Store(cache / STORE)


def find(cache: Path, lock: Lock) -> Environment | None:
    """The environment of a lock if it was made and is still what the lock says, else None."""
    environment = read(folder_of(cache, lock))
    if environment is None:
        return None
    if wrong := mismatches(lock, take_inventory(environment.python)):
        raise LockError(
            f"{environment.folder} is no longer what its lock says ({'; '.join(wrong[:3])}): remove it with "
            f"`ipexperf env prune {lock.environment}`"
        )
    os.utime(environment.folder / MADE)  # when it was last used, for `ipexperf env prune`
    return environment


def read(folder: Path) -> Environment | None:
    """The environment in a folder, or None. Does not ask its interpreter."""
    try:
        document = json.loads((folder / MADE).read_text(encoding="utf-8"))
        environment = Environment(folder=folder, **document)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return environment if os.access(environment.python, os.X_OK) else None


def every(cache: Path) -> list[Environment]:
    """All complete environments, the latest used first."""
    try:
        folders = sorted((cache / FOLDER).iterdir())
    except OSError:
        return []
    environments = [one for folder in folders if folder.suffix != ".part" and (one := read(folder)) is not None]
    return sorted(environments, key=lambda one: -(one.folder / MADE).stat().st_mtime)


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

    `also`: interpreters whose packages may be copied, beside ours. `stores`: wheels, beside those of the cache.
    `leasing`: as `--perf-lease`. What is made takes the CPU to itself.
    """
    cache = cache.absolute()
    if environment := find(cache, lock):
        return environment
    python = base_python(lock)
    place = folder_of(cache, lock)
    # In this order: who holds the CPU may wait for an environment, but not the other way round.
    with lease.for_work(leasing, say), _alone(place, say):
        if environment := find(cache, lock):  # another process made it meanwhile
            return environment
        return _build(place, lock, python, [store_of(cache), *stores], [*_inventories(cache, also)], say)


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
    """An interpreter of the lock's version. Raise LockError if this machine has none."""
    wanted = ".".join(series(lock.python))
    own = getattr(sys, "_base_executable", sys.executable)
    if series(lock.python) == tuple(str(part) for part in sys.version_info[:2]):
        return str(own)
    if path := shutil.which(f"python{wanted}"):
        return path
    if uv := shutil.which("uv"):
        done = subprocess.run([uv, "python", "find", wanted], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    raise LockError(f"the lock needs Python {wanted}, and there is no python{wanted} in PATH: install it")


@contextmanager
def _alone(place: Path, say: Say) -> Iterator[None]:
    """Wait until no other process makes the same environment."""
    import filelock

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        guard = filelock.FileLock(f"{place}.lock")
        try:
            guard.acquire(timeout=0)
        except filelock.Timeout:
            say(f"another process is making the environment {place.name}: waiting for it")
            guard.acquire()
    except OSError as error:
        raise LockError(f"no environment can be made in {place.parent}: {error.strerror or error}") from error
    with guard:
        yield


def _inventories(cache: Path, also: Iterable[str]) -> Iterator[tuple[Inventory, bool]]:
    """What is installed on this machine, and whether it may be linked: our own environments never change in place."""
    for environment in every(cache):
        with suppress(LockError):  # skip a damaged environment: `find` names it to whoever asks for it
            yield inventory_of(environment), True
    for python in (None, *also):
        yield take_inventory(python), False


def _build(
    place: Path,
    lock: Lock,
    python: str,
    stores: Sequence[Store],
    installed: Sequence[tuple[Inventory, bool]],
    say: Say,
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
        made = {"seconds": round(time.monotonic() - began, 1), "made_at": _now(), **counts}
        (part / MADE).write_text(json.dumps(made), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    except OSError as error:
        raise LockError(f"no environment can be made in {place.parent}: {error.strerror or error}") from error
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
    """An empty environment without pip, which is not pinned."""
    if python == getattr(sys, "_base_executable", sys.executable):
        venv.create(part, symlinks=True)
        return
    done = subprocess.run(
        [python, "-m", "venv", "--without-pip", "--symlinks", str(part)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LockError(f"{python} cannot make an environment: {_last(done.stderr)}")


def _fill(
    part: Path, lock: Lock, stores: Sequence[Store], installed: Sequence[tuple[Inventory, bool]], say: Say
) -> dict[str, int]:
    """Install every package of the lock. Return how many came from where."""
    target = _packages_folder(part)
    say(f"making an environment of {len(lock.packages)} packages from the lock {lock.digest}")
    here = _here(installed)
    stored: dict[str, Path] = {}
    wanted: list[Package] = []
    copied = 0
    for package in lock.packages:
        known = here.get((package.name, package.version, package.content))
        if known is not None:
            copying.install_from(known[0], target, link=known[1])
            copied += 1
        elif wheel := next(filter(None, (store.find(package) for store in stores)), None):
            stored[package.name] = wheel
        else:
            wanted.append(package)
    lost = [package for package in wanted if package.origin]
    if lost:
        raise LockError(
            f"{lost[0].name} {lost[0].version} came from no index ({lock.perishable[lost[0].name]}), and the store "
            "does not have it: accept with --keep where it is still installed"
        )
    if stored:
        say(f"installing {len(stored)} packages from the store")
        _install(part, [str(path) for path in stored.values()], say, offline=True)
    if wanted:
        say(f"downloading {len(wanted)} packages: {', '.join(f'{one.name} {one.version}' for one in wanted[:6])}"
            + (" ..." if len(wanted) > 6 else ""))  # fmt: skip
        _install(part, [f"{package.name}=={package.version}" for package in wanted], say)
    return {"copied": copied, "stored": len(stored), "downloaded": len(wanted)}


def keep_wheel(cache: Path, wheel: Path, lock: Lock, say: Say) -> Package:
    """Put a wheel into the store, and return its package as a lock of this Python names it.

    Raises LockError if it cannot be installed. It is installed once, because only that says what its content is.
    """
    cache = cache.absolute()
    try:
        (cache / FOLDER).mkdir(parents=True, exist_ok=True)
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


def _here(installed: Sequence[tuple[Inventory, bool]]) -> Mapping[tuple[str, str, str], tuple[Package, bool]]:
    """The packages on this machine by name, version and content, those that may be linked first."""
    here: dict[tuple[str, str, str], tuple[Package, bool]] = {}
    for inventory, link in sorted(installed, key=lambda one: not one[1]):
        for package in inventory.packages:
            if package.content and package.origin != "editable":
                here.setdefault((package.name, package.version, package.content), (package, link))
    return here


def _compile(environment: Path) -> None:
    """Compile what is not compiled yet, as pip does. Where nobody may write compiled files, every import would."""
    folder = _packages_folder(environment)
    command = [str(environment / "bin" / "python"), "-m", "compileall", "-q", "-q", "-j", "0", str(folder)]
    # A file that cannot be compiled cannot be imported either: some packages have such files in their tests.
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _packages_folder(environment: Path) -> Path:
    folders = sorted((environment / "lib").glob("python3*/site-packages"))
    if len(folders) != 1:
        raise LockError(f"{environment} has no folder for packages")
    return folders[0]


def _install(environment: Path, requirements: Sequence[str], say: Say, *, offline: bool = False) -> None:
    """Install exactly these, without what they require: a lock lists everything."""
    python = str(environment / "bin" / "python")
    uv = shutil.which("uv")
    where = ["--offline"] if uv and offline else ["--no-index"] if offline else ["--only-binary", ":all:"]
    installer = (
        [uv, "pip", "install", "--python", python]
        if uv
        else [sys.executable, "-m", "pip", "--python", python, "install"]
    )
    with scratch.folder("requirements") as folder:
        listed = folder / "requirements.txt"
        listed.write_text("".join(f"{line}\n" for line in requirements), encoding="utf-8")
        command = [*installer, "--quiet", "--no-deps", *where, "-r", str(listed)]
        status, errors = _patient(command, say)
    if status:
        what = requirements[0] if len(requirements) == 1 else "a package of the lock"
        raise LockError(f"{what} cannot be installed: {_last(errors)}")


def _patient(command: Sequence[str], say: Say) -> tuple[int, str]:
    """Run an installer, and say now and then that it still runs. Return its exit status and what it wrote of errors."""
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
            process.kill()  # it has ended, unless somebody interrupts us, or it took too long
    raise LockError(f"installing took more than {INSTALL_HOURS} hours")


def _last(text: str) -> str:
    """The line of an installer's output that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["no message"])[-1].removeprefix("ERROR: ")


def _now() -> str:
    from datetime import datetime, timezone

    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def size(folder: Path) -> int:
    """The bytes of a folder on disk. A file that several environments share counts in each."""
    return sum(entry.lstat().st_blocks * 512 for entry in folder.rglob("*") if not entry.is_symlink())


def remove(environment: Environment) -> None:
    """Remove an environment whole: first out of its place, so that nobody finds half of it."""
    gone = environment.folder.with_name(f"{environment.folder.name}.part")
    try:
        shutil.rmtree(gone, ignore_errors=True)
        environment.folder.rename(gone)
        shutil.rmtree(gone)
    except OSError as error:
        raise UsageError(f"{environment.folder} cannot be removed: {error}") from error


def clear_remains(cache: Path) -> None:
    """Remove what killed processes left: environments that were never complete."""
    for folder in (cache / FOLDER).glob("*.part"):
        with _alone_or_not(folder.with_suffix("")) as alone:
            if alone:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone_or_not(place: Path) -> Iterator[bool]:
    """Whether no other process makes this environment just now. None begins before the block ends."""
    import filelock

    guard = filelock.FileLock(f"{place}.lock")
    try:
        guard.acquire(timeout=0)
    except filelock.Timeout:
        yield False
        return
    with guard:
        yield True


def verify(environment: Environment) -> list[str]:
    """What is wrong with an environment: what its interpreter lists, and each file beside its recorded digest."""
    from ipexperf import lock as locks

    wrong = mismatches(locks.read(environment.lock), take_inventory(environment.python))
    folder = _packages_folder(environment.folder)
    for record in sorted(folder.glob("*.dist-info/RECORD")):
        for name, digest in copying.recorded(record):
            if digest and not _holds(folder / name, digest):
                wrong.append(f"{record.parent.name.removesuffix('.dist-info')}: {name} is not what was installed")
    return wrong


def _holds(path: Path, digest: str) -> bool:
    """Whether a file has a digest of RECORD: `sha256=` and URL-safe base64 without padding."""
    kind, _, expected = digest.partition("=")
    try:
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, kind).digest()
    except (OSError, ValueError):
        return False
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode() == expected
