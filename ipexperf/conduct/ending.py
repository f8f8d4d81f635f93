"""How a run takes the signals that end it: what was measured is told, and what is being written is written whole.

SIGTERM, with which CI systems and `timeout` end a run, is taken as Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def softly() -> Iterator[None]:
    """Inside the block the first SIGTERM is a KeyboardInterrupt; a second one ends the process as ever.

    Whoever has a handler of their own keeps it.
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
def uninterrupted() -> Iterator[None]:
    """SIGINT and SIGTERM wait until the block has ended; then each that came does once what it would have done.

    Outside the main thread it does nothing: Python handles signals in the main thread alone.
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
    """The handler inside the block: it remembers what comes, and passes on what comes after the block's end."""

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
        """Put the handlers back, and pass on what came.

        The handler that is back may raise before the next one is: this one then stays in its place and passes on.
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
