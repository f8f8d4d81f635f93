"""What a device, a stack and a mode are. Each leaf overrides what makes it different."""

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
        """The name for people, as the case would have it."""
        return identify(self)

    def knob(self, name: str) -> str | None:
        """What was asked of this knob, or None where it stays at its default."""
        return dict(self.knobs).get(name)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker is told beside its case. Travels as JSON."""

    load: tuple[str, ...] = ()
    threads: int | None = None
    seed: int = 0
    weights: str | None = None
    checkpoint: str | None = None
    """Where training saves what it learned; None: nowhere."""
    artifact: str | None = None
    """The quantised network that an int8 case loads."""
    data_folder: str | None = None
    data_file: str | None = None
    train_steps: int | None = None
    """So far the mode `train` goes; None: as far as the model says."""
    placement: Mapping[str, Any] | None = None
    """What the worker applies to itself, and proves: see `bench.placement`. None: it stays as it was started."""
    injected: str = ""
    """What slows the case down on purpose: see `bench.injections`. Only the judge's own test says so."""
    forked: bool = False
    """Whether the worker is forked although its case has no `+start:fork`: the worker proves that it is."""
    shared: str | None = None
    """Folder for results that all workers of a run would compute alike (`bench.shared`); None: share nothing."""
    cards: Sequence[Mapping[str, str]] = ()
    """For each of several processes of a case, what its environment must say for it to have a device of its own."""


class Device(ABC):
    """Where a case runs."""

    name: str
    called: tuple[str, ...] = ()
    """What people call it as well: a hint where such a name is refused, never another spelling of it."""
    accelerator: bool = False
    """Whether torch must be asked for it, as `torch.<name>.is_available()`: a process that imports torch."""
    hosted: bool = False
    """Whether a case lies in the machine's own memory, so that it can be known beforehand whether it fits."""
    pulse: bool = False
    """Whether torch computes here, so that `bench.pulse` can say how quick it is just now."""

    @abstractmethod
    def why_not(self, facts: Facts) -> str | None:
        """Why it can't be used here, or None."""

    def variables(self, index: int, environment: Mapping[str, str]) -> dict[str, str]:
        """What the environment of a worker must say for it to have this one of several such devices."""
        del index, environment
        return {}

    def yardstick(self, case: Case | Cell) -> tuple[str, str] | None:
        """The work of the yardstick that is of the kind of a case here, and its dtype as torch calls it, or None."""
        del case
        return None

    def start(self, settings: Settings) -> None:  # noqa: B027 - most devices have nothing to do
        """Makes the process ready, before anything is built: threads, index."""

    @abstractmethod
    def synchronise(self) -> None:
        """Waits until everything that was asked of the device is done."""

    @abstractmethod
    def put(self, value: Any) -> Any:
        """Moves a tensor or module there."""

    def pin(self, value: Any) -> Any:
        """The tensor in host memory from which `put` is quickest."""
        return value

    @abstractmethod
    def reset_peak_memory(self) -> None: ...

    @abstractmethod
    def peak_memory(self) -> int:
        """Bytes that were taken at the highest point since the reset, beyond what there was at the reset."""

    def ceilings(self, say: Callable[[str], None]) -> dict[str, Any]:
        """What can be done here at most, in operations and bytes a second, as `bench.ceilings` writes it down."""
        from ipexperf.bench import ceilings

        return ceilings.measure(self, say)

    def describe(self) -> dict[str, Any]:
        """Name, driver and properties, for the environment record."""
        return {"name": self.name}

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        """Evidence that steps ran here, whatever their mode: for a device that can be asked."""
        del step, block
        return []

    def metrics(self, step: Callable[[], Any], block: int) -> dict[str, float]:
        """What the device tells of steps beside their time, by names of `result.METRICS`. Called after sampling."""
        del step, block
        return {}

    def notes(self) -> list[str]:
        """What a reader of the numbers must know of the device."""
        return []


