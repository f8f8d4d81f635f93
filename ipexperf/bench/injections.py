"""Slow-downs on purpose, so that the judge can be tried: done in the worker, to a case that is what it always is.

`busy=0.05` adds so much work to each step, so that its size is known. What the others cost is found out by measuring.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from ipexperf.bench.kinds import Session

BUSY, UNFROZEN, UNFUSED = "busy", "unfrozen", "unfused"


@contextlib.contextmanager
def opening(name: str) -> Iterator[None]:
    """While a case is opened: what would make its network quick is left out."""
    kind = name.partition("=")[0]
    if kind not in ("", BUSY, UNFROZEN, UNFUSED):
        raise WorkerError("error", f"unknown injection '{name}': choose from {BUSY}=SHARE, {UNFROZEN}, {UNFUSED}")
    if kind == UNFUSED:
        # Of the whole process: it has this one case.
        importlib.import_module("intel_extension_for_pytorch").enable_onednn_fusion(enabled=False)
    if kind != UNFROZEN:
        yield
        return
    freeze = torch.jit.freeze
    torch.jit.freeze = lambda network, *_, **__: network
    try:
        yield
    finally:
        torch.jit.freeze = freeze


def slow(session: Session, synchronise: Callable[[], None], name: str) -> None:
    """Gives each step of a session its work beside, where that is what is injected."""
    kind, _, share = name.partition("=")
    if kind == BUSY:
        session.step = busy(session.step, synchronise, float(share))  # type: ignore[method-assign] # what it is for


def busy(
    step: Callable[[], Any], synchronise: Callable[[], None], share: float, clock: Callable[[], float] | None = None
) -> Callable[[], None]:
    """The step, and then a core kept busy for this share of the time that the step took."""
    now = clock or time.perf_counter

    def slowed() -> None:
        synchronise()
        begin = now()
        step()
        synchronise()
        until = begin + (now() - begin) * (1 + share)
        while now() < until:
            pass

    return slowed
