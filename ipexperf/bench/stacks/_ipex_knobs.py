"""Knobs for the arguments of `ipex.optimize`. Knobs that are not set are not passed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ipexperf.bench.api import COMPILED, TRACED, TRAINING
from ipexperf.bench.cell import Cell
from ipexperf.bench.knob import Knob
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Model

FUSED = {
    "cpu": {"SGD": "sgd_step", "Adagrad": "adagrad_step", "Adam": "adam_step", "Lamb": "lamb_step"},
    "xpu": {
        "SGD": "sgd_step",
        "Adagrad": "adagrad_step",
        "AdamW": "adamw_step",
        "Adam": "adam_step",
        "Lamb": "lamb_step",
    },
}
"""Optimizers that IPEX fuses on each device, with the function of the fused step. No AdamW on the CPU. The plan has
only this table; a worker also asks the installed package (`fused`)."""
SPLIT: Mapping[str, Collection[str]] = {"cpu": FUSED["cpu"], "xpu": ("SGD",)}
"""Those of them for which it splits bf16 weights. The others have master copies."""
BUILDS = {"xpu": "+xpu"}
"""How the version ends of the build that a device needs. The plain package is for CPUs."""
UNTRAINED = {
    ("xpu", "fp16"): "IPEX refuses fp16 training on xpu: its devices do not support training with half precision"
}
"""Devices and dtypes in which it does not train."""
UNPACKED = {"xpu": "IPEX silently switches it off there"}
"""Devices for which it packs no weights."""
_LEARNS = {TRAINING: "IPEX folds nothing while BatchNorm is trained"}


@dataclass(frozen=True)
class OptimizeSetting(Knob):
    """A setting of `ipex.optimize`. At level O0 it is off unless it is set explicitly."""

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        return "off" if beside.get("level") == "O0" else self.values[0]


@dataclass(frozen=True)
class LinearFolding(OptimizeSetting):
    """Folding BatchNorm into linear layers. Torch's folding of convolutions includes linear layers."""

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        default = super().default(model, beside)
        return beside.get("conv_bn_folding", default) if default == "off" else default


@dataclass(frozen=True)
class Fused(OptimizeSetting):
    """A setting that applies only to optimizers that IPEX fuses."""

    modes: tuple[str, ...] | None = (TRAINING,)
    kinds: Mapping[str, Collection[str]] = field(default_factory=lambda: FUSED)
    """For each device the optimizers for which it does anything."""
    otherwise: str = "fuses no"

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        fused = {kind.lower() for kind in self.kinds.get(cell.device, ())}
        optimizer = cell.knob("optimizer") or "sgd"
        reason = super().why_not(cell, value, facts)
        if reason or optimizer in fused:
            return reason
        return f"the knob {self.name} would change nothing: IPEX {self.otherwise} {optimizer} on {cell.device}"


@dataclass(frozen=True)
class SplitMasterWeight(Fused):
    """Split master weights, which require a fused step."""

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        default = super().default(model, beside)
        return "off" if beside.get("fuse_update_step", default) == "off" else default

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        unfused = cell.knob("fuse_update_step") == "off" or (
            cell.knob("level") == "O0" and cell.knob("fuse_update_step") != "on"
        )
        if value == "on" and unfused:
            return "IPEX splits no master weights without fuse_update_step=on"
        return super().why_not(cell, value, facts)


KNOBS = (
    Knob("level", "the level of ipex.optimize: O0 switches off what is not switched on by name", ("O1", "O0")),
    OptimizeSetting(
        "weights_prepack",
        "weights laid out for the kernels that read them",
        ignored=UNPACKED,
        barred={COMPILED: "torch.compile breaks its graph at every packed layer"},
    ),
    OptimizeSetting("conv_bn_folding", "BatchNorm folded into the convolution before it", barred=_LEARNS),
    LinearFolding("linear_bn_folding", "BatchNorm folded into the linear layer before it", barred=_LEARNS),
    OptimizeSetting(
        "graph_mode",
        "IPEX captures a graph of its own",
        ("off", "on"),
        ignored=UNPACKED,
        barred={
            COMPILED: "torch.compile captures the graph itself",
            TRAINING: "IPEX captures no graph of a training",
            TRACED: "a trace bypasses the graph that IPEX captures",
        },
    ),
    OptimizeSetting(
        "auto_kernel_selection",
        "IPEX chooses between oneDNN and MKL for linear layers",
        ("off", "on"),
        ignored=UNPACKED,
        barred={COMPILED: "it chooses kernels of packed layers, and there are none"},
    ),
    Fused("fuse_update_step", "the optimizer's step as one kernel"),
    SplitMasterWeight(
        "split_master_weight",
        "bf16 weights whose lower half lies in the optimizer",
        dtypes=("bf16",),
        kinds=SPLIT,
        otherwise="splits no weights for",
    ),
)


def fused(device: str) -> dict[str, str]:
    """Return the optimizers that IPEX fuses on a device, by `FUSED` or by the table of the imported package."""
    package = sys.modules.get("intel_extension_for_pytorch.optim._optimizer_utils")
    installed = getattr(package, f"OPTIMIZER_FUSED_STEP_MAPPING_{device.upper()}", {})
    return {**{kind.__name__: step.__name__ for kind, step in installed.items()}, **FUSED[device]}


def on(cell: Cell, name: str) -> bool:
    """Return True if `ipex.optimize` does this in the cell: as requested, or by default."""
    level = "off" if cell.knob("level") == "O0" else "on"
    return (cell.knob(name) or level) == "on"
