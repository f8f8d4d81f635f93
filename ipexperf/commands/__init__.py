"""The subcommands of `ipexperf`: those of this folder's files with `COMMANDS`, and those of entry points.

The tools in `ipexperf.tools` come through entry points, like commands of other packages.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Iterator

from ipexperf.commands.console import Subparsers

GROUP = "ipexperf.commands"
"""The entry points by which an installed package names functions that declare its subcommands."""


def every() -> Iterator[Callable[[Subparsers], None]]:
    """Yield the functions that declare a subcommand."""
    for module in pkgutil.iter_modules(__path__):
        yield from getattr(importlib.import_module(f"{__name__}.{module.name}"), "COMMANDS", ())
    points = importlib.metadata.entry_points(group=GROUP)
    for point in sorted(points, key=lambda point: (not point.module.startswith("ipexperf."), point.name)):
        yield functools.partial(_declare, point)


def _declare(point: importlib.metadata.EntryPoint, subparsers: Subparsers) -> None:
    """Let a package declare its subcommand. If it cannot, say so in a sentence: the other commands work."""
    from ipexperf.bench import outcome
    from ipexperf.commands import console

    problem = f"there is a command {point.name} already" if point.name in subparsers.choices else ""
    if not problem:
        try:
            point.load()(subparsers)
        except Exception as error:  # noqa: BLE001 - whatever somebody else's package raises
            problem = outcome.sentence(error)
    if problem:
        package = point.dist.name if point.dist else point.value
        console.complain(f"the command {point.name} of the package {package} is left out: {problem}")
