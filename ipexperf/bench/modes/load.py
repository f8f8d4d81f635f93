"""Cold start: from a checkpoint in a fresh process to the first jitted output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import TRACED, Kernel, Look, Mode, Session, Workbench
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.device import Device
from ipexperf.bench.knob import CHANNELS_LAST
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes.infer_jit import JitSession
from ipexperf.proof import label
from ipexperf.result import Check

MODULES = 50
"""A start that imports more modules says so. Those of torch's tracer are fewer."""


class LoadSession(JitSession):
    """The first step is the cold start, timed in its phases. Later steps are inference."""

    def ready(self, example: Any) -> Any:
        """Import what tracing needs, and no more: before the first step there are only inputs and paths.

        torch 2.14 imports a computer algebra system with its first trace, which IPEX's import has brought already.
        """
        with torch.no_grad():
            torch.jit.freeze(torch.jit.trace(torch.nn.ReLU().eval(), torch.zeros(1)))
        self.phases: dict[str, float] = {}
        self.imported = 0

    def step(self) -> None:
        if self.phases:
            super().step()
            return
        example = self.inputs[0]
        network = self._timed("build_time", lambda: self.bench.tuned(self.placed()))
        network = self._timed("optimise_time", lambda: self.optimise(network, example))
        self.network = self._timed("trace_time", lambda: self.trace(network, example))
        self._timed("first_inference", lambda: self.forward(example))

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        modules = len(sys.modules)
        begin = perf_counter()
        result = work()
        self.bench.device.synchronise()
        self.phases[phase] = perf_counter() - begin
        self.imported += len(sys.modules) - modules
        return result

    def items(self, batch: int) -> int:
        """Return 1: a start, which includes the first batch."""
        return 1

    def metrics(self) -> dict[str, float]:
        return self.phases

    def notes(self) -> list[str]:
        """Return a note if the start imported many modules, which another stack may have imported before it."""
        if self.imported <= MODULES:
            return super().notes()
        return [*super().notes(), f"imported {self.imported} modules during the cold start, which is part of its time"]

    def looks(self, device: Device) -> Mapping[str, Look]:
        """Return nothing: the only cold start of the process was timed."""
        return {}

    def kernels(self) -> list[Kernel]:
        return label.of_stack(lambda: self.forward(self.inputs[0]), self.bench)

    def proof(self) -> list[Check]:
        self.settle(self.inputs[0])
        return super().proof()


class Load(Mode):
    name = "load"
    family = "load"
    kind = "cold start"
    graph = TRACED
    fresh = "it measures what a process pays that has imported nothing"
    cold = True
    knobs = (CHANNELS_LAST,)

    def open(self, bench: Workbench) -> Session:
        return LoadSession(bench)


registry.modes.add("load", Load())
