"""Torch's profiler, started where it cannot record a card's kernels, and ended before its records fill the memory."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import heap

KEPT = 128 * 2**20
"""Most bytes of records while a step runs: of some 400,000 events. When they are written they take 2 GiB."""
TOO_MANY = "a step makes too many calls to list them"
_SECONDS = 0.05
_SIGNAL = signal.SIGRTMAX
"""It is not sent: only its handler is called, in the main thread."""


class TooManyCallsError(Exception):
    """A step made more calls than are kept."""


@contextlib.contextmanager
def running(device: str, **what: Any) -> Iterator[torch.autograd.profiler.profile]:
    """Run torch's profiler, with the kernels of this device if it can have them.

    Intel's library that records them (PTI) refuses some drivers and is not found in some environments. Then the first
    start raises, even one for operators alone, and the second one goes without the library. A build of torch that has
    no PTI refuses the device.
    """
    with contextlib.ExitStack() as stack:
        try:
            profile = stack.enter_context(_made(device, **what))
        except (AssertionError, RuntimeError):
            traceback.print_exc()
            profile = stack.enter_context(_made("cpu", **what))
        yield profile


def _made(device: str, **what: Any) -> torch.autograd.profiler.profile:
    # Not torch.profiler: that wrapper imports torch's compilers, which takes a second in each worker.
    used = None if device == "cpu" else device
    return torch.autograd.profiler.profile(use_kineto=True, use_device=used, record_shapes=True, **what)


def most(step: Callable[[], Any]) -> tuple[int, Any]:
    """Run a step. Return how much memory the process may have while its calls are recorded, and what it returned."""
    seen = [_taken()]
    with _watched(seen.append):
        returned = step()
    return max(seen) + KEPT, returned


@contextlib.contextmanager
def limited(profile: torch.autograd.profiler.profile, most: int) -> Iterator[None]:
    """End this profiler once the process has more memory than this, and raise TooManyCallsError after the block."""
    over, ended = threading.Event(), threading.Event()

    def end(*_: Any) -> None:
        # In a backward pass autograd puts back the state of this thread afterwards, and the profiler with it: later.
        if over.is_set() and not ended.is_set() and torch._C._current_graph_task_id() < 0:  # noqa: SLF001 - the only way
            ended.set()
            profile.__exit__(None, None, None)
            profile.enabled = False

    def look(taken: int) -> None:
        if taken > most:
            over.set()
            _thread.interrupt_main(_SIGNAL)

    before = signal.signal(_SIGNAL, end)
    try:
        with _watched(look):
            yield
    finally:
        signal.signal(_SIGNAL, before)
    if over.is_set():
        end()
        raise TooManyCallsError(TOO_MANY)


@contextlib.contextmanager
def _watched(tell: Callable[[int], None]) -> Iterator[None]:
    """Tell how much memory the process has, again and again, from a thread of its own."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_SECONDS):
            tell(_taken())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _taken() -> int:
    """The memory that is allocated, or that is resident where the allocator does not tell."""
    used = heap.in_use()
    return heap.resident() if used is None else used
