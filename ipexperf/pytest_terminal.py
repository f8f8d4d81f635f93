"""Progress on the terminal of a session of pytest: lines, and a live line that the next step replaces."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ipexperf.steps import LiveLine, Notice, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class Terminal:
    """Says how far a run is. With -q only a notice stays on standard output, and a step is a live line or nothing."""

    def __init__(self, config: pytest.Config, progress: Callable[[], str]) -> None:
        """`progress` is how far the run is, in words."""
        self._config = config
        self._progress = progress
        self._live: LiveLine | None = None

    def say(self, text: str) -> None:
        """Print a line of progress."""
        reporter = self._reporter()
        quieter = 0 if isinstance(text, Notice) else -self._config.get_verbosity()
        if reporter is None or quieter > 1 or (quieter == 1 and isinstance(text, Step) and not reporter.isatty):
            return
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            if reporter.isatty and (quieter == 1 or (isinstance(text, Step) and not self._config.get_verbosity())):
                self._show(reporter, text)
            elif quieter == 1:
                sys.stderr.write(f"  {text}\n")
            else:
                self.clear()
                reporter.ensure_newline()
                reporter.write_line(f"  {text}", light=True)
                reporter.flush()

    def _show(self, reporter: Any, step: str) -> None:
        """Show a step in the live line, below what pytest goes on to write. Called while nothing is captured."""
        writer = self._config.get_terminal_writer()
        if self._live is None:
            self._live = LiveLine(os.dup(sys.stdout.fileno()), lambda: writer.fullwidth, self._progress)
            self._config.add_cleanup(self._live.close)
        reporter.flush()
        self._live.show(step, writer.width_of_current_line % writer.fullwidth)

    def clear(self) -> None:
        """Take the live line away, before pytest writes."""
        if self._live is not None:
            self._live.clear()

    def fit_pages(self) -> None:
        """Make what is printed later as wide as the terminal."""
        from ipexperf.report.lines import Page

        reporter = self._reporter()
        if reporter is not None and reporter.isatty:
            Page.fit(self._config.get_terminal_writer().fullwidth)

    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")
