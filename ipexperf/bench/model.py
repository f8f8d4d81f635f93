"""Models, and what they work on: examples, data sets, and tasks, which say what an answer is worth."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipexperf.bench.cell import Cell
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.errors import WorkerError

Tensors = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples as tensors whose first dimension counts them: inputs and correct answers."""

    inputs: Tensors
    targets: Tensors

    def __len__(self) -> int:
        return len(self.inputs[0])

    @property
    def tensors(self) -> Tensors:
        """Inputs and targets, as in a batch of training."""
        return (*self.inputs, *self.targets)

    def part(self, which: Any) -> Examples:
        """Return the examples with these indices, or of this slice."""
        return Examples(tuple(value[which] for value in self.inputs), tuple(value[which] for value in self.targets))


@dataclass(frozen=True, slots=True)
class Split:
    """Training examples and held-out examples."""

    train: Examples
    test: Examples


class Dataset(ABC):
    """A source of examples, real or generated."""

    name: str
    licence: str = "not stated"
    """Licence of the examples, as published."""
    real: str = ""
    """The data set in the folder of `--perf-data` that takes its place."""

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        """Find the data, without torch. Return its path and None, or None and why it is not available.

        By default the examples are made by the file of the class, and nothing else is needed.
        """
        return inspect.getfile(type(self)), None

    @abstractmethod
    def read(self, path: str, size: int) -> Split:
        """Read the examples in the input size of the model."""

    def files(self, path: str) -> list[Path]:
        """Return the files of the data. Everything made from the data is identified by them."""
        folder = Path(path)
        return [folder] if folder.is_file() else sorted(file for file in folder.rglob("*") if file.is_file())


class Task(ABC):
    """The purpose of a network: its loss, and how its answers are scored."""

    name: str
    metric: str
    """Description of `score`."""
    unit: str = "{0} x {0}"
    """Format of an input size for people."""
    inputs: int = 1
    """Number of input tensors of a network."""
    scored: bool = True
    """True if correct answers are known. Without them there is only fidelity."""
    products: bool = False
    """True if its networks are mostly matrix products, not convolutions."""
    next_token: bool = False
    """True if its networks predict the next token, and so can generate text."""
    least: float = 1 / 3
    """Training must get this share of the way from the trivial predictor's score to 1."""

    @abstractmethod
    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """Return the loss that training minimises."""

    def learn(self, network: Any, inputs: Tensors, targets: Tensors) -> tuple[Any, Tensors]:
        """Return the loss of a batch and the outputs. Overridden for networks that compute their own loss."""
        outputs = tensors(network(*inputs))
        return self.loss(outputs, targets), outputs

    def compared(self, outputs: Tensors) -> Any:
        """Return the outputs that fidelity compares with float64: a tensor, or several."""
        return outputs[0]

    def notes(self, device: str) -> list[str]:
        """Return notes on the loss on a device, such as a fault of torch's kernel that it goes around."""
        return []

    @abstractmethod
    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        """Return the share of decisions that agree with the reference."""

    @abstractmethod
    def score(self, outputs: Tensors, targets: Tensors) -> float:
        """Return the quality of the answers, from 0 to 1."""

    def metrics(self, outputs: Tensors, targets: Tensors) -> dict[str, float]:
        """Return further metrics of the answers (`result.METRICS`)."""
        return {}

    @abstractmethod
    def trivial(self, split: Split) -> float:
        """Return the best score of a predictor with one constant answer."""

    def floor(self, trivial: float) -> float:
        """Return the lowest score that counts as successful training."""
        return trivial + self.least * (1 - trivial)


def tensors(raw: Any) -> Tensors:
    """Flatten the outputs of a network: a tensor, or a tuple, list, mapping or dataclass of tensors."""
    flat = tuple(_tensors(raw))
    if not flat:
        what = "nothing" if raw is None else f"a {type(raw).__name__} that holds no tensor"
        raise WorkerError("error", f"the network answers with {what}, and a tensor was expected")
    return flat


