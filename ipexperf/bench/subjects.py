"""The base classes of models, tasks and datasets. Each leaf is one file."""

from __future__ import annotations

import hashlib
import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from ipexperf.bench.facts import Facts
    from ipexperf.bench.kinds import Cell, Mode
    from ipexperf.bench.workbench import Workbench

Tensors = tuple[Any, ...]
IMAGES = 4
"""Number of dimensions of a batch of images: examples, channels, height, width."""


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
        return Examples(tuple(x[which] for x in self.inputs), tuple(x[which] for x in self.targets))


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

    @abstractmethod
    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        """Find the data, without torch. Return its path and None, or None and why it is not available."""

    @abstractmethod
    def read(self, path: str, size: int) -> Split:
        """Read the examples in the input size of the model."""

    def files(self, path: str) -> list[Path]:
        """Return the files of the data. Everything made from the data is identified by them."""
        found = Path(path)
        return [found] if found.is_file() else sorted(file for file in found.rglob("*") if file.is_file())


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
    """Whether correct answers are known. Without them there is only fidelity."""
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
        """Return the outputs that fidelity compares with float64."""
        return outputs[0]

    @abstractmethod
    def agreement(self, outputs: Tensors, known: Tensors) -> float:
        """Return the share of decisions that agree with the reference."""

    @abstractmethod
    def score(self, outputs: Tensors, targets: Tensors) -> float:
        """Return the quality of the answers, from 0 to 1."""

    def metrics(self, outputs: Tensors, targets: Tensors) -> dict[str, float]:
        """Return further metrics of the answers (`result.METRICS`)."""
        del outputs, targets
        return {}

    @abstractmethod
    def trivial(self, split: Split) -> float:
        """Return the best score of a predictor with one constant answer."""

    def floor(self, trivial: float) -> float:
        """Return the lowest score that counts as successful training."""
        return trivial + self.least * (1 - trivial)


def tensors(raw: Any) -> Tensors:
    """Flatten the outputs of a network: a tensor, or a tuple, list, mapping or dataclass of tensors."""
    found = tuple(_tensors(raw))
    if not found:
        raise WorkerError("error", f"the network answers with {_told(raw)}, and a tensor was expected")
    return found


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


def _told(raw: Any) -> str:
    return "nothing" if raw is None else f"a {type(raw).__name__} that holds no tensor"


@dataclass(frozen=True, slots=True)
class Packaged:
    """Trained weights in a Python package, found without importing it and verified by checksum."""

    package: str
    file: str
    sha256: str
    adapt: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Converts the names in the file to those of the network."""

    def find(self) -> tuple[str | None, str | None]:
        """Find the file. Return its path and None, or None and why it is not available."""
        try:
            path = Path(str(importlib.metadata.distribution(self.package).locate_file(self.file)))
        except importlib.metadata.PackageNotFoundError:
            return None, f"its trained weights come with {self.package}, which is not installed: see make data"
        return (str(path), None) if path.is_file() else (None, f"{self.package} has no {self.file}")

    def check(self, path: str) -> None:
        """Raise WorkerError if the checksum of the file is wrong."""
        found = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if found != self.sha256:
            raise WorkerError("error", f"{path} is not the known {self.file} of {self.package}: sha256 {found}")


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
    optimizer: str = "sgd"
    learning_rate: float = 0.02
    recipe_steps: int = 66
    """Training steps for the weights that inference uses. Deep networks need more."""
    recipe: Callable[[Workbench, Split, Any], None] | None = None
    """Produces the weights for inference in another way than by training steps."""
    resized: Callable[[Workbench, Split, Any], None] | None = None
    """Adapts weights that were trained at `size` to another size. None: train at each size."""
    train_steps: int = 66
    """Steps of the mode `train` before its accuracy is measured."""
    settles: int = 0
    """Number of last steps over which the learning rate falls to 0, for scores that vary from step to step."""
    trained: bool = True
    """Whether there are trained weights for inference."""
    pretrained: Packaged | None = None
    """Published weights. Without a `recipe` they are used as they are."""
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
    quantisation: str = "static"
    """Default way of quantisation: `static`, or `dynamic` for transformers."""
    answers: tuple[str, ...] = ()
    """Names of the modules whose outputs are the answers. Stock's int8 keeps 8 bits for them, and 7 elsewhere."""
    tuned: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """For each stack, replaces modules before optimising, as the guide of the stack recommends."""
    tuned_training: Mapping[str, Callable[[Any, Workbench], Any]] = field(default_factory=dict)
    """The same before training, if it differs."""
    operators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each stack, the operators that must then run in a step, by their names in torch's profiler."""
    why_nots: Mapping[str, str] = field(default_factory=dict)
    """Reasons why the model does not support a mode, a dtype, or a dtype on a stack (`int8 on stock`)."""
    target: str = ""
    """The target of a user's own network that no file declares (`bench.own`), else empty."""

    @property
    def learned(self) -> bool:
        """Whether inference uses trained weights."""
        return self.trained or self.pretrained is not None

    @property
    def as_packaged(self) -> bool:
        """Whether inference uses the weights of a package unchanged."""
        return self.pretrained is not None and self.recipe is None

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        kinds = (cell.mode, cell.dtype, f"{cell.dtype} on {cell.stack}")
        reason = next((self.why_nots[kind] for kind in kinds if kind in self.why_nots), None)
        reason = reason or facts.missing(*self.needs)
        if reason is None and self.pretrained is not None:
            _, reason = self.pretrained.find()
        return reason

    def unfit(self, size: int) -> str | None:
        """Return why inputs cannot have this size, or None."""
        if size < self.least:
            return f"{self.name} takes inputs of at least {self.told(self.least)}: {self.told(size)} is too small"
        if self.most is not None and size > self.most:
            return f"{self.name} takes inputs of at most {self.told(self.most)}: {self.told(size)} is too large"
        return None

    def told(self, size: int) -> str:
        """Format an input size for people."""
        return registry.tasks.get(self.task).unit.format(size)

    def batch(self, mode: Mode) -> int:
        return mode.batch or (self.batch_train if mode.trains else self.batch_infer)
