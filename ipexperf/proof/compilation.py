"""Evidence of torch.compile: the number of graphs, graph breaks, the generated code, and whether it runs."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.bench.machine import variables
from ipexperf.proof import label, templates
from ipexperf.result import Check

CACHE = "TORCHINDUCTOR_CACHE_DIR"
REGION = "Torch-Compiled Region"
"""Name of compiled code in torch's profiler."""
BACKWARD = "CompiledFunctionBackward"
"""Name of the backward pass of compiled code in torch's profiler."""
INFERENCE, TRAINING = ("inference",), ("forward", "backward")
"""The passes for which inductor writes code, by the names that AOTAutograd gives them."""
_WHOLE = "= AsyncCompile()"
"""In the code of a graph. Modules of single kernels, which inductor times, have none."""
_ARGUMENTS = re.compile(r"^\s+(\w+(?:, \w+)*),? = args$", re.MULTILINE)
_LAYERS = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable", "compiler_fn")
"""Attributes under which torch's wrappers around a backend keep the function below."""
_PASS = re.compile(r"^# AOT ID: \['\d+_(\w+)'\]$", re.MULTILINE)
_SHOWN = 80
_BUFFER = re.compile(r"\bempty_strided(?:_(\w+)\(\(\d|\(\(\d.*\bdevice='(\w+)')")
"""Where generated code makes a tensor with dimensions, and on which device: torch has a function of its own for each of
its devices, and names those of others."""


@contextmanager
def afresh() -> Iterator[Path]:
    """Compile with an empty cache inside the block, so that no launch reuses what another one compiled.

    Afterwards the cache is deleted and inductor's compile processes are ended: a new one uses a core to import torch.
    """
    with scratch.folder("compiled") as folder, variables.changed(CACHE, str(folder)):
        try:
            yield folder
        finally:
            importlib.import_module("torch._inductor.async_compile").shutdown_compile_workers()


@dataclass(frozen=True, slots=True)
class Tally:
    """Dynamo's counters in this process at one moment."""

    graphs: int
    compiled: tuple[Any, ...]
    """What Dynamo remembers of the newest frames with a tensor. The code after a break is a frame of its own.

    Others are no part of the network, such as filelock's hook that Python 3.13 calls when inductor starts a compiler.
    """
    attempts: int
    """How often it looked at a frame of any kind."""
    breaks: Counter[str]
    """Reasons of graph breaks, with counts."""
    nodes: int
    """Operations that it put into graphs."""

    @property
    def frames(self) -> int:
        return len(self.compiled)

    @classmethod
    def read(cls) -> Tally:
        # Torch has no public counters.
        utils = importlib.import_module("torch._dynamo.utils")
        counters = utils.counters
        return cls(
            counters["stats"]["unique_graphs"],
            # A frame without a tensor leaves no metrics, and the code of a backward pass has no name.
            tuple(metrics for metrics in utils.get_compilation_metrics() if metrics.co_name),
            counters["frames"]["total"],
            Counter(dict(counters["graph_break"])),
            counters["stats"]["calls_captured"],
        )

    def since(self, before: Tally) -> Tally:
        """Return the difference from an earlier tally."""
        return Tally(
            self.graphs - before.graphs,
            tuple(frame for frame in self.compiled if not any(frame is earlier for earlier in before.compiled)),
            self.attempts - before.attempts,
            self.breaks - before.breaks,
            self.nodes - before.nodes,
        )


def whole(first: Tally, later: Tally) -> list[Check]:
    """Check that the first call made one graph without a break, with no later compilation and no fall-back to eager."""
    broken = first.breaks + later.breaks
    why = f": {' '.join(next(iter(broken)).split())[:_SHOWN]}" if broken else ""
    eager = importlib.import_module("torch._dynamo.config").suppress_errors
    return [
        Check(
            "graphs",
            # Dynamo does not count a branch on a tensor's value as a break, but it shows in the frames.
            first.graphs == first.frames == 1 and not broken,
            f"{first.graphs} graphs in {first.frames} frames, {broken.total()} graph breaks{why}",
            "1 graph in 1 frame, 0 graph breaks",
        ),
        Check(
            "recompilation",
            later.graphs == later.attempts == 0,
            f"{later.attempts} frames after the first call, {later.graphs} more graphs",
            "0 frames after the first call, 0 more graphs",
        ),
        Check("eager_fallback", not eager, f"suppress_errors is {eager}", "suppress_errors is False"),
    ]


def generated(before: int) -> list[str]:
    """Return the source of each graph that inductor has loaded after the first `before` modules."""
    sources = [Path(module.__file__).read_text() for module in templates.modules()[before:]]
    return [source for source in sources if _WHOLE in source]


