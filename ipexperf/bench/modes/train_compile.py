"""Training through torch.compile: forward and backward of the network are compiled, with the backend `ipex` on IPEX.

As users write it, the loss and the update are eager code beside the compiled network.
"""

from __future__ import annotations

import importlib
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Kernel, Session, Stack, Workbench
from ipexperf.bench.cell import Cell
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes._compiled import Compilation, CompiledMode, CompiledSteps
from ipexperf.bench.modes.train import Train, TrainSession
from ipexperf.proof import compilation, label, profiler, templates
from ipexperf.result import Check

DROPOUT = "dropout draws the random numbers of eager training (inductor's fallback_random), so that losses compare"
"""Noted with every launch, because it is not inductor's default."""


class CompiledTraining(CompiledSteps, TrainSession):
    """A training whose first step compiles the network, and whose further steps run that code."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        with self.compiling(bench.device.synchronise):
            self.compiled = Compilation(self.step)

    def for_steps(self, network: Any) -> Any:
        # Inductor's own random numbers would be other masks of dropout than those of the training it is compared with.
        config: Any = importlib.import_module("torch._inductor.config")
        config.fallback_random = True
        return self.bench.stack.compiled_training(network, self.bench)

    def notes(self) -> list[str]:
        kind = torch.nn.modules.dropout._DropoutNd  # noqa: SLF001 - torch has no public name for all of them
        drops = any(isinstance(module, kind) and module.p > 0 for module in self.optimised.modules())
        return [*super().notes(), *([DROPOUT] if drops else [])]

    def kernels(self) -> list[Kernel]:
        self.events = profiler.traced(self.step)
        return [*label.kernels(self.events), *templates.kernels(self.compiled.code)]

    def proof(self) -> list[Check]:
        compiled = self.compiled.proof(compilation.TRAINING, self.bench.case.device)
        return [
            *super().proof(),
            *compiled,
            compilation.both_passes(self.events, self.accumulate, self.compiled.sources),
            *self.bench.stack.proof_of_compiled_training(self.network, self.bench),
        ]


class TrainCompile(CompiledMode, Train):
    name = "train_compile"
    plain = "train"

    def prepared(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return (*super().prepared(cell, stack), *stack.script("compiled_training", cell))

    def open(self, bench: Workbench) -> Session:
        return CompiledTraining(bench)


registry.modes.add("train_compile", TrainCompile())