class Stack(ABC):
    """The software that optimises."""

    name: str
    knobs: tuple[Knob, ...] = ()

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    def start(self) -> None:  # noqa: B027 - a stack may have nothing to import
        """Imports what the stack needs, or proves that what it must not have is absent."""

    @abstractmethod
    def for_inference(self, network: Any, example: Any, bench: Workbench) -> Any: ...

    @abstractmethod
    def for_training(self, network: Any, optimizer: Any, bench: Workbench) -> tuple[Any, Any]: ...

    def streamed(self, network: Any, cores: Sequence[int], streams: int) -> Any:
        """A network that gives each of several streams its part of the cores, and of every batch."""
        del network, cores, streams
        raise WorkerError("error", f"{self.name} has no streams")

    def parts(self, network: Any) -> list[int]:
        """How many images of the last batch each stream of a network got, as `streamed` returned it."""
        del network
        return []

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        """Converts a network to int8, calibrated on these batches; without any it is an empty form, to be filled."""
        del network, example, batches
        raise WorkerError("error", f"{self.name} has no int8: {bench.case.id} cannot be made")

    def compiled(self, network: Any, example: Any, bench: Workbench) -> Any:
        """The network under `torch.compile`, as this stack is to be used with it: its first call compiles."""
        return torch.compile(self.for_inference(network, example, bench))

    def proof_of_code(self, network: Any, code: str, bench: Workbench) -> list[Check]:
        """Evidence in what `compiled` returned, and in the Python code that inductor generated for it."""
        del network, code, bench
        return []

    def kernels(self, step: Callable[[], Any], bench: Workbench) -> list[Kernel]:
        """The arithmetic that one step really did."""
        del bench
        from ipexperf.bench import proof

        return proof.profiled(step)

    def proof_of_inference(self, network: Any, bench: Workbench) -> list[Check]:
        """Evidence in the optimised modules."""
        del network, bench
        return []

    def proof_of_graph(self, graph: str, bench: Workbench) -> list[Check]:
        """Evidence in the frozen graph after it ran."""
        del graph, bench
        return []

    def proof_of_training(self, network: Any, optimizer: Any, bench: Workbench) -> list[Check]:
        del network, optimizer, bench
        return []

    def notes(self, bench: Workbench) -> list[str]:
        """What a reader must know of what the stack does: a setting that it takes on this device and ignores."""
        del bench
        return []

    def notes_of_training(self, optimizer: Any, bench: Workbench) -> list[str]:
        """What a reader must know of how the stack trains: an optimizer that it leaves as it is."""
        del optimizer, bench
        return []


@dataclass(frozen=True, slots=True)
class Quantised:
    """A network in int8, its observers as text for a file, and in a few words how it was made."""

    network: Any
    observers: str
    told: str


class Session(ABC):
    """A case that is ready to be stepped."""

    elsewhere: bool = False
    """Whether other processes make the steps: the device that the worker itself has then knows nothing of them."""

    @abstractmethod
    def step(self) -> None:
        """Does once what the case measures."""

    @abstractmethod
    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        """Metrics and the bounds that they had to keep. Called after all sampling."""

    @abstractmethod
    def proof(self) -> list[Check]:
        """Evidence that the case ran as its label says. Called after warm-up."""

    def sample(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, float, float]]:
        """Times `count` blocks of steps. A mode whose steps are made by other processes lets those time them."""
        return measure.sample(self.step, synchronise, count, block)

    def items(self, batch: int) -> int:
        """How many examples one step works off: one batch, where the mode says nothing else."""
        return batch

    def peak_memory(self, device: Device) -> int:
        """Bytes that the session took at the highest point since it began to be built, in all processes that it has."""
        return device.peak_memory()

    def metrics(self) -> dict[str, float]:
        """What this mode measures beside the time of its steps, by names of `result.METRICS`. Called after sampling."""
        return {}

    def notes(self) -> list[str]:
        """What a reader of the numbers must know: a setting that the software ignored, a dtype that is emulated."""
        return []

    def looks(self, device: Device) -> Mapping[str, Look]:
        """What the fingerprint can look at, by name; nothing: what this mode does cannot be done again."""
        del device
        return {}

    def fingerprint(self, device: Device) -> dict[str, Any] | None:
        """What a step runs, without noise, or None where nothing can be looked at. Called after all sampling."""
        from ipexperf.bench import fingerprint

        looks = self.looks(device)
        return fingerprint.capture(looks) if looks else None

    def close(self) -> None:  # noqa: B027 - most sessions hold nothing but memory
        """Ends what the session started. A worker that is killed never comes here."""


class Mode(ABC):
    """What is done with a model."""

    name: str
    trains: bool = False
    family: str = ""
    """The kind of step that it does: modes of one family are compared in one round. Empty: all that train, or all that
    answer a batch."""
    cold: bool = False
    """Its one step is the first of its process: it is timed once a launch, and nothing is warmed up before."""
    artifact: str = ""
    """What an int8 case loads in this mode: `script`, `state` or `program`; empty: this mode has no int8."""
    fresh: str = ""
    """Why a launch is never forked from a process that has imported everything; empty: it may be."""
    knobs: tuple[Knob, ...] = ()
    batch: int | None = None
    """The batch of its cases, whatever the model's; None: the model's."""

    openmp: str = ""
    """The OpenMP runtime without which it is nothing: preloaded for its workers, be it asked for or not."""

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    def unfit(self, cell: Cell, batch: int, threads: int | None) -> str | None:
        """Why the mode cannot have this batch, or so many threads where they were asked for, or None."""
        del cell, batch, threads
        return None

    def shares(self, case: Case, cores: Sequence[int]) -> list[tuple[int, ...]]:
        """The cores of each of the workers that answer at the same time; none: one worker alone, with all of them."""
        del case, cores
        return []

    def processes(self, case: Case | Cell) -> int:
        """How many processes share the work of the case, each on a device of its own where there are several."""
        del case
        return 1

    @abstractmethod
    def open(self, bench: Workbench) -> Session: ...
