"""Stacks and modes, the workbench that they get for a case, and the session that a mode opens on it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ipexperf.bench import measure
from ipexperf.bench.cell import Cell, Settings
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.device import Device
from ipexperf.bench.knob import Knob
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Dataset, Examples, Model, Task, Tensors
from ipexperf.case import Case, NetworkCase
from ipexperf.dtypes import quantised
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Check

TRAINING, INFERENCE = "training", "inference"
TRACED, EXPORTED, COMPILED = "traced", "exported", "compiled"
GRAPHS = ("", TRACED, EXPORTED, COMPILED)
"""The values of `Mode.graph`, from the network as it is to the one that is changed most."""
IMAGES = 4
"""Number of dimensions of a batch of images: examples, channels, height, width."""


class Stack(ABC):
    """The software that optimises a network."""

    name: str
    knobs: tuple[Knob, ...] = ()
    by_name: bool = False
    """True if it must be requested by name: neither presets nor `all` include it."""
    scripts: Mapping[str, Callable[[Cell], tuple[str, ...]]] = {}
    """For methods of this stack, such as `for_inference`, the lines of a user's script that do the same."""
    packs: tuple[str, ...] = ()
    """The values of the knob `weights` for which it can pack weights (`weight_only`)."""
    replaces_on: tuple[str, ...] | None = None
    """The devices for which it has what models replace for it (`Model.tuned`). None: all."""

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    def start(self) -> None:  # noqa: B027 - optional
        """Import what the stack needs, or check that what must be absent is absent."""

    @abstractmethod
    def for_inference(self, network: Any, example: Any, bench: Workbench) -> Any: ...

    @abstractmethod
    def for_training(self, network: Any, optimizer: Any, bench: Workbench) -> tuple[Any, Any]: ...

    def script(self, method: str, cell: Cell) -> tuple[str, ...]:
        """Return the lines of a user's script that do what a method of this stack does.

        They replace `model`, which infers `inputs`, a tuple. Empty: a script needs nothing for it.
        """
        return self.scripts[method](cell) if method in self.scripts else ()

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        """Convert a network to int8, calibrated on these batches. Without batches, return one to load a state into."""
        raise WorkerError("error", f"{self.name} has no int8: {bench.case.id} cannot be made")

    def weight_only(self, network: Any, example: Any, bench: Workbench) -> Any:
        """Return the network with packed weights of fewer bits, as the knobs `weights` and `weight_group` say."""
        raise WorkerError("error", f"{self.name} has no weight-only quantisation: {bench.case.id} cannot be made")

    def proof_of_weights(self, network: Any, step: Callable[[], Any], expected: int, bench: Workbench) -> list[Check]:
        """Return evidence that a step of a `weight_only` network ran as many packed layers as expected."""
        return []

    def compiled(self, network: Any, example: Any, bench: Workbench) -> Any:
        """Return the network under `torch.compile`, in the way this stack recommends. Its first call compiles."""
        return torch.compile(self.for_inference(network, example, bench))

    def proof_of_code(self, network: Any, code: str, arguments: int, bench: Workbench) -> list[Check]:
        """Return evidence from a `compiled` network and the Python code that inductor generated for it.

        `arguments` is the number of tensors that a step gives it.
        """
        return []

    def compiled_training(self, network: Any, bench: Workbench) -> Any:
        """Return a network from `for_training` under `torch.compile`. The first step compiles it."""
        return torch.compile(network)

    def proof_of_compiled_training(self, network: Any, bench: Workbench) -> list[Check]:
        """Return evidence from a network that `compiled_training` returned, besides `proof_of_training`."""
        return []

    def kernels(self, step: Callable[[], Any], bench: Workbench) -> list[Kernel] | None:
        """Return the arithmetic kernels that a step really ran. None: those that torch's profiler shows."""
        return None

    def proof_of_inference(self, network: Any, bench: Workbench) -> list[Check]:
        """Return evidence from the optimised modules."""
        return []

    def proof_of_graph(self, graph: str, bench: Workbench) -> list[Check]:
        """Return evidence from the frozen graph after it ran."""
        return []

    def proof_of_training(self, network: Any, optimizer: Any, bench: Workbench) -> list[Check]:
        return []

    def notes(self, bench: Workbench) -> list[str]:
        """Return notes on the stack, such as a setting that it accepts and ignores on this device."""
        return []

    def notes_of_training(self, optimizer: Any, bench: Workbench) -> list[str]:
        """Return notes on training, such as an optimizer that the stack does not optimise."""
        return []


