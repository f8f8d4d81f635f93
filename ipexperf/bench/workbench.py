"""What a case has on the table when its mode opens it: its leaves, its settings, and how its network is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import IMAGES
from ipexperf.case import Case
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
        """What the case asks for, or the default of the mode or stack that has this knob."""
        asked = dict(self.case.knobs)
        if name in asked:
            return asked[name]
        for knob in (*self.mode.knobs, *self.stack.knobs):
            if knob.name == name:
                return knob.default(self.model, asked)
        raise UsageError(f"neither {self.mode.name} nor {self.stack.name} has a knob {name}")

    def at(self, size: int) -> Workbench:
        """The same case with inputs of another size."""
        return dataclasses.replace(self, case=dataclasses.replace(self.case, size=size))

    @property
    def channels_last(self) -> bool:
        """Whether images lie with their channels last: as the case says, or as the model wants them."""
        chosen = dict(self.case.knobs).get("channels_last")
        return chosen == "on" if chosen else self.model.channels_last

    @property
    def task(self) -> Task:
        """What the model is for."""
        return registry.tasks.get(self.model.task)

    def laid_out(self, value: Any) -> Any:
        """A network or images in the memory layout of the case; a tensor that is no image stays as it is."""
        if isinstance(value, torch.Tensor) and value.dim() != IMAGES:
            return value
        return value.to(memory_format=torch.channels_last if self.channels_last else torch.contiguous_format)

    def put(self, batch: Tensors) -> Tensors:
        """A batch on the device, laid out as the case has it."""
        return tuple(self.device.put(self.laid_out(value)) for value in batch)

    def built(self) -> Any:
        """A network as the model builds it, or a sentence where that is none that can be measured."""
        network = self.model.build()
        if not isinstance(network, torch.nn.Module):
            told = "nothing" if network is None else f"a {type(network).__name__}"
            raise WorkerError("error", f"{self.model.name} is built as {told}, and a torch.nn.Module was expected")
        if not any(True for _ in network.parameters()):
            why = "there is nothing in it that a stack could optimise or a training move"
            raise WorkerError("error", f"{self.model.name} has no parameters: {why}")
        return network

    def tuned(self, network: Any) -> Any:
        """The network with what the case's stack has of its own for it."""
        train = self.model.tuned_training.get(self.stack.name) if self.mode.trains else None
        if train:
            return train(network, self)
        tune = self.model.tuned.get(self.stack.name)
        return tune(network) if tune else network

    @property
    def operators(self) -> tuple[str, ...]:
        """What must run in a step because the network was tuned. A network in int8 was not: it was converted."""
        return () if self.case.dtype == "int8" else self.model.operators.get(self.stack.name, ())

    def turned(self, name: str) -> bool:
        """Whether the case asks for this knob by name."""
        return name in dict(self.case.knobs)
