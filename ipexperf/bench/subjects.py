"""What is measured: a model, the task that it does, and the data that it does it on. Each leaf is one file."""

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
"""Dimensions of a batch of images: examples, channels, height, width."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples as tensors whose first dimension counts them: what a network is given, and what would be right."""

    inputs: Tensors
    targets: Tensors

    def __len__(self) -> int:
        return len(self.inputs[0])

    @property
    def tensors(self) -> Tensors:
        """Inputs and targets, as a batch of training has them."""
        return (*self.inputs, *self.targets)

    def part(self, which: Any) -> Examples:
        """Those of these numbers, or of this slice."""
        return Examples(tuple(x[which] for x in self.inputs), tuple(x[which] for x in self.targets))


@dataclass(frozen=True, slots=True)
class Split:
    """What a network learns from, and what it is judged by."""

    train: Examples
    test: Examples


class Dataset(ABC):
    """Real examples, or generated ones that say so."""

    name: str
    licence: str = "not stated"
    """Under what its examples may be used, as whoever publishes them says."""

    @abstractmethod
    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        """Looks for the data without torch: (its path, why it can't be had); one of the two is None."""

    @abstractmethod
    def read(self, path: str, size: int) -> Split:
        """The examples, at the size that the model has them in."""

    def files(self, path: str) -> list[Path]:
        """What the examples are read from: whatever is made of them is known by these files."""
        found = Path(path)
        return [found] if found.is_file() else sorted(file for file in found.rglob("*") if file.is_file())


class Task(ABC):
    """What a network is for: how it learns, and how good its answers are."""

    name: str
    metric: str
    """What `score` is, in words."""
    unit: str = "{0} x {0}"
    """How a size is told to people."""
    inputs: int = 1
    """How many tensors a network is given at once."""
    scored: bool = True
    """Whether anybody knows what the right answers are: without them there is fidelity alone."""
    least: float = 1 / 3
    """A training must come this share of the way from the trivial predictor's score to 1."""

    @abstractmethod
    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """What training makes smaller."""

    def learn(self, network: Any, inputs: Tensors, targets: Tensors) -> tuple[Any, Tensors]:
        """The loss of a batch, and the outputs: for a network that makes its own loss, another way."""
        outputs = tensors(network(*inputs))
        return self.loss(outputs, targets), outputs

    def compared(self, outputs: Tensors) -> Any:
        """The numbers whose distance from float64 is fidelity."""
        return outputs[0]

    @abstractmethod
    def agreement(self, outputs: Tensors, known: Tensors) -> float:
        """The share of decisions that are the same as the reference's."""

    @abstractmethod
    def score(self, outputs: Tensors, targets: Tensors) -> float:
        """How good the answers are, from 0 to 1."""

    def metrics(self, outputs: Tensors, targets: Tensors) -> dict[str, float]:
        """What is told of the answers beside their score, by names of `result.METRICS`."""
        del outputs, targets
        return {}

    @abstractmethod
    def trivial(self, split: Split) -> float:
        """The score of whoever answers the same to everything, as well as that can be done."""

    def floor(self, trivial: float) -> float:
        """The least score of a training that trained."""
        return trivial + self.least * (1 - trivial)


def tensors(raw: Any) -> Tensors:
    """What a network answers, as plain tensors: alone, in a tuple, a list, a mapping or a dataclass of them."""
    found = tuple(_tensors(raw))
    if not found:
        raise WorkerError("error", f"the network answers with {_told(raw)}, and a tensor was expected")
    return found


def _tensors(raw: Any) -> Iterator[Any]:
    if isinstance(raw, (torch.Tensor, torch.fx.Proxy)):  # what stands for a tensor while torch.fx follows a network
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
    """Trained weights that come in a package: found without importing it, known by their sum."""

    package: str
    file: str
    sha256: str
    adapt: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Makes the network's own names of those in the file."""

    def find(self) -> tuple[str | None, str | None]:
        """Looks for the file: (its path, why it can't be had); one of the two is None."""
        try:
            path = Path(str(importlib.metadata.distribution(self.package).locate_file(self.file)))
        except importlib.metadata.PackageNotFoundError:
            return None, f"its trained weights come with {self.package}, which is not installed: see make data"
        return (str(path), None) if path.is_file() else (None, f"{self.package} has no {self.file}")

    def check(self, path: str) -> None:
        """Refuses a file that is another than the known one."""
        found = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if found != self.sha256:
            raise WorkerError("error", f"{path} is not the known {self.file} of {self.package}: sha256 {found}")


