"""The public surface for extensions: what devices, stacks, modes, models and the like are made of, and `register`.

A file that `--perf-load` loads imports from here alone. Everything in other modules may change without notice.
"""

from __future__ import annotations

from typing import TypeVar

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, EXPORTED, TRAINING, Mode, Quantised, Session, Stack, Workbench
from ipexperf.bench.cell import Cell, Settings
from ipexperf.bench.device import Device
from ipexperf.bench.devices._accelerator import Accelerator
from ipexperf.bench.knob import Knob, Number
from ipexperf.bench.lazy import torch, torchvision
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Dataset, Examples, Model, Split, Task, Tensors, tensors
from ipexperf.bench.modes._inference import KNOBS as INFERENCE_KNOBS
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.bench.registry import model
from ipexperf.case import Case
from ipexperf.errors import UsageError, WorkerError
from ipexperf.proof import causes
from ipexperf.proof.causes import Cause
from ipexperf.proof.label import jitted
from ipexperf.result import METRICS, Accuracy, Check, Column, Gate, Metric

__all__ = [
    "COMPILED",
    "EXPORTED",
    "INFERENCE_KNOBS",
    "TRAINING",
    "Accelerator",
    "Accuracy",
    "Case",
    "Cause",
    "Cell",
    "Check",
    "Column",
    "Dataset",
    "Device",
    "Examples",
    "Facts",
    "Gate",
    "InferenceSession",
    "Knob",
    "Metric",
    "Mode",
    "Model",
    "Number",
    "Quantised",
    "Session",
    "Settings",
    "Split",
    "Stack",
    "Task",
    "Tensors",
    "UsageError",
    "Workbench",
    "WorkerError",
    "jitted",
    "model",
    "register",
    "tensors",
    "torch",
    "torchvision",
]

Item = TypeVar("Item", bound=Device | Stack | Mode | Model | Task | Dataset | Metric | Cause)


def register(item: Item) -> Item:
    """Make a device, stack, mode, model, task, dataset, metric or cause known by its `name`, and return it."""
    target = next((known for known in registry.KINDS.values() if isinstance(item, known.base)), None)
    if target is not None:
        target.add(getattr(item, "name", ""), item)
    elif isinstance(item, Cause):
        causes.add(item)
    elif not isinstance(item, Metric):
        raise UsageError(
            f"register takes a device, stack, mode, model, task, dataset, metric or cause, not {type(item).__name__}; "
            "a class needs to be instantiated: register(MyMode())"
        )
    elif METRICS.setdefault(item.name, item) != item:
        raise UsageError(f"the metric '{item.name}' is registered twice, with different meanings")
    return item
