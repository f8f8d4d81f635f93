"""What eager and jitted inference share: weights, reference, inputs, fidelity. How the model is made is theirs."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from ipexperf.bench import accuracy, artifact, fingerprint, instructions, proof, quantised, shared, weights, work
from ipexperf.bench.accuracy import Reference
from ipexperf.bench.fingerprint import Look
from ipexperf.bench.kinds import Device, Session
from ipexperf.bench.knobs import ChannelsLast
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes import _input
from ipexperf.bench.precision import autocast
from ipexperf.bench.proof import Kernel
from ipexperf.bench.subjects import Tensors
from ipexperf.bench.work import Work
from ipexperf.bench.workbench import Workbench
from ipexperf.result import Check

KNOBS = (ChannelsLast(), *_input.KNOBS)
BATCHES = 4
"""Different real batches that take turns as input: one alone would live in the cache."""


class InferenceSession(Session):
    """A trained model, ready to answer batches of held-out examples."""

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
        """The model that is measured, made here out of the trained one."""
        return self.build(self.bench.tuned(self.placed()), example)

    def placed(self) -> Any:
        """A network of the case's weights on the device, laid out as the case has it."""
        return self.bench.device.put(self.bench.laid_out(self.untouched()))

    def untouched(self) -> Any:
        """A network of the case's weights that nothing has optimised, as often as one is asked for."""
        return weights.network(self.bench)

    @abstractmethod
    def build(self, network: Any, example: Tensors) -> Any:
        """Makes the model that is measured out of the trained one."""

    def forward(self, inputs: Tensors) -> Any:
        with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype, cache=False):
            return self.network(*inputs)

    def step(self) -> None:
        self.forward(next(self.feed))

    def metrics(self) -> dict[str, float]:
        return _input.waited(self)

    def close(self) -> None:
        self.feed.close()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        bench, held_out = self.bench, self.held_out
        outputs = accuracy.predict(self.forward, held_out.inputs, bench.case.batch, bench.put)
        reference = self._reference()
        dtype, agreed = bench.case.dtype, None
        if dtype == "int8":
            agreed = artifact.recipe(bench)["agreed"]
        rounding = self._rounding(reference)
        metrics, checks = accuracy.fidelity(outputs, reference, held_out.targets, dtype, bench.task, rounding, agreed)
        if bench.task.scored:
            metrics["trivial_accuracy"] = bench.task.trivial(weights.read(bench))
        return metrics, checks

    def _reference(self) -> Reference:
        """The float64 answers of the untouched network, computed once a run."""

        def make() -> tuple[Tensors, float]:
            # A network of its own, built again: `ipex.optimize` may have worked on the other in place.
            made = accuracy.reference(self.untouched(), self.held_out, self.bench.task)
            return made.outputs, made.accuracy

        return Reference(*shared.once(self.bench, "float64", [len(self.held_out)], make))

    def _rounding(self, reference: Reference) -> float | None:
        """The error of stock PyTorch in the case's dtype, eager: what is due to the dtype and not to the stack."""
        case = self.bench.case
        if case.dtype == "int8":
            known: float | None = artifact.recipe(self.bench)["rounding"]
            return known

        def make() -> float:
            network = self.placed()

            def plain(inputs: Tensors) -> Any:
                with autocast(case.device, case.dtype, cache=False):
                    return network(*inputs)

            outputs = accuracy.predict(plain, self.held_out.inputs, case.batch, self.bench.put)
            return accuracy.distance(outputs, reference, self.bench.task)

        made_of = [case.device, case.dtype, case.stack, case.batch, len(self.held_out), self.bench.channels_last]
        told: float = shared.once(self.bench, "rounding", made_of, make)
        return told

    def kernels(self) -> list[Kernel]:
        """The arithmetic that one step really did."""
        return self.bench.stack.kernels(self.step, self.bench)

    def proof(self) -> list[Check]:
        case = self.bench.case
        kernels = self.kernels()
        arithmetic = quantised.layers(kernels) if case.dtype == "int8" else kernels
        return [
            proof.placed(self.network, [*self.inputs, *next(self.feed)], self.forward(self.inputs[0]), case.device),
            self.feed.proof(self.step),
            proof.dtype_of_kernels(proof.dtypes(arithmetic), case.dtype),
            *proof.operators(self.step, self.bench.operators),
            *proof.layouts(self.inputs[0], channels_last=self.bench.channels_last),
            *proof.layout_of_kernels(kernels, channels_last=self.bench.channels_last),
            *instructions.proof(self.step, case),
            *([] if case.dtype != "int8" else self._converted(kernels)),
        ]

    def _converted(self, kernels: list[Kernel]) -> list[Check]:
        """Evidence of int8, and of what it was made of."""
        made = [*artifact.calibrated(self.bench), *artifact.made_of(self.bench)]
        return [quantised.ran(kernels, self.layers), *made]

    def looks(self, device: Device) -> Mapping[str, Look]:
        items = self.items(self.bench.case.batch)
        return {**fingerprint.of_step(self.step, device), "flops": lambda: fingerprint.flops(self.work, items)}

    @functools.cached_property
    def work(self) -> Work:
        """What a step has to do, counted on the host in the untouched network."""
        return work.counted_once(self.bench, "inference", self.counted)

    def counted(self) -> Work:
        """What this process counts."""
        network = self.untouched()
        with torch.no_grad():
            return work.count(lambda: network(*self.example()))

    @functools.cached_property
    def layers(self) -> int:
        """How many layers a step of the untouched network has: so many must be int8 where the case is."""
        return quantised.count(self.untouched(), self.example())

    def example(self) -> Tensors:
        """One batch for an untouched network, which lies on the CPU."""
        return tuple(value.cpu().contiguous() for value in self.inputs[0])

    def notes(self) -> list[str]:
        told = artifact.notes(self.bench) if self.bench.case.dtype == "int8" else []
        return [*self.bench.stack.notes(self.bench), *told, *instructions.notes(self.bench.case)]
