"""Progress of comparisons on standard error: bars on a terminal, lines in a file or a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ipexperf.steps import Standing

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


def say(text: str) -> None:
    """Print a line of progress."""
    sys.stderr.write(f"  {text}\n")


class Progress:
    """Shows the state of comparisons. A context manager, which takes the bars away at its end."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bars

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[so_far]}", markup=False),
            )
            self._bars = Bars(*columns, console=Console(stderr=True), transient=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """Print a line, above the bars if there are any. How far a comparison is moves its bar instead."""
        if self._bars is None:
            say(text)
        elif isinstance(text, Standing):
            self._bars.start()  # not earlier: an empty display would wipe out what others write on the line
            if text.name not in self._tasks:
                self._tasks[text.name] = self._bars.add_task(text.name, total=text.most, so_far=text.so_far)
            task = self._tasks[text.name]
            self._bars.update(task, completed=text.done, total=text.most, so_far=text.so_far)
        else:
            self._bars.console.print(f"  {text}", markup=False, highlight=False, style="dim")
