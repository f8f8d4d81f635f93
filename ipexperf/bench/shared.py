"""Results that every worker of a run would compute alike: the first worker saves them, the others load them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ipexperf.bench.api import Workbench
from ipexperf.bench.lazy import torch
from ipexperf.variables import SOURCE

T = TypeVar("T")
LARGEST = 2**28
"""Larger files, in bytes, are not kept: the temporary folder may be a small disk in memory."""


def once(bench: Workbench, name: str, made_of: list[Any], make: Callable[[], T]) -> T:
    """Return `make()`, or what it returned to another worker of this run for the same inputs.

    `made_of` lists every input besides the model, its weights, its data, and the interpreter with its environment.
    """
    folder = bench.settings.shared
    # A cold start includes everything that a process of its own would have to do.
    if folder is None or bench.mode.cold:
        return make()
    path = Path(folder) / f"{name}-{_address(bench, made_of)}.pt"
    # If the file is missing or damaged, compute the result here.
    with contextlib.suppress(Exception):
        saved: T = torch.load(path, weights_only=True)["made"]
        return saved
    value = make()
    part = path.with_suffix(f".{os.getpid()}.part")
    # If the disk is full, every worker computes its own.
    with contextlib.suppress(OSError, RuntimeError):
        torch.save({"made": value}, part)
        if part.stat().st_size <= LARGEST:
            part.replace(path)
    with contextlib.suppress(OSError):
        part.unlink(missing_ok=True)
    return value


def _address(bench: Workbench, made_of: list[Any]) -> str:
    case, model, settings = bench.case, bench.model, bench.settings
    files = [_file(settings.weights), _file(settings.data_file)]
    # A forked process has the environment that its parent was started with, and may have another source.
    process = [sys.executable, torch.__version__, environment(), os.environ.get(SOURCE, ""), settings.load]
    parts = [model.name, model.version, case.data, case.size, settings.seed]
    return hashlib.sha256(json.dumps([process, parts, files, made_of]).encode()).hexdigest()[:24]


def environment() -> list[str]:
    """Return the environment that this process was started with. Importing IPEX adds variables to it later."""
    return sorted(os.fsdecode(Path("/proc/self/environ").read_bytes()).split("\0"))


def _file(path: str | None) -> list[Any]:
    """Identify a file's content by path, size and time: enough within one run."""
    if path is None:
        return []
    try:
        stat = Path(path).stat()
    except OSError:
        return [path]
    return [path, stat.st_size, stat.st_mtime_ns]