class Execution:
    """In which processes a case runs, and what its samples are. A mode may say otherwise than most."""

    requests: bool = False
    """True if a sample is the latency of one request, so that its percentiles are compared too."""
    cold: bool = False
    """True if only the first step of a process is measured, without warm-up."""
    fresh: str = ""
    """Why launches must not be forked from a process that has imported everything. Empty: they may be."""
    openmp: str = ""
    """The OpenMP runtime that it requires. It is always preloaded for its workers."""

    def shares(self, case: Case, cores: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the cores of each worker that answers requests at the same time. Empty: one worker with all cores."""
        return []

    def processes(self, case: Case | Cell) -> int:
        """Return how many processes share the case, each on a device of its own if there are several."""
        return 1


class Mode(Execution, ABC):
    """The kind of step that a case measures on a model."""

    name: str
    trains: bool = False
    data_parallel: bool = False
    """True if several processes train copies of one network."""
    graph: str = ""
    """How the mode makes a graph of the network: `traced` (TorchScript), `exported`, `compiled`. Empty: not at all."""
    family: str = ""
    """The kind of step. Modes of one family are compared in the same rounds. Empty: the family of all modes that
    train, or of all that infer a batch."""
    kind: str = ""
    """The kind of step in words, for a mode with a family of its own: `real-time inference`. Empty: the family's name,
    or training or inference."""
    label: str = ""
    """The name of the mode in summaries: `eager` for `infer`. Empty: its own name."""
    plain: str = ""
    """The plain mode of its kind, which tables compare it with: `infer` for `infer_jit`. Empty: this mode itself."""
    artifact: str = ""
    """The kind of artifact that int8 cases load: `script`, `state` or `program`. Empty: this mode has no int8."""
    knobs: tuple[Knob, ...] = ()
    batch: int | None = None
    """Batch of its cases. None: the model's."""

    @property
    def traits(self) -> tuple[str, ...]:
        """The words by which knobs and models exclude modes: its name, `training` or `inference`, and its `graph`."""
        return (self.name, TRAINING if self.trains else INFERENCE, *filter(None, [self.graph]))

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        """Return why the mode cannot do this cell here, or None."""
        return None

    def unfit(self, cell: Cell, batch: int, threads: int | None) -> str | None:
        """Return why the mode cannot use this batch or this requested number of threads, or None."""
        return None

    def lacks(self, knob: Knob) -> str | None:
        """Return why no case of this mode can have the knob, or None."""
        reason = next((knob.barred[trait] for trait in self.traits if trait in knob.barred), None)
        if reason is None and knob.modes is not None and not set(knob.modes) & set(self.traits):
            reason = f"it is for {', '.join(knob.modes)}"
        return f"{self.name} has no knob {knob.name}: {reason}" if reason else None

    def batch_of(self, model: Model) -> int:
        """Return the batch of the model's cases if none is requested."""
        return self.batch or (model.batch_train if self.trains else model.batch_infer)

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        """Return the lines of a user's script that do this with `model` and `inputs`. Empty: none is written down."""
        return ()

    @abstractmethod
    def open(self, bench: Workbench) -> Session: ...


@dataclass(frozen=True, slots=True)
class Workbench:
    """Everything a mode needs to open a session."""

    case: NetworkCase
    model: Model
    device: Device
    mode: Mode
    stack: Stack
    dataset: Dataset
    task: Task
    settings: Settings
    say: Callable[[str], None]

    def knob(self, name: str) -> str:
        """Return the value of a knob: what the case requests, or the default."""
        turned = dict(self.case.knobs)
        if name in turned:
            return turned[name]
        for knob in (*self.mode.knobs, *self.stack.knobs):
            if knob.name == name:
                return knob.default(self.model, turned)
        raise UsageError(f"neither {self.mode.name} nor {self.stack.name} has a knob {name}")

    def at(self, size: int) -> Workbench:
        """Return a copy for another input size."""
        return dataclasses.replace(self, case=dataclasses.replace(self.case, size=size))

    @property
    def channels_last(self) -> bool:
        """True if images are in channels-last layout: as the case requests, else as the model declares."""
        chosen = dict(self.case.knobs).get("channels_last")
        return chosen == "on" if chosen else self.model.channels_last

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
            kind = "nothing" if network is None else f"a {type(network).__name__}"
            raise WorkerError("error", f"{self.model.name} is built as {kind}, and a torch.nn.Module was expected")
        if not any(True for _ in network.parameters()):
            why = "a stack has nothing to optimise and training has nothing to update"
            raise WorkerError("error", f"{self.model.name} has no parameters: {why}")
        return network

    def tuned(self, network: Any) -> Any:
        """Apply the replacements that the model declares for the case's stack."""
        if not self._replaces:
            return network
        train = self.model.tuned_training.get(self.stack.name) if self.mode.trains else None
        if train:
            return train(network, self)
        tune = self.model.tuned.get(self.stack.name)
        return tune(network) if tune else network

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators that must run because the network was tuned. int8 networks are converted, not tuned."""
        declared = self.model.operators.get(self.stack.name, ())
        return declared if self._replaces and not quantised(self.case.dtype) else ()

    @property
    def _replaces(self) -> bool:
        """Whether the stack has on the case's device what models declare for it."""
        devices = self.stack.replaces_on
        return devices is None or self.case.device in devices

    def turned(self, name: str) -> bool:
        """Return True if the case sets this knob."""
        return name in dict(self.case.knobs)


class Session(ABC):
    """A case that is ready to run steps."""

    warm_limit: float = measure.WARM_SECONDS
    """Seconds after which it need not step more to become warm."""
    elsewhere: bool = False
    """True if other processes run the steps, so that the worker's own device has no evidence of them."""
    compile_time: float | None = None
    """Seconds that making the graph of the network took, from the plain network to the first output, or in training to
    the end of the first step. None: no graph."""

    @property
    def generated(self) -> Sequence[str]:
        """The code that a compiler generated for its steps."""
        return ()

    def batch(self) -> Examples | None:
        """Return a batch as steps take it, for a script that does the same. None: it has none of its own."""
        return None

    @contextmanager
    def compiling(self, synchronise: Callable[[], None]) -> Iterator[None]:
        """Record the time of the block, in which the graph of the network is made."""
        begin = perf_counter()
        yield
        synchronise()
        self.compile_time = perf_counter() - begin

    @abstractmethod
    def step(self) -> None:
        """Run one step: what the case measures."""

    @abstractmethod
    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        """Return accuracy metrics and checks of their bounds, at least one. Called after all sampling."""

    def answers(self) -> dict[str, Any] | None:
        """Return a sketch of its answers (`proof.sketches`), or None. Called after `accuracy`."""
        return None

    @abstractmethod
    def proof(self) -> list[Check]:
        """Return evidence that the case ran as its label says. Called after warm-up."""

    def sample(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, float, float]]:
        """Time `count` blocks of steps. If other processes run the steps, they time them."""
        return measure.sample(self.step, synchronise, count, block)

    def items(self, batch: int) -> int:
        """Return the number of examples in a step. By default one batch."""
        return batch

    def memory(self, device: Device) -> dict[str, float]:
        """Return the metrics of memory (`Device.memory`), over all its processes."""
        return device.memory()

    def metrics(self) -> dict[str, float]:
        """Return further metrics that this mode measures (`result.METRICS`). Called after sampling."""
        return {}

    def notes(self) -> list[str]:
        """Return notes for readers of the numbers, such as a setting that the software ignored."""
        return []

    def looks(self, device: Device) -> Mapping[str, Look]:
        """Return the functions that collect the fingerprint, by name. Empty if a step cannot be repeated."""
        return {}

    def fingerprint(self, device: Device) -> dict[str, Any] | None:
        """Return the fingerprint of a step that other processes ran. None: it is made from `looks`."""
        return None

    def close(self) -> None:  # noqa: B027 - optional
        """End what the session started. Not called if the worker is killed."""


