"""The workbench of a case: its leaves and settings, and helpers to build its network."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import IMAGES
from ipexperf.case import Case
from ipexperf.dtypes import quantised
from ipexperf.errors import UsageError, WorkerError

if TYPE_CHECKING:
    from ipexperf.bench.kinds import Device, Mode, Settings, Stack
    from ipexperf.bench.subjects import Dataset, Model, Task, Tensors


@dataclass(frozen=True, slots=True)
class Workbench:
    """Everything a mode needs to open a session."""

    case: Case
    model: Model
    device: Device
    mode: Mode
    stack: Stack
    dataset: Dataset
    settings: Settings
    say: Callable[[str], None]

    def knob(self, name: str) -> str:
        """Return the value of a knob: what the case requests, or the default."""
        asked = dict(self.case.knobs)
        if name in asked:
            return asked[name]
        for knob in (*self.mode.knobs, *self.stack.knobs):
            if knob.name == name:
                return knob.default(self.model, asked)
        raise UsageError(f"neither {self.mode.name} nor {self.stack.name} has a knob {name}")

    def at(self, size: int) -> Workbench:
        """Return a copy for another input size."""
        return dataclasses.replace(self, case=dataclasses.replace(self.case, size=size))

    @property
    def channels_last(self) -> bool:
        """Whether images are in channels-last layout: as the case requests, else as the model declares."""
        chosen = dict(self.case.knobs).get("channels_last")
        return chosen == "on" if chosen else self.model.channels_last

    @property
    def task(self) -> Task:
        """The task of the model."""
        return registry.tasks.get(self.model.task)

    def laid_out(self, value: Any) -> Any:
        """Convert a network or images to the memory layout of the case. Other tensors stay unchanged."""
        if isinstance(value, torch.Tensor) and value.dim() != IMAGES:
            return value
        return value.to(memory_format=torch.channels_last if self.channels_last else torch.contiguous_format)

    def put(self, batch: Tensors) -> Tensors:
        """Move a batch to the device, in the memory layout of the case."""
        return tuple(self.device.put(self.laid_out(value)) for value in batch)

    def built(self) -> Any:
        """Build the network. Raise WorkerError if it is not a module with parameters."""
        network = self.model.build()
        if not isinstance(network, torch.nn.Module):
            told = "nothing" if network is None else f"a {type(network).__name__}"
            raise WorkerError("error", f"{self.model.name} is built as {told}, and a torch.nn.Module was expected")
        if not any(True for _ in network.parameters()):
            why = "there is nothing in it that a stack could optimise or a training move"
            raise WorkerError("error", f"{self.model.name} has no parameters: {why}")
        return network

    def tuned(self, network: Any) -> Any:
        """Apply the replacements that the model declares for the case's stack."""
        train = self.model.tuned_training.get(self.stack.name) if self.mode.trains else None
        if train:
            return train(network, self)
        tune = self.model.tuned.get(self.stack.name)
        return tune(network) if tune else network

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators that must run because the network was tuned. int8 networks are converted, not tuned."""
        return () if quantised(self.case.dtype) else self.model.operators.get(self.stack.name, ())

    def turned(self, name: str) -> bool:
        """Whether the case sets this knob."""
        return name in dict(self.case.knobs)
