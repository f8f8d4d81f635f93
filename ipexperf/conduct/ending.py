"""SIGTERM, with which CI systems and `timeout` end a run, is taken as Ctrl-C: what was measured is told."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


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
