"""The yardstick: fixed work in a pinned environment that takes turns with a case.

Its time shows how fast the machine was at that moment. It runs under an interpreter of its own, without the software
under test, whose slow-downs would otherwise cancel out.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Callable, Iterable
from typing import Any

from ipexperf.bench.api import Session
from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError
from ipexperf.result import Check

VERSION = 2
"""Increased if the work or the memory settings of its process change: it is another yardstick then."""
TERMS = 20_000


def convolution(dtype: str) -> Callable[[], Any]:
    """A layer of an image network, 1.8 GFLOP."""
    kind = getattr(torch, dtype)
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).to(kind).to(memory_format=torch.channels_last)
    images = torch.randn(8, 64, 56, 56).to(kind).to(memory_format=torch.channels_last)
    return lambda: layer(images)


def product(dtype: str) -> Callable[[], Any]:
    """A layer of a language model, 2.4 GFLOP."""
    kind = getattr(torch, dtype)
    layer, tokens = torch.nn.Linear(768, 3072).to(kind), torch.randn(512, 768).to(kind)
    return lambda: layer(tokens)


def arithmetic(dtype: str) -> Callable[[], Any]:
    """Python only, for users' own devices. The environment needs no package for it."""
    del dtype
    return lambda: sum(number * number for number in range(TERMS))


WORKS = {work.__name__: work for work in (convolution, product, arithmetic)}


class Yardstick(Session):
    """One of the works, ready to run steps."""

    def __init__(self, work: str, dtype: str, threads: int) -> None:
        if work not in WORKS:
            raise WorkerError("error", f"the yardstick has no work '{work}': choose from {', '.join(WORKS)}")
        if work != arithmetic.__name__:
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            torch.set_grad_enabled(False)
        self._work = WORKS[work](dtype)

    def step(self) -> None:
        self._work()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        return {}, []

    def proof(self) -> list[Check]:
        return []


def packages() -> list[tuple[str, str]]:
    """Return each installed package by name and version, with a digest of its files as recorded by the installer."""
    distributions = importlib.metadata.distributions()
    return sorted(
        (f"{distribution.metadata['Name'].lower()} {distribution.version}", _digest(distribution.read_text("RECORD")))
        for distribution in distributions
    )


def _digest(record: str | None) -> str:
    """Return a digest without scripts, which contain the environment's path, and without installation metadata."""
    rows = [row for row in (record or "").splitlines() if not row.startswith("../") and ".dist-info/" not in row]
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


def content(listed: Iterable[tuple[str, str]]) -> str:
    """Return a hash of an environment: its packages, its Python and the works."""
    document = "\n".join([f"works {VERSION}", f"python {platform.python_version()}", *map(" ".join, listed)])
    return hashlib.sha256(document.encode()).hexdigest()[:12]
