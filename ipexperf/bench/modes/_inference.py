"""What eager and jitted inference share: weights, reference, inputs, fidelity. How the model is made is theirs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ipexperf.bench import accuracy, proof, weights
from ipexperf.bench.kinds import Session, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.precision import autocast
from ipexperf.errors import WorkerError
from ipexperf.result import Check

BATCHES = 4
"""Different real batches that take turns as input: one alone would live in the cache."""


class InferenceSession(Session):
    """A trained model, ready to answer batches of held-out images."""

    def __init__(self, bench: Workbench) -> None:
        case, put = bench.case, bench.device.put
        split = weights.read(bench)
        torch.manual_seed(bench.settings.seed)
        network = bench.model.build()
        if bench.model.trained:
            if bench.settings.weights is None:
                raise WorkerError("error", f"{bench.model.name} infers on trained weights, and none were given")
            weights.load(network, bench.settings.weights)
        network.eval()
        self.bench = bench
        self.images = split.test_images[: accuracy.HELD_OUT]
        self.labels = split.test_labels[: accuracy.HELD_OUT]
        self.reference = accuracy.reference(network, self.images, self.labels)

        self.format = torch.channels_last if bench.model.channels_last else torch.contiguous_format
        network = put(network.to(memory_format=self.format))
        starts = [(index * case.batch) % len(self.images) for index in range(BATCHES)]
        self.inputs = [self._input(torch.roll(self.images, -start, 0)[: case.batch]) for start in starts]
        self._turn = 0
        self.network = self.build(network, self.inputs[0])

    def _input(self, images: Any) -> Any:
        if len(images) < self.bench.case.batch:
            repeats = -(-self.bench.case.batch // len(images))
            images = images.repeat(repeats, 1, 1, 1)[: self.bench.case.batch]
        return self.bench.device.put(images.to(memory_format=self.format))

    @abstractmethod
    def build(self, network: Any, example: Any) -> Any:
        """Makes the model that is measured out of the trained one."""

    def forward(self, images: Any) -> Any:
        with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype, cache=False):
            return self.network(images)

    def step(self) -> None:
        self._turn = (self._turn + 1) % BATCHES
        self.forward(self.inputs[self._turn])

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        outputs = accuracy.predict(self.forward, self.images, self.bench.case.batch, self._input)
        return accuracy.fidelity(outputs, self.reference, self.labels, self.bench.case.dtype)

    def proof(self) -> list[Check]:
        case = self.bench.case
        return [
            proof.device_of(self.forward(self.inputs[0]), case.device),
            proof.dtype_of_kernels(
                self.bench.stack.kernel_dtypes(self.step, self.bench.case.device), self.bench.case.dtype
            ),
            proof.layout(self.inputs[0], channels_last=self.bench.model.channels_last),
        ]
