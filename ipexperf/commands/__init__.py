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


OTHERS = "of other packages"


def every() -> Iterator[tuple[str, Callable[[Subparsers], None]]]:
    """Yield the functions that declare a subcommand, each with its topic."""
    for module in pkgutil.iter_modules(__path__):
        found = importlib.import_module(f"{__name__}.{module.name}")
        topic = getattr(found, "TOPIC", OTHERS)
        yield from ((topic, add) for add in getattr(found, "COMMANDS", ()))
    points = importlib.metadata.entry_points(group=GROUP)
    for point in sorted(points, key=lambda point: (not point.module.startswith("ipexperf."), point.name)):
        yield _topic(point), functools.partial(_declare, point)


def _topic(point: importlib.metadata.EntryPoint) -> str:
    """What a package's command is for. If its module cannot be imported, declaring the command says why."""
    try:
        return str(getattr(importlib.import_module(point.module), "TOPIC", OTHERS))
    except Exception:  # noqa: BLE001 - whatever somebody else's package raises
        return OTHERS


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