def _tensors(raw: Any) -> Iterator[Any]:
    if isinstance(raw, (torch.Tensor, torch.fx.Proxy)):  # a Proxy stands for a tensor while torch.fx traces a network
        yield raw
    elif isinstance(raw, Mapping):
        for part in raw.values():
            yield from _tensors(part)
    elif isinstance(raw, (list, tuple)):
        for part in raw:
            yield from _tensors(part)
    elif hasattr(raw, "__dataclass_fields__"):
        for name in raw.__dataclass_fields__:
            yield from _tensors(getattr(raw, name))


@dataclass(frozen=True, slots=True)
class Model:
    """A network, its data, and the settings of its training and inference."""

    name: str
    build: Callable[[], Any]
    size: int
    batch_train: int
    batch_infer: int
    version: int = 1
    task: str = "classification"
    data: str = "digits"
    channels_last: bool = True
    needs: tuple[str, ...] = ("torch",)
    """Packages that the worker's interpreter must have."""
    imports: tuple[str, ...] = ()
    """More modules that building it imports. Fork servers import those of them that are installed beforehand."""
    optimizer: str = "sgd"
    learning_rate: float = 0.02
    recipe_steps: int = 66
    """Training steps for the weights that inference uses. Deep networks need more."""
    recipe: Callable[[Any, Split, Any], None] | None = None
    """A function of workbench, data and network that makes the weights for inference otherwise than by training."""
    resized: Callable[[Any, Split, Any], None] | None = None
    """A function that adapts weights trained at `size` to another size. None: train at each size."""
    train_steps: int = 66
    """Steps of the mode `train` before its accuracy is measured."""
    settles: int = 0
    """Number of last steps over which the learning rate falls to 0, for scores that vary from step to step."""
    trained: bool = True
    """True if inference uses trained weights."""
    normal: int | None = None
    """Input size of published benchmarks, for `--perf-size normal`. None: `size`."""
    least: int = 1
    """Smallest input size: smaller ones shrink to nothing inside the network."""
    most: int | None = None
    """Largest input size. None: no limit."""
    published: Mapping[str, int] = field(default_factory=dict)
    """Batch of the vendor's published figures for each dtype. Used by the preset `full`."""
    held_out: int = 256
    """Number of held-out examples for fidelity: enough for agreement, few enough for float64."""
    served: bool = False
    """True if low precision holds weights in the dtype by default, instead of converting them in each step."""
    quantisation: str = "static"
    """Default way of quantisation: `static`, or `dynamic` for transformers."""
    answers: tuple[str, ...] = ()
    """Names of the modules whose outputs are the answers. Stock's int8 keeps 8 bits for them, and 7 elsewhere."""
    tuned: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """For each stack, a function that replaces modules before optimising, as the guide of the stack recommends."""
    tuned_training: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    """The same before training, if it differs: a function of network and workbench."""
    scripts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each stack, the lines of a user's script that do what `tuned` does."""
    operators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each stack, the operators that must then run in a step, by their names in torch's profiler."""
    why_nots: Mapping[str, str] = field(default_factory=dict)
    """Reasons why the model does not support modes of a trait (`Mode.traits`), a dtype, or either on a stack
    (`int8 on stock`, `compiled on ipex`)."""
    target: str = ""
    """The target of a user's own network that no file declares (`bench.networks.own_target`), else empty."""

    @property
    def usual_weights(self) -> str:
        """The default of the knob `weights` in low precision."""
        return "cast" if self.served else "autocast"

    def why_not(self, cell: Cell, traits: Sequence[str], facts: Facts) -> str | None:
        """Return why the model cannot do this cell, whose mode has these traits, or None."""
        kinds = [kind for name in (*traits, cell.dtype) for kind in (name, f"{name} on {cell.stack}")]
        reason = next((self.why_nots[kind] for kind in kinds if kind in self.why_nots), None)
        return reason or facts.missing(*self.needs)
