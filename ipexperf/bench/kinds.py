"""What a device, a stack, a mode, a model and a dataset are. Each leaf overrides what makes it different."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ipexperf.case import Case
from ipexperf.result import Check

if TYPE_CHECKING:
    from ipexperf.bench.facts import Facts


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the axes, before it is known whether it can run."""

    model: str
    device: str
    dtype: str
    mode: str
    stack: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker is told beside its case. Travels as JSON."""

    load: tuple[str, ...] = ()
    threads: int | None = None
    seed: int = 0
    weights: str | None = None
    data_folder: str | None = None
    data_file: str | None = None
    train_steps: int = 66


class Device(ABC):
    """Where a case runs."""

    name: str

    @abstractmethod
    def why_not(self, facts: Facts) -> str | None:
        """Why it can't be used here, or None."""

    def start(self, settings: Settings) -> None:  # noqa: B027 - most devices have nothing to do
        """Makes the process ready, before anything is built: threads, index."""

    @abstractmethod
    def synchronise(self) -> None:
        """Waits until everything that was asked of the device is done."""

    @abstractmethod
    def put(self, value: Any) -> Any:
        """Moves a tensor or module there."""

    @abstractmethod
    def reset_peak_memory(self) -> None: ...

    @abstractmethod
    def peak_memory(self) -> int:
        """Bytes at the highest point since the reset."""

    def describe(self) -> dict[str, Any]:
        """Name, driver and properties, for the environment record."""
        return {"name": self.name}


class Stack(ABC):
    """The software that optimises."""

    name: str

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    def start(self) -> None:  # noqa: B027 - a stack may have nothing to import
        """Imports what the stack needs, or proves that what it must not have is absent."""

    @abstractmethod
    def for_inference(self, network: Any, dtype: str, example: Any) -> Any: ...

    @abstractmethod
    def for_training(self, network: Any, optimizer: Any, dtype: str) -> tuple[Any, Any]: ...

    def kernel_dtypes(self, step: Callable[[], Any], device: str) -> Counter[str]:
        """The dtypes that one step's arithmetic ran in, counted."""
        del device
        from ipexperf.bench import proof

        return proof.profiled_dtypes(step)

    def proof_of_inference(self, network: Any, dtype: str) -> list[Check]:
        """Evidence in the optimised modules."""
        del network, dtype
        return []

    def proof_of_graph(self, graph: str, dtype: str) -> list[Check]:
        """Evidence in the frozen graph after it ran."""
        del graph, dtype
        return []

    def proof_of_training(self, network: Any, optimizer: Any, dtype: str) -> list[Check]:
        del network, optimizer, dtype
        return []


@dataclass(frozen=True, slots=True)
class Workbench:
    """Everything a mode needs to open a session."""

    case: Case
    model: Model
    device: Device
    stack: Stack
    dataset: Dataset
    settings: Settings
    say: Callable[[str], None]


class Session(ABC):
    """A case that is ready to be stepped."""

    @abstractmethod
    def step(self) -> None:
        """Does once what the case measures."""

    @abstractmethod
    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        """Metrics and the bounds that they had to keep. Called after all sampling."""

    @abstractmethod
    def proof(self) -> list[Check]:
        """Evidence that the case ran as its label says. Called after warm-up."""


class Mode(ABC):
    """What is done with a model."""

    name: str
    trains: bool = False

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    @abstractmethod
    def open(self, bench: Workbench) -> Session: ...


@dataclass(frozen=True, slots=True)
class Model:
    """A network and what a practitioner feeds it."""

    name: str
    build: Callable[[], Any]
    size: int
    batch_train: int
    batch_infer: int
    version: int = 1
    data: str = "digits"
    channels_last: bool = True
    needs: tuple[str, ...] = ("torch",)
    learning_rate: float = 0.02
    trained: bool = True
    """Inference runs on weights that were trained; a model that has none of that kind says False."""
    why_nots: Mapping[str, str] = field(default_factory=dict)
    """Modes or dtypes in which the model makes no sense, each with its reason."""

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return self.why_nots.get(cell.mode) or self.why_nots.get(cell.dtype) or facts.missing(*self.needs)

    def batch(self, mode: Mode) -> int:
        return self.batch_train if mode.trains else self.batch_infer


@dataclass(frozen=True, slots=True)
class Split:
    """Images and labels as tensors: float32 N x 3 x size x size, int64 N."""

    train_images: Any
    train_labels: Any
    test_images: Any
    test_labels: Any


class Dataset(ABC):
    """Real examples, or generated ones that say so."""

    name: str
    classes: int
    chance: float

    @abstractmethod
    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        """Looks for the data without torch: (its path, why it can't be had); one of the two is None."""

    @abstractmethod
    def read(self, path: str, size: int) -> Split: ...
