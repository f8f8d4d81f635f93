"""The base classes of devices, stacks and modes. A leaf overrides what makes it different."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.bench import measure
from ipexperf.bench.lazy import torch
from ipexperf.case import Case, identify
from ipexperf.errors import WorkerError
from ipexperf.result import Check

if TYPE_CHECKING:
    from ipexperf.bench.facts import Facts
    from ipexperf.bench.fingerprint import Look
    from ipexperf.bench.knobs import Knob
    from ipexperf.bench.proof import Kernel
    from ipexperf.bench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the axes, before it is known whether it can run."""

    model: str
    device: str
    dtype: str
    mode: str
    stack: str
    knobs: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """The id that the case would have."""
        return identify(self)

    def knob(self, name: str) -> str | None:
        """Return the requested value of a knob, or None if it stays at its default."""
        return dict(self.knobs).get(name)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a worker besides its case. Sent to it as JSON."""

    load: tuple[str, ...] = ()
    threads: int | None = None
    seed: int = 0
    weights: str | None = None
    checkpoint: str | None = None
    """Path where training saves its checkpoint. None: do not save."""
    artifact: str | None = None
    """Path of the quantised network that an int8 case loads."""
    data_folder: str | None = None
    data_file: str | None = None
    train_steps: int | None = None
    """Number of steps of the mode `train`. None: as declared by the model."""
    placement: Mapping[str, Any] | None = None
    """Placement that the worker applies and proves (`bench.placement`). None: stay as started."""
    injected: str = ""
    """Slow-down to inject (`bench.injections`). Used by `ipexperf selftest` only."""
    forked: bool = False
    """Whether the worker is forked although its case has no `+start:fork`. The worker proves it."""
    shared: str | None = None
    """Folder for results that all workers of a run share (`bench.shared`). None: share nothing."""
    cards: Sequence[Mapping[str, str]] = ()
    """Variables for each process of a case with several, which give it a device of its own."""


class Device(ABC):
    """The hardware that a case runs on."""

    name: str
    called: tuple[str, ...] = ()
    """Other names that people use. They only serve for hints when such a name is refused."""
    accelerator: bool = False
    """Whether `torch.<name>.is_available()` must be asked, in a process that imports torch."""
    hosted: bool = False
    """Whether cases use the machine's own memory, so that whether they fit can be known in advance."""
    pulse: bool = False
    """Whether `bench.pulse` can measure the current speed of this device with torch."""

    @abstractmethod
    def why_not(self, facts: Facts) -> str | None:
        """Return why the device cannot be used here, or None."""

    def variables(self, index: int, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that give a worker this one of several such devices."""
        del index, environment
        return {}

    def yardstick(self, case: Case | Cell) -> tuple[str, str] | None:
        """Return the yardstick's work that resembles a case, and torch's name of its dtype, or None."""
        del case
        return None

    def start(self, settings: Settings) -> None:  # noqa: B027 - optional
        """Prepare the process before anything is built, such as threads and device index."""

    @abstractmethod
    def synchronise(self) -> None:
        """Wait until the device has finished all submitted work."""

    @abstractmethod
    def put(self, value: Any) -> Any:
        """Move a tensor or module to the device."""

    def pin(self, value: Any) -> Any:
        """Return a copy of the tensor in host memory from which `put` is fastest."""
        return value

    @abstractmethod
    def reset_peak_memory(self) -> None: ...

    @abstractmethod
    def peak_memory(self) -> int:
        """Return the peak memory since the reset in bytes, above the level at the reset."""

    def ceilings(self, say: Callable[[str], None]) -> dict[str, Any]:
        """Measure the peak rates of this device in operations and bytes per second (`bench.ceilings`)."""
        from ipexperf.bench import ceilings

        return ceilings.measure(self, say)

    def describe(self) -> dict[str, Any]:
        """Return name, driver and properties for the environment record."""
        return {"name": self.name}

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        """Return evidence that steps ran on this device, if the device can tell."""
        del step, block
        return []

    def metrics(self, step: Callable[[], Any], block: int) -> dict[str, float]:
        """Return further metrics of steps that the device measures (`result.METRICS`). Called after sampling."""
        del step, block
        return {}

    def notes(self) -> list[str]:
        """Return notes on the device for readers of the numbers."""
        return []


class Stack(ABC):
    """The software that optimises a network."""

    name: str
    knobs: tuple[Knob, ...] = ()

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    def start(self) -> None:  # noqa: B027 - optional
        """Import what the stack needs, or check that what must be absent is absent."""

    @abstractmethod
    def for_inference(self, network: Any, example: Any, bench: Workbench) -> Any: ...

    @abstractmethod
    def for_training(self, network: Any, optimizer: Any, bench: Workbench) -> tuple[Any, Any]: ...

    def streamed(self, network: Any, cores: Sequence[int], streams: int) -> Any:
        """Return a network that runs in several streams, each with a part of the cores and of every batch."""
        del network, cores, streams
        raise WorkerError("error", f"{self.name} has no streams")

    def parts(self, network: Any) -> list[int]:
        """Return how many images of the last batch each stream of a `streamed` network got."""
        del network
        return []

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        """Convert a network to int8, calibrated on these batches. Without batches, return one to load a state into."""
        del network, example, batches
        raise WorkerError("error", f"{self.name} has no int8: {bench.case.id} cannot be made")

    def compiled(self, network: Any, example: Any, bench: Workbench) -> Any:
        """Return the network under `torch.compile`, in the way this stack recommends. Its first call compiles."""
        return torch.compile(self.for_inference(network, example, bench))

    def proof_of_code(self, network: Any, code: str, bench: Workbench) -> list[Check]:
        """Return evidence from a `compiled` network and the Python code that inductor generated for it."""
        del network, code, bench
        return []

    def kernels(self, step: Callable[[], Any], bench: Workbench) -> list[Kernel]:
        """Return the arithmetic kernels that a step really ran."""
        del bench
        from ipexperf.bench import proof

        return proof.profiled(step)

    def proof_of_inference(self, network: Any, bench: Workbench) -> list[Check]:
        """Return evidence from the optimised modules."""
        del network, bench
        return []

    def proof_of_graph(self, graph: str, bench: Workbench) -> list[Check]:
        """Return evidence from the frozen graph after it ran."""
        del graph, bench
        return []

    def proof_of_training(self, network: Any, optimizer: Any, bench: Workbench) -> list[Check]:
        del network, optimizer, bench
        return []

    def notes(self, bench: Workbench) -> list[str]:
        """Return notes on the stack, such as a setting that it accepts and ignores on this device."""
        del bench
        return []

    def notes_of_training(self, optimizer: Any, bench: Workbench) -> list[str]:
        """Return notes on training, such as an optimizer that the stack does not optimise."""
        del optimizer, bench
        return []


@dataclass(frozen=True, slots=True)
class Quantised:
    """A network in int8, its observers as text for a file, and a short description of how it was made."""

    network: Any
    observers: str
    told: str


class Session(ABC):
    """A case that is ready to run steps."""

    elsewhere: bool = False
    """Whether other processes run the steps, so that the worker's own device has no evidence of them."""

    @abstractmethod
    def step(self) -> None:
        """Run one step: what the case measures."""

    @abstractmethod
    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        """Return accuracy metrics and checks of their bounds. Called after all sampling."""

    @abstractmethod
    def proof(self) -> list[Check]:
        """Return evidence that the case ran as its label says. Called after warm-up."""

    def sample(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, float, float]]:
        """Time `count` blocks of steps. If other processes run the steps, they time them."""
        return measure.sample(self.step, synchronise, count, block)

    def items(self, batch: int) -> int:
        """Return the number of examples in a step. By default one batch."""
        return batch

    def peak_memory(self, device: Device) -> int:
        """Return the peak memory since the session began to be built in bytes, over all its processes."""
        return device.peak_memory()

    def metrics(self) -> dict[str, float]:
        """Return further metrics that this mode measures (`result.METRICS`). Called after sampling."""
        return {}

    def notes(self) -> list[str]:
        """Return notes for readers of the numbers, such as a setting that the software ignored."""
        return []

    def looks(self, device: Device) -> Mapping[str, Look]:
        """Return the functions that collect the fingerprint, by name. Empty if a step cannot be repeated."""
        del device
        return {}

    def fingerprint(self, device: Device) -> dict[str, Any] | None:
        """Return the fingerprint of a step, or None if there is none. Called after all sampling."""
        from ipexperf.bench import fingerprint

        looks = self.looks(device)
        return fingerprint.capture(looks) if looks else None

    def close(self) -> None:  # noqa: B027 - optional
        """End what the session started. Not called if the worker is killed."""


