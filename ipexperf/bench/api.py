"""The types of leaves: cells and settings, devices, stacks, modes, sessions, models, tasks, data sets, knobs.

One file, because each of them is defined by the others: a mode opens a session on a workbench, which holds a device, a
stack and a model. Most of `bench` imports this file, which imports almost nothing of it.
"""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipexperf.bench import measure
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case, identify
from ipexperf.dtypes import quantised
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Check

Tensors = tuple[Any, ...]
TRAINING, INFERENCE = "training", "inference"
TRACED, EXPORTED, COMPILED = "traced", "exported", "compiled"
GRAPHS = ("", TRACED, EXPORTED, COMPILED)
"""The values of `Mode.graph`, from the network as it is to the one that is changed most."""
IMAGES = 4
"""Number of dimensions of a batch of images: examples, channels, height, width."""


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
    """Placement that the worker applies and proves (`bench.machine.placement`). None: stay as started."""
    forked: bool = False
    """True if the worker must be forked. It proves that."""
    shared: str | None = None
    """Folder for results that all workers of a run share (`bench.shared`). None: share nothing."""
    cards: Sequence[Mapping[str, str]] = ()
    """Variables for each process of a case with several, which give it a device of its own."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Settings:
        """Read the settings of a request."""
        return cls(**{**document, "load": tuple(document["load"])})


@dataclass(frozen=True)
class Knob:  # no slots: subclasses set name and help as defaults
    """A setting of a mode or a stack. The default is the first of its values."""

    name: str
    help: str
    values: tuple[str, ...] = ("on", "off")
    modes: tuple[str, ...] | None = None
    """Traits of the modes that have this knob (`Mode.traits`). None: all modes of its owner."""
    dtypes: tuple[str, ...] | None = None
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Devices on which the software ignores the setting, with what it does instead."""
    barred: Mapping[str, str] = field(default_factory=dict)
    """Traits of the modes that cannot have this knob (`Mode.traits`), with the reasons."""

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        """Return the default value, given the requested values of the other knobs."""
        return self.values[0]

    def ablated(self, model: Model, beside: Mapping[str, str]) -> str:
        """Return the value that `--perf-ablate` compares with the default."""
        if len(self.values) != 2:
            raise UsageError(f"the knob {self.name} has no 'off': ablation is for knobs that are on or off")
        return next(value for value in self.values if value != self.default(model, beside))

    def wrong(self, value: str) -> str | None:
        """Return why a value is invalid, or None."""
        return None if value in self.values else f"expected one of {', '.join(self.values)}, got '{value}'"

    def unfit(self, mode: Mode) -> str | None:
        """Return why no case of this mode can have the knob, or None."""
        reason = next((self.barred[trait] for trait in mode.traits if trait in self.barred), None)
        if reason is None and self.modes is not None and not set(self.modes) & set(mode.traits):
            reason = f"it is for {', '.join(self.modes)}"
        return f"{mode.name} has no knob {self.name}: {reason}" if reason else None

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        """Return why this cell cannot have the knob although its mode can (`unfit`), or None."""
        if self.dtypes is not None and cell.dtype not in self.dtypes:
            return f"the knob {self.name} is for {', '.join(self.dtypes)}, not for {cell.dtype}"
        if cell.device in self.ignored:
            return f"the knob {self.name} would change nothing on {cell.device}: {self.ignored[cell.device]}"
        return None


@dataclass(frozen=True)
class Number(Knob):
    """A knob whose value is a whole number of at least 1. The first of `values` is its default."""

    def wrong(self, value: str) -> str | None:
        ok = value.isascii() and value.isdigit() and int(value) > 0
        return None if ok else f"expected a whole number of at least 1, got '{value}'"

    def ablated(self, model: Model, beside: Mapping[str, str]) -> str:
        raise UsageError(f"the knob {self.name} is a number: ablation is for knobs that are on or off")


@dataclass(frozen=True)
class ChannelsLast(Knob):
    """The knob for the channels-last layout of images. The default is the model's."""

    name: str = "channels_last"
    help: str = "images and weights laid out with their channels last (default: the model's)"

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        return "on" if model.channels_last else "off"


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
        raise WorkerError("error", f"the network answers with {_description(raw)}, and a tensor was expected")
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


def _description(raw: Any) -> str:
    return "nothing" if raw is None else f"a {type(raw).__name__} that holds no tensor"


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
    recipe: Callable[[Workbench, Split, Any], None] | None = None
    """A function that makes the weights for inference in another way than by training steps."""
    resized: Callable[[Workbench, Split, Any], None] | None = None
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
    tuned_training: Mapping[str, Callable[[Any, Workbench], Any]] = field(default_factory=dict)
    """The same before training, if it differs."""
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

    def why_not(self, cell: Cell, mode: Mode, facts: Facts) -> str | None:
        """Return why the model cannot do this cell, whose mode is `mode`, or None."""
        kinds = [kind for name in (*mode.traits, cell.dtype) for kind in (name, f"{name} on {cell.stack}")]
        reason = next((self.why_nots[kind] for kind in kinds if kind in self.why_nots), None)
        return reason or facts.missing(*self.needs)

    def batch(self, mode: Mode) -> int:
        return mode.batch or (self.batch_train if mode.trains else self.batch_infer)


