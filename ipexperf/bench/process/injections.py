"""Deliberate slow-downs to test the judge, applied in the worker to an otherwise unchanged case.

`busy=0.05` makes each step this much longer, so its size is known. The cost of the others must be measured.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.lazy import torch

if TYPE_CHECKING:
    from ipexperf.bench.api import Session

BUSY, UNFROZEN, UNFUSED = "busy", "unfrozen", "unfused"


@contextlib.contextmanager
def opening(name: str) -> Iterator[None]:
    """Leave out an optimisation while a case is opened within the block."""
    kind = name.partition("=")[0]
    if kind == UNFUSED:
        # For the whole process: it has only this case.
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
    """Add the injected work to each step of a session."""
    kind, _, share = name.partition("=")
    if kind != BUSY:
        return
    step = session.step

    def slowed() -> None:
        """Run the step, and then keep a core busy for this share of the step's time."""
        synchronise()
        begin = perf_counter()
        step()
        synchronise()
        until = begin + (perf_counter() - begin) * (1 + float(share))
        while perf_counter() < until:
            pass

    session.step = slowed  # type: ignore[method-assign] # what it is for