@dataclass(frozen=True, slots=True)
class Quantised:
    """A network in int8, its observers as text for a file, and a short description of how it was made."""

    network: Any
    observers: str
    recipe: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """An arithmetic kernel that ran: the dtypes of its operands, and the memory layout of its input images."""

    name: str
    operands: tuple[str, ...]
    layout: str = ""
    """`channels_last` or `contiguous`. Empty if it does not apply or cannot be determined."""
    implementation: str = ""
    """oneDNN's name of the kernel with its instructions, such as `brg_conv_fwd:avx2`. Empty for other libraries."""
    product: tuple[int, int, int] | None = None
    """Rows, columns and inner length of a matrix product in oneDNN's log."""

    @property
    def dtype(self) -> str:
        """The dtype of both operands, or both names if they differ."""
        return " x ".join(dict.fromkeys(self.operands))


@dataclass(frozen=True, slots=True)
class Captured:
    """The result of one look: its structure, the seconds of each row, and unparsed lines."""

    structure: Any
    seconds: list[float] | None = None
    unparsed: tuple[str, ...] = ()
    beside: Mapping[str, Any] = field(default_factory=dict)
    """Further facts that are not part of the digest."""


Look = Callable[[], Mapping[str, Captured | str]]
"""A function that captures one or several sections of a fingerprint. A text says why a section is missing."""