def written(sources: list[str], passes: tuple[str, ...] = INFERENCE) -> Check:
    """Check that inductor generated the code of one graph, for each of the passes that are wanted."""
    lines = sum(source.count("\n") for source in sources)
    if passes == INFERENCE:
        return Check("inductor", len(sources) == 1, f"code of {len(sources)} graphs, {lines} lines", "code of 1 graph")
    names = [pass_of(source) for source in sources]
    text = f"code of {', '.join(names) or 'no pass'}, {lines} lines"
    return Check("inductor", sorted(names) == sorted(passes), text, f"code of {', '.join(passes)}")


def pass_of(source: str) -> str:
    """Return the pass that the code of a graph computes."""
    return match[1] if (match := _PASS.search(source)) else "an unknown pass"


def on_device(sources: list[str], device: str) -> list[Check]:
    """Check that code for an accelerator puts all its tensors there. Nothing to check on the CPU.

    Numbers without dimensions may be on the CPU, as in eager code.
    """
    if device == "cpu":
        return []
    places = Counter(torchs or other for source in sources for torchs, other in _BUFFER.findall(source))
    text = ", ".join(f"{count} on {place}" for place, count in places.most_common()) or "none"
    return [
        Check("compiled_device", set(places) <= {device}, f"tensors of the generated code: {text}", f"all on {device}")
    ]


def arguments(code: str) -> int:
    """Return the number of tensors that generated code is called with. Its own constants do not count."""
    match = _ARGUMENTS.search(code)
    return len(match[1].split(", ")) if match else 0


def frozen(code: str, inputs: int, *, wanted: bool = True) -> Check:
    """Check that the weights are constants of the code, so that they could be folded and packed at compile time.

    If not `wanted`, check that the code is called with weights too.
    """
    parameters = arguments(code)
    text, expected = f"code called with {parameters} tensors", f"{inputs}: the inputs"
    if not wanted:
        return Check("freezing", parameters > inputs, text, f"more than {expected}")
    return Check("freezing", parameters == inputs, text, expected)


def one_region(events: list[dict[str, Any]], templates: int = 0) -> Check:
    """Check that a step is one call of compiled code that contains all its arithmetic.

    `templates` is the number of products that inductor wrote itself, which are no operators.
    """
    regions = [event for event in events if str(event.get("name")).startswith(REGION)]
    heavy = [event for event in events if label.arithmetic(event)]
    inside = sum(any(_within(event, region) for region in regions) for event in heavy)
    beside = f", {templates} products that inductor wrote" if templates else ""
    return Check(
        "compiled_step",
        len(regions) == 1 and inside == len(heavy) and inside + templates > 0,
        f"{len(regions)} compiled regions, {inside} of {len(heavy)} operators inside{beside}",
        "1 compiled region, all operators inside",
    )


def both_passes(events: list[dict[str, Any]], batches: int, sources: list[str]) -> Check:
    """Check that a step calls the code of each pass once a batch, and that both together contain all its arithmetic.

    Products that inductor wrote itself are no operators: they are read from the code.
    """
    regions = {
        "forward": [event for event in events if str(event.get("name")).startswith(REGION)],
        "backward": [event for event in events if event.get("name") == BACKWARD],
    }
    heavy = [event for event in events if label.arithmetic(event)]
    inside = {
        name: sum(any(_within(event, region) for region in calls) for event in heavy) for name, calls in regions.items()
    }
    templated = {
        name: sum(len(templates.kernels(code)) for code in sources if pass_of(code) == name) for name in regions
    }
    beside = {name: f" and {count} products that inductor wrote" if count else "" for name, count in templated.items()}
    parts = [f"{len(calls)} {name} with {inside[name]} operators{beside[name]}" for name, calls in regions.items()]
    return Check(
        "compiled_step",
        all(len(calls) == batches and inside[name] + templated[name] for name, calls in regions.items())
        and sum(inside.values()) == len(heavy),
        f"{', '.join(parts)}, of {len(heavy)} in the step",
        f"{batches} forward, {batches} backward, all operators in them",
    )


def _within(event: dict[str, Any], region: dict[str, Any]) -> bool:
    return bool(region["ts"] <= event["ts"] and event["ts"] + event["dur"] <= region["ts"] + region["dur"])


def _backend(compiled: Any) -> Any:
    """Return the backend of a compiled module, without torch's wrappers around it."""
    function = compiled.dynamo_ctx.callback
    while inner := next(
        (getattr(function, name) for name in _LAYERS if getattr(function, name, None) is not None), None
    ):
        function = inner
    return function


def autotuned(compiled: Any) -> Check:
    """Check that inductor was configured to time kernels. Whether there was any choice is up to the network."""
    config = getattr(_backend(compiled), "config", {})
    timed = importlib.import_module("torch._dynamo.utils").counters["inductor"]["select_algorithm_autotune"]
    text = f"max_autotune is {bool(config.get('max_autotune'))}, {timed} choices of kernels timed"
    return Check("max_autotune", bool(config.get("max_autotune")), text, "max_autotune is True")


def backend(compiled: Any) -> str:
    """Return the module and name of the backend of a compiled module."""
    function = _backend(compiled)
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"
