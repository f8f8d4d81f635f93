"""The subcommands of `ipexperf`. A file in this folder with `COMMANDS` declares them, and is listed nowhere else."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ipexperf.commands.console import Subparsers


def every() -> Iterator[Callable[[Subparsers], None]]:
    """Yield the functions that declare a subcommand, in alphabetical order of the files."""
    for module in pkgutil.iter_modules(__path__):
        yield from getattr(importlib.import_module(f"{__name__}.{module.name}"), "COMMANDS", ())
