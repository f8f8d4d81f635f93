"""The common base of inference modes: weights, reference, inputs and fidelity. Each builds its model in its own way."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from ipexperf import dtypes
from ipexperf.bench import shared
from ipexperf.bench.api import Kernel, Look, Session, Workbench
from ipexperf.bench.artifacts import artifact, weights
from ipexperf.bench.device import Device
from ipexperf.bench.knob import CHANNELS_LAST, Number
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Examples, Tensors
from ipexperf.bench.modes import _input
from ipexperf.bench.precision import autocast
from ipexperf.dtypes import Bounds
from ipexperf.proof import accuracy, fingerprint, float32, instructions, label, quantised, sketches, work
from ipexperf.proof.accuracy import Reference
from ipexperf.proof.work import Work
from ipexperf.result import Check

KNOBS = (CHANNELS_LAST, *_input.KNOBS)
BATCHES = 4
"""Number of batches that take turns as input. A single one would stay in the caches."""
FIT = "fit"


@dataclass(frozen=True)
class NumberOrFit(Number):
    """A number, or `fit`: as many as the machine has room for."""

    values: tuple[str, ...] = (FIT,)

    def wrong(self, value: str) -> str | None:
        return None if value == FIT else super().wrong(value)


class InferenceSession(Session):
    """A trained model that infers batches of held-out examples."""

    narrow = ""
    """Why outputs were compared with those in float32, once they were."""

    def __init__(self, bench: Workbench) -> None:
        case = bench.case
        self.bench = bench
        self.held_out = weights.read(bench).test.part(slice(bench.model.held_out))
        order = [[(turn * case.batch + number) % len(self.held_out) for number in range(case.batch)]
                 for turn in range(BATCHES)]  # fmt: skip
        self.inputs = [bench.put(self.held_out.part(numbers).inputs) for numbers in order]
        self.feed = _input.feed(bench, self.held_out.inputs, iter(order), self.inputs)
        self.network = self.ready(self.inputs[0])

    def ready(self, example: Tensors) -> Any:
        """Build the model to measure."""
        return self.timed(lambda network: self.build(network, example), self.bench.tuned(self.placed()))

    def timed(self, build: Callable[[Any], Any], network: Any) -> Any:
        """Return what `build` makes of the network. Keep how long it takes if that is a graph."""
        with self.compiling(self.bench.device.synchronise) if self.bench.mode.graph else nullcontext():
            return build(network)

    def placed(self) -> Any:
        """Return a new network with the case's weights on the device, in the case's memory layout."""
        return self.bench.device.put(self.bench.laid_out(self.untouched()))

    def untouched(self) -> Any:
        """Return a new, unoptimised network with the case's weights."""
        return weights.network(self.bench)

    @abstractmethod
    def build(self, network: Any, example: Tensors) -> Any:
        """Build the model to measure from the trained one."""

    def forward(self, inputs: Tensors) -> Any:
        with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype, cache=False):
            return self.network(*inputs)

    def step(self) -> None:
        self.forward(next(self.feed))

    def batch(self) -> Examples | None:
        return Examples(self.inputs[0], ())

    def metrics(self) -> dict[str, float]:
        return _input.waited(self)

    def close(self) -> None:
        self.feed.close()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        bench, held_out = self.bench, self.held_out
        outputs = accuracy.predict(self.forward, held_out.inputs, bench.case.batch, bench.put)
        agreed = artifact.recipe(bench)["agreed"] if dtypes.quantised(bench.case.dtype) else None
        reference = self.reference
        rounding = self._rounding(reference)
        metrics, checks = accuracy.fidelity(
            outputs, reference, held_out.targets, self.bounds(), bench.task, rounding, agreed
        )
        if bench.task.scored:
            metrics["trivial_accuracy"] = bench.task.trivial(weights.read(bench))
        return metrics, checks

    def answers(self) -> dict[str, Any] | None:
        """Return a sketch of the float64 answers, which accuracy has compared with those of the case."""
        bench, outputs = self.bench, self.reference.outputs
        trained = bench.settings.weights if bench.model.trained else None
        return sketches.sketch(outputs, bench.task.compared(outputs), self.bounds().fidelity, trained)

    def bounds(self) -> Bounds:
        return dtypes.DTYPES[self.bench.case.dtype].bounds

    @property
    def holding(self) -> str:
        """How the plain network holds its weights. Another way of holding them has another error."""
        return "autocast"

    def plain(self) -> Any:
        """Return the network whose error in eager stock PyTorch is that of the dtype."""
        return self.placed()

    @functools.cached_property
    def reference(self) -> Reference:
        """Return the float64 outputs of the untouched network, computed once per run."""

        def make() -> tuple[Tensors, float, str]:
            # A new network: `ipex.optimize` may have changed the other in place.
            reference = accuracy.reference(self.untouched(), self.held_out, self.bench.task)
            return reference.outputs, reference.accuracy, reference.narrow

        reference = Reference(*shared.once(self.bench, "float64", [len(self.held_out)], make))
        self.narrow = reference.narrow
        return reference

    def _rounding(self, reference: Reference) -> float | None:
        """Return the error of eager stock PyTorch in the case's dtype: the part due to the dtype, not the stack."""
        case = self.bench.case
        if dtypes.quantised(case.dtype):
            recorded: float | None = artifact.recipe(self.bench)["rounding"]
            return recorded
        if reference.narrow and case.dtype == "fp32":
            return None  # a reference that rounds alike knows no error of the dtype

        def make() -> float:
            network = self.plain()

            def plain(inputs: Tensors) -> Any:
                with autocast(case.device, case.dtype, cache=False):
                    return network(*inputs)

            outputs = accuracy.predict(plain, self.held_out.inputs, case.batch, self.bench.put)
            return accuracy.distance(outputs, reference, self.bench.task)

        made_of = [case.device, case.dtype, case.stack, case.batch, len(self.held_out), case.knobs, self.holding]
        return shared.once(self.bench, "rounding", made_of, make)

    def kernels(self) -> list[Kernel]:
        """Return the arithmetic kernels that one step really ran."""
        return label.of_stack(self.step, self.bench)

    def _plain_kernels(self) -> list[Kernel]:
        """Return the arithmetic kernels of the untouched network, in the case's memory layout."""
        network = self.placed()
        with torch.no_grad():
            return label.profiled(lambda: network(*self.inputs[0]))

    def instructions(self) -> list[Check]:
        """Return evidence of the instructions that a step uses."""
        return instructions.proof(self.step, self.bench.case, "\n".join(self.generated))

    def proof(self) -> list[Check]:
        case = self.bench.case
        kernels = self.kernels()
        arithmetic = quantised.layers(kernels) if dtypes.quantised(case.dtype) else kernels
        return [
            label.placed(self.network, [*self.inputs, *next(self.feed)], self.forward(self.inputs[0]), case.device),
            self.feed.proof(self.step),
            label.dtype_of_kernels(arithmetic, case.dtype),
            *float32.proof(case.dtype, case.device),
            *label.operators(self.step, self.bench.operators),
            *label.layouts(self.inputs[0], channels_last=self.bench.channels_last),
            *label.layout_of_kernels(
                kernels,
                channels_last=self.bench.channels_last,
                plain=self._plain_kernels if self.bench.model.target else None,
            ),
            *self.instructions(),
            *([] if not dtypes.quantised(case.dtype) else self._converted(kernels)),
        ]

    def _converted(self, kernels: list[Kernel]) -> list[Check]:
        """Return evidence of int8, and of its artifact."""
        checks = [*artifact.calibrated(self.bench), *artifact.made_of(self.bench)]
        return [quantised.layers_that_ran(kernels, self.layers), *checks]

    def looks(self, device: Device) -> Mapping[str, Look]:
        batch = self.bench.case.batch
        items, inputs = self.items(batch), self.held_out.part(slice(batch)).inputs
        return {**fingerprint.of_step(self.step, device), "flops": lambda: fingerprint.flops(self.work, items, inputs)}

    @functools.cached_property
    def work(self) -> Work:
        """The work of a step, counted on the host in the untouched network."""
        return work.counted_once(self.bench, "inference", self.counted)

    def counted(self) -> Work:
        """Count the work of a step in this process."""
        network = self.untouched()
        with torch.no_grad():
            return work.count(lambda: network(*self.example()), network)

    @functools.cached_property
    def layers(self) -> int:
        """Number of layers in a step of the untouched network. In int8 cases all must be int8."""
        return quantised.count(self.untouched(), self.example())

    def example(self) -> Tensors:
        """Return one batch for an untouched network, on the CPU."""
        return tuple(value.cpu().contiguous() for value in self.inputs[0])

    def notes(self) -> list[str]:
        notes = artifact.notes(self.bench) if dtypes.quantised(self.bench.case.dtype) else []
        narrow = [f"compared with the network in float32: in float64 it fails, {self.narrow}"] if self.narrow else []
        return [*self.bench.stack.notes(self.bench), *notes, *instructions.notes(self.bench.case), *narrow]
