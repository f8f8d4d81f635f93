"""Signals that end a run. Treat SIGTERM, sent by CI systems and `timeout`, as Ctrl-C, and finish writes in progress."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


_swallowed = threading.Event()
"""Set after a KeyboardInterrupt that nobody got."""


def check() -> None:
    """Raise the KeyboardInterrupt that Python swallowed, if there was one.

    A signal may arrive while a destructor or a callback of a weak reference runs. What its handler raises there ends
    nothing: Python only prints it.
    """
    if _swallowed.is_set() and threading.current_thread() is threading.main_thread():
        _swallowed.clear()
        raise KeyboardInterrupt


@contextmanager
def _noticing() -> Iterator[None]:
    """Inside the block a KeyboardInterrupt that Python swallows is kept for `check`."""
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _swallowed.set()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        _swallowed.clear()
        if sys.unraisablehook is hook:
            sys.unraisablehook = before


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Inside the block the first SIGTERM raises KeyboardInterrupt. A second one ends the process.

    Does nothing to SIGTERM if it already has a handler. In any case no interruption gets lost: see `check`.
    """
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        with _noticing():
            yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: Any) -> None:
    del number, frame
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt


@contextmanager
def deferred() -> Iterator[None]:
    """Defer SIGINT and SIGTERM until the block has ended. Each that came is then handled once.

    Does nothing outside the main thread, because Python handles signals only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    current = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # An ignored signal stays ignored, and Python can't put back a handler that it did not install (None).
    waiting = _Waiting({n: handler for n, handler in current.items() if handler not in (signal.SIG_IGN, None)})
    try:
        for number in waiting.handlers:
            signal.signal(number, waiting)
        yield
    finally:
        waiting.end()


class _Waiting:
    """The handler inside the block. It remembers signals, and passes on those that come after the block's end."""

    def __init__(self, handlers: dict[signal.Signals, Any]) -> None:
        self.handlers = handlers
        self._came: dict[int, FrameType | None] = {}
        self._over = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            self._pass_on(number, frame)
        else:
            self._came[number] = frame

    def end(self) -> None:
        """Restore the handlers and pass on the remembered signals.

        A restored handler may raise before the next one is restored. This one then stays and passes on.
        """
        self._over = True
        try:
            for number, handler in self.handlers.items():
                signal.signal(number, handler)
        finally:
            self._pass_all_on()

    def _pass_all_on(self) -> None:
        if self._came:
            try:
                self._pass_on(*self._came.popitem())
            finally:
                self._pass_all_on()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        handler = self.handlers[signal.Signals(number)]
        if callable(handler):
            # Not sent once more: a signal's byte is in Python's wakeup file already, which asyncio reads.
            handler(number, frame)
        else:
            signal.signal(number, handler)
            signal.raise_signal(number)
