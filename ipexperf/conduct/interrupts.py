"""Signals that end a run. Treat SIGTERM, sent by CI systems and `timeout`, as Ctrl-C, and finish writes in progress."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Inside the block the first SIGTERM raises KeyboardInterrupt. A second one ends the process.

    Does nothing if SIGTERM already has a handler.
    """
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
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
    """Defer SIGINT and SIGTERM until the block has ended. Each that came is then sent once more.

    Does nothing outside the main thread, because Python handles signals only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    current = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # An ignored signal stays ignored, and Python can't put back a handler that it did not install (None).
    handlers = {number: handler for number, handler in current.items() if handler not in (signal.SIG_IGN, None)}
    came: list[int] = []

    def remember(number: int, frame: Any) -> None:
        del frame
        came.append(number)

    for number in handlers:
        signal.signal(number, remember)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for once_more in dict.fromkeys(came):
            signal.raise_signal(once_more)
