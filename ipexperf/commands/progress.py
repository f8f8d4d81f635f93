"""Progress of comparisons on standard error: a live line on a terminal, lines in a file or a pipe."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager

from ipexperf.steps import LiveLine, Step


def say(text: str) -> None:
    """Print a line of progress."""
    sys.stderr.write(f"  {text}\n")


class Progress(AbstractContextManager["Progress"]):
    """Says how far comparisons are. A context manager, which takes the live line away at its end."""

    def __init__(self) -> None:
        self._live: LiveLine | None = None

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.close()
            self._live = None

    def say(self, text: str) -> None:
        """Print a line. On a terminal the next step takes the place of one before."""
        if isinstance(text, Step) and sys.stderr.isatty():
            if self._live is None:
                columns = os.get_terminal_size(sys.stderr.fileno()).columns
                self._live = LiveLine(os.dup(sys.stderr.fileno()), lambda: columns or 80, lambda: "")
            self._live.show(text)
        else:
            if self._live is not None:
                self._live.clear()
            say(text)