@dataclass(frozen=True, slots=True)
class Model:
    """A network and what a practitioner feeds it."""

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
    """So many steps give it the weights that inference has: a deep network needs more of them."""
    recipe: Callable[[Workbench, Split, Any], None] | None = None
    """Gives the network the weights that inference has in another way than by such steps."""
    resized: Callable[[Workbench, Split, Any], None] | None = None
    """Fits weights that were trained at `size` to another size; None: they are trained at that one."""
    train_steps: int = 66
    """So many steps in all the mode `train` makes before it looks at what was learned."""
    settles: int = 0
    """Over so many of the last steps the learning rate falls to nothing: for a score that jumps from step to step."""
    trained: bool = True
    """Inference runs on weights that were trained; a model that has none of that kind says False."""
    pretrained: Packaged | None = None
    """Weights that somebody else trained: where there is no `recipe` that goes on from them, none are trained here."""
    normal: int | None = None
    """The size at which others publish its speed; None: it has none but `size`."""
    least: int = 1
    """Smaller inputs come to nothing on their way through it."""
    most: int | None = None
    """Larger inputs are more than it was made for; None: there are none."""
    published: Mapping[str, int] = field(default_factory=dict)
    """For a dtype, the batch of inference with which the vendor published its speed: preset `full` has it."""
    held_out: int = 256
    """Held-out examples that fidelity looks at: enough for agreement, few enough for float64."""
    quantisation: str = "static"
    """How it becomes int8 where nothing is asked for: `static`, or `dynamic` for a transformer."""
    answers: tuple[str, ...] = ()
    """Parts whose outputs are its answers, only joined behind them: int8 rounds them less than what is computed on."""
    tuned: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """For a stack, what its guide has a practitioner replace in the network before it is optimised."""
    tuned_training: Mapping[str, Callable[[Any, Workbench], Any]] = field(default_factory=dict)
    """The same before it is trained, where that is something else."""
    operators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For a stack, the operators that must then run in a step, as torch's profiler names them."""
    why_nots: Mapping[str, str] = field(default_factory=dict)
    """Modes, dtypes, or a dtype on a stack (`int8 on stock`) in which the model makes no sense, and the reasons."""
    target: str = ""
    """What names it, where it is a network of the user's own that nothing declared: see `bench.own`."""

    @property
    def learned(self) -> bool:
        """Whether inference runs on weights that somebody trained."""
        return self.trained or self.pretrained is not None

    @property
    def as_packaged(self) -> bool:
        """Whether inference runs on the weights of a package as they are."""
        return self.pretrained is not None and self.recipe is None

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        kinds = (cell.mode, cell.dtype, f"{cell.dtype} on {cell.stack}")
        reason = next((self.why_nots[kind] for kind in kinds if kind in self.why_nots), None)
        reason = reason or facts.missing(*self.needs)
        if reason is None and self.pretrained is not None:
            _, reason = self.pretrained.find()
        return reason

    def unfit(self, size: int) -> str | None:
        """Why its inputs can't have this size, or None."""
        if size < self.least:
            return f"{self.name} takes inputs of at least {self.told(self.least)}: {self.told(size)} is too small"
        if self.most is not None and size > self.most:
            return f"{self.name} takes inputs of at most {self.told(self.most)}: {self.told(size)} is too large"
        return None

    def told(self, size: int) -> str:
        """A size of its inputs, for people."""
        return registry.tasks.get(self.task).unit.format(size)

    def batch(self, mode: Mode) -> int:
        return mode.batch or (self.batch_train if mode.trains else self.batch_infer)
