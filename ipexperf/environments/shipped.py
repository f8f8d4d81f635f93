"""The locks that come with ipexperf: an environment with IPEX, and one with stock PyTorch alone."""

from __future__ import annotations

from pathlib import Path

from ipexperf import lock as locks
from ipexperf.errors import LockError
from ipexperf.lock import Lock

FOLDER = Path(__file__).with_name("locks")


def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))


def lock(name: str) -> Lock:
    """Read the lock of this name. Raise LockError with all names if there is none."""
    if name not in names():
        raise LockError(f"no lock 'shipped:{name}' comes with ipexperf: choose from {', '.join(names())}")
    return locks.read(FOLDER / f"{name}.txt")