class Mode(ABC):
    """What a case does with a model."""

    name: str
    trains: bool = False
    family: str = ""
    """The kind of step. Modes of one family are compared in the same rounds. Empty: the family of all modes that
    train, or of all that infer a batch."""
    plain: str = ""
    """The plain mode of its kind, which tables compare it with: `infer` for `infer_jit`. Empty: this mode itself."""
    cold: bool = False
    """Whether only the first step of a process is measured, without warm-up."""
    artifact: str = ""
    """What int8 cases of this mode load: `script`, `state` or `program`. Empty: this mode has no int8."""
    fresh: str = ""
    """Why launches must not be forked from a process that has imported everything. Empty: they may be."""
    knobs: tuple[Knob, ...] = ()
    batch: int | None = None
    """Batch of its cases. None: the model's."""

    openmp: str = ""
    """The OpenMP runtime that this mode requires. It is always preloaded for its workers."""

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    def unfit(self, cell: Cell, batch: int, threads: int | None) -> str | None:
        """Return why the mode cannot use this batch or this requested number of threads, or None."""
        del cell, batch, threads
        return None

    def shares(self, case: Case, cores: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the cores of each worker that answers requests at the same time. Empty: one worker with all cores."""
        del case, cores
        return []

    def processes(self, case: Case | Cell) -> int:
        """Return how many processes share the case, each on a device of its own if there are several."""
        del case
        return 1

    @abstractmethod
    def open(self, bench: Workbench) -> Session: ...
