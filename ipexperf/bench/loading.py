"""Load what `--perf-load` names: files and modules that register leaves, and networks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ipexperf.bench import user_files
from ipexperf.bench.networks import own
from ipexperf.errors import UsageError


def load(targets: Iterable[str]) -> None:
    """Import the user's own files or modules, which register leaves.

    `module:callable`, `hf:NAME` and `timm:NAME` name networks: they become models, and are built in the worker.
    """
    for target in targets:
        if ":" in target:
            own.register(target)
            continue
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