class Device(ABC):
    """The hardware that a case runs on."""

    name: str
    called: tuple[str, ...] = ()
    """Other names that people use. They only serve for hints when such a name is refused."""
    vendor: str = ""
    """The vendor's number on the PCI bus."""
    accelerator: bool = False
    """True if only torch can tell whether it is there (`torch.<name>.is_available()`): the plan then imports torch."""
    hosted: bool = False
    """True if cases use the machine's own memory, so that we can tell in advance if they fit."""

    float32_in: tuple[str, ...] = ("mkldnn",)
    """The libraries of `torch.backends` that compute float32 on it."""
    float32_variables: tuple[str, ...] = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
    """The variables that let them compute in fewer bits, whatever torch's settings say."""
    quantizer: str = ""
    """The quantizer of PT2E whose patterns inductor lowers to int8 on it: `x86` of `X86InductorQuantizer`."""
    dynamic_scales: bool = False
    """True if that quantizer also leaves scales to each step."""
    collective: str = "gloo"
    """The backend of torch.distributed that carries gradients between processes with a device each."""
    oneccl: bool = False
    """True if Intel's oneCCL can carry them too."""
    apart: str = ""
    """What to look at if such processes do not reach one another."""

    @property
    def double(self) -> bool:
        """True if it computes in float64."""
        return True

    @abstractmethod
    def why_not(self, facts: Facts) -> str | None:
        """Return why the device cannot be used here, or None."""

    def uncompiled(self, facts: Facts) -> str | None:
        """Return why torch cannot compile for the device here, or None."""
        return facts.uncompiled()

    def variables(self, index: int, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that give a worker this one of several such devices. The first one names it."""
        return {}

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

    def held_memory(self) -> int | None:
        """Return the bytes that the process holds now, above the level at the reset. None: the device cannot tell."""
        return None

    def room(self) -> float | None:
        """Return the share of the device's own memory that no process has. None: it has none, or cannot tell."""
        return None

    def taken(self) -> float:
        """Return the share of the device's own memory that this process has."""
        return 0.0

    def warmed(self) -> None:  # noqa: B027 - optional
        """Called once the steps are warm, before the samples: memory that grows from here on grows with the steps."""

    def peaks(self) -> dict[str, float] | None:
        """Measure the operations per second in each dtype. None: as `bench.evidence.peaks` does."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return name, driver and properties for the environment record."""
        return {"name": self.name}

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        """Return evidence that steps ran on this device, if the device can tell."""
        return []

    def metrics(self, step: Callable[[], Any], block: int) -> dict[str, float]:
        """Return further metrics of steps that the device measures (`result.METRICS`). Called after sampling."""
        return {}

    def notes(self) -> list[str]:
        """Return notes on the device for readers of the numbers."""
        return []


class Stack(ABC):
    """The software that optimises a network."""

    name: str
    knobs: tuple[Knob, ...] = ()
    by_name: bool = False
    """True if it must be requested by name: neither presets nor `all` include it."""
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
        """Return the lines of a user's script that do what a method of this stack does, such as `for_inference`.

        They replace `model`, which infers `inputs`, a tuple. Empty: a script needs nothing for it.
        """
        return ()

    def streamed(self, network: Any, cores: Sequence[int], streams: int) -> Any:
        """Return a network that runs in several streams, each with a part of the cores and of every batch."""
        raise WorkerError("error", f"{self.name} has no streams")

    def parts(self, network: Any) -> list[int]:
        """Return how many images of the last batch each stream of a `streamed` network got."""
        return []

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


@dataclass(frozen=True, slots=True)
class Quantised:
    """A network in int8, its observers as text for a file, and a short description of how it was made."""

    network: Any
    observers: str
    recipe: str


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
        """Return a sketch of its answers (`bench.evidence.answers`), or None. Called after `accuracy`."""
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

    def peak_memory(self, device: Device) -> int:
        """Return the peak memory since the session began to be built in bytes, over all its processes."""
        return device.peak_memory()

    def held_memory(self, device: Device) -> int | None:
        """Return the bytes that the session holds now, over all its processes. None: the device cannot tell."""
        return device.held_memory()

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


class Mode(ABC):
    """The kind of step that a case measures on a model."""

    name: str
    planned: bool = True
    """False if the matrix has no cells of it."""
    labelled: bool = True
    """Whether the label of a case promises a dtype and right results, which the worker must prove."""
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
    requests: bool = False
    """True if a sample is the latency of one request, so that its percentiles are compared too."""
    cold: bool = False
    """True if only the first step of a process is measured, without warm-up."""
    artifact: str = ""
    """The kind of artifact that int8 cases load: `script`, `state` or `program`. Empty: this mode has no int8."""
    fresh: str = ""
    """Why launches must not be forked from a process that has imported everything. Empty: they may be."""
    knobs: tuple[Knob, ...] = ()
    batch: int | None = None
    """Batch of its cases. None: the model's."""
    openmp: str = ""
    """The OpenMP runtime that this mode requires. It is always preloaded for its workers."""

    @property
    def traits(self) -> tuple[str, ...]:
        """The words by which knobs and models exclude modes: its name, `training` or `inference`, and its `graph`."""
        return (self.name, TRAINING if self.trains else INFERENCE, *filter(None, [self.graph]))

    @abstractmethod
    def why_not(self, cell: Cell, facts: Facts) -> str | None: ...

    def unfit(self, cell: Cell, batch: int, threads: int | None) -> str | None:
        """Return why the mode cannot use this batch or this requested number of threads, or None."""
        return None

    def shares(self, case: Case, cores: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the cores of each worker that answers requests at the same time. Empty: one worker with all cores."""
        return []

    def processes(self, case: Case | Cell) -> int:
        """Return how many processes share the case, each on a device of its own if there are several."""
        return 1

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        """Return the lines of a user's script that do this with `model` and `inputs`. Empty: none is written down."""
        return ()

    @abstractmethod
    def open(self, bench: Workbench) -> Session: ...


@dataclass(frozen=True, slots=True)
class Workbench:
    """Everything a mode needs to open a session."""

    case: Case
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


# The parts of proofs and fingerprints.


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
