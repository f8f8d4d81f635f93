"""Load what `--perf-load` and installed packages name: files and modules that register leaves, and networks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path

from ipexperf.bench import registry, user_files
from ipexperf.bench.networks import own
from ipexperf.errors import UsageError
from ipexperf.steps import Notice

LEAVES = "ipexperf.leaves"
"""The entry points by which an installed package names the modules that register its leaves."""
INSTALLED = "installed:"
"""The prefix of such a module among what is loaded. Another interpreter, which has not got it, does without."""


def installed(say: Callable[[str], None]) -> tuple[str, ...]:
    """Import the leaves of installed packages, and name them for workers. One that fails is left out and said."""
    points = sorted(importlib.metadata.entry_points(group=LEAVES))
    for kind in registry.KINDS.values() if points else ():
        kind.names()  # ours first: who takes one of these names is left out
    return tuple(f"{INSTALLED}{point.value}" for point in points if _imported(point, say))


def _imported(point: importlib.metadata.EntryPoint, say: Callable[[str], None]) -> bool:
    try:
        _import(point.value)
    except UsageError as error:
        name = point.dist.name if point.dist else point.name
        say(Notice(f"the leaves of the package {name} are left out: {error}"))
        return False
    return True


def of_package(target: str) -> bool:
    """Whether an installed package named this, and not the user."""
    return target.startswith(INSTALLED)


def load(targets: Iterable[str]) -> None:
    """Import the user's own files or modules, which register leaves.

    `module:callable`, `hf:NAME` and `timm:NAME` name networks: they become models, and are built in the worker.
    """
    for target in targets:
        if of_package(target):
            if importlib.util.find_spec(target.removeprefix(INSTALLED).partition(".")[0]):
                _import(target.removeprefix(INSTALLED))
        elif ":" in target:
            own.register(target)
        else:
            try:
                _import(target)
            except UsageError as error:
                raise UsageError(f"--perf-load={target}: {error}") from error.__cause__


def _import(target: str) -> None:
    if target.endswith(".py"):
        user_files.load_file(Path(target))
    elif all(part.isidentifier() for part in target.split(".")):
        user_files.load_module(target)
    else:
        raise UsageError("expected a .py file, or a module such as package.module")
