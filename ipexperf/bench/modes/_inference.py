"""What eager and jitted inference share: weights, reference, inputs, fidelity. How the model is made is theirs."""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import Any

from ipexperf.bench import accuracy, artifact, proof, quantised, weights
from ipexperf.bench.accuracy import Reference
from ipexperf.bench.kinds import Session, Workbench
from ipexperf.bench.knobs import ChannelsLast
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes import _input
from ipexperf.bench.precision import autocast
from ipexperf.bench.proof import Kernel
from ipexperf.result import Check

KNOBS = (ChannelsLast(), *_input.KNOBS)
BATCHES = 4
"""Different real batches that take turns as input: one alone would live in the cache."""


class InferenceSession(Session):
    """A trained model, ready to answer batches of held-out images."""

    def __init__(self, bench: Workbench) -> None:
        case = bench.case
        split = weights.read(bench)
        self.bench = bench
        self.images = split.test_images[: accuracy.HELD_OUT]
        self.labels = split.test_labels[: accuracy.HELD_OUT]
        self.channels_last = bench.channels_last
        self.format = torch.channels_last if self.channels_last else torch.contiguous_format
        order = [[(turn * case.batch + number) % len(self.images) for number in range(case.batch)]
                 for turn in range(BATCHES)]  # fmt: skip
        self.inputs = [self._input(self.images[part]) for part in order]
        self.feed = _input.feed(bench, (self.images,), iter(order), self.format, self.inputs)
        self.network = self.ready(self.inputs[0])

    def ready(self, example: Any) -> Any:
        """The model that is measured, made here out of the trained one."""
        return self.build(self.bench.device.put(self.untouched().to(memory_format=self.format)), example)

    def untouched(self) -> Any:
        """A network of the case's weights that nothing has optimised, as often as one is asked for."""
        return weights.network(self.bench)

    def _input(self, images: Any) -> Any:
        return self.bench.device.put(images.to(memory_format=self.format))

    @abstractmethod
    def build(self, network: Any, example: Any) -> Any:
        """Makes the model that is measured out of the trained one."""

    def forward(self, images: Any) -> Any:
        with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype, cache=False):
            return self.network(images)

    def step(self) -> None:
        (images,) = next(self.feed)
        self.forward(images)

    def metrics(self) -> dict[str, float]:
        return _input.waited(self)

    def close(self) -> None:
        self.feed.close()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        outputs = accuracy.predict(self.forward, self.images, self.bench.case.batch, self._input)
        # A network of its own, built again: `ipex.optimize` may have worked on the other in place.
        reference = accuracy.reference(self.untouched(), self.images, self.labels)
        dtype, agreed = self.bench.case.dtype, None
        if dtype == "int8":
            agreed = artifact.recipe(self.bench)["agreed"]
        return accuracy.fidelity(outputs, reference, self.labels, dtype, self._rounding(reference), agreed)

    def _rounding(self, reference: Reference) -> float | None:
        """The error of stock PyTorch in the case's dtype, eager: what is due to the dtype and not to the stack."""
        case = self.bench.case
        if case.dtype == "int8":
            known: float | None = artifact.recipe(self.bench)["rounding"]
            return known
        network = self.bench.device.put(self.untouched().to(memory_format=self.format))

        def plain(images: Any) -> Any:
            with torch.no_grad(), autocast(case.device, case.dtype, cache=False):
                return network(images)

        outputs = accuracy.predict(plain, self.images, case.batch, self._input)
        return accuracy.distance(outputs, reference)

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
            proof.layout(self.inputs[0], channels_last=self.channels_last),
            *proof.layout_of_kernels(kernels, channels_last=self.channels_last),
            *([] if case.dtype != "int8" else [quantised.ran(kernels, self.layers), *artifact.calibrated(self.bench)]),
        ]

    @functools.cached_property
    def layers(self) -> int:
        """How many layers a step of the untouched network has: so many must be int8 where the case is."""
        return quantised.count(self.untouched(), self.inputs[0].cpu().contiguous())

    def notes(self) -> list[str]:
        told = artifact.notes(self.bench) if self.bench.case.dtype == "int8" else []
        return [*self.bench.stack.notes(self.bench), *told]
