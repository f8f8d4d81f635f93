"""Pause the garbage collector while many rows are read: it would scan them again and again and find nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_off() -> Iterator[None]:
    """Pause the garbage collector within the block. Rows have no reference cycles, so they are freed without it."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
