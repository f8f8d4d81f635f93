"""Weight-only quantisation by torchao, and its dynamic int8 activations with int4 weights. Imported when it is used.

torchao replaces the weight of a linear layer by a tensor of a class of its own, and leaves the layer. It has had two
ways to name the layout for CPUs. Which of them is there decides, not its version.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

from ipexperf.bench.artifacts import rounding
from ipexperf.bench.stacks import _stock_weights
from ipexperf.errors import WorkerError
from ipexperf.proof import quantised
from ipexperf.result import Check

KERNELS = {**_stock_weights.KERNELS, "da8w4": "torchao::da8w4_linear_cpu"}
"""The operator that multiplies by each kind of weights, by its name in torch's profiler."""
LAYOUTS = {"int4": "Int4CPULayout", "da8w4": "Int8DynamicActInt4WeightCPULayout"}
CONFIGURATIONS = {"int4": "Int4WeightOnlyConfig", "da8w4": "Int8DynamicActivationInt4WeightConfig"}
PROTOTYPES = {"int4": "PrototypeInt4WeightOnlyConfig", "da8w4": "Int8DynamicActivationInt4WeightConfig"}
"""Names of the layouts and configurations up to torchao 0.13, and of the later configurations, which need no layout."""


def pack(network: Any, kind: str, group: int) -> Any:
    """Let torchao quantise all linear layers."""
    for _, name, layer in rounding.linear(network):
        # torchao leaves such a layer as it is, and only logs that.
        rounding.check(name, layer, kind, group)
    if kind == "da8w4" and not has_kernel(KERNELS[kind]):
        version = importlib.import_module("torchao").__version__
        reason = f"torchao {version} was built without its own kernels for CPUs, which weights=da8w4 needs"
        raise WorkerError("error", f"{reason}: build it from its source with USE_CPU_KERNELS=1")
    importlib.import_module("torchao.quantization").quantize_(network, configuration(kind, group))
    return network


def configuration(kind: str, group: int) -> Any:
    """Return torchao's configuration for packed weights on a CPU. It changes no setting of inductor."""
    quantization: Any = importlib.import_module("torchao.quantization")
    if kind == "int8":
        return quantization.Int8WeightOnlyConfig(set_inductor_config=False)
    dtypes: Any = importlib.import_module("torchao.dtypes")
    layout = getattr(dtypes, LAYOUTS[kind], None)
    if layout is not None:
        make = getattr(quantization, CONFIGURATIONS[kind])
        return make(group_size=group, layout=layout(), set_inductor_config=False)
    try:
        prototypes = importlib.import_module("torchao.prototype.quantization.int4")
    except ImportError:
        version = importlib.import_module("torchao").__version__
        text = f"torchao {version} has neither torchao.dtypes.{LAYOUTS[kind]} nor torchao.prototype.quantization.int4"
        raise WorkerError("version_mismatch", f"{text}: install torchao 0.13 or 0.18") from None
    return getattr(prototypes, PROTOTYPES[kind])(group_size=group, set_inductor_config=False)


def has_kernel(name: str) -> bool:
    """Return True if the operator exists and has a kernel for CPUs."""
    try:
        return "CPU" in torch._C._dispatch_dump(name)  # noqa: SLF001 - as torchao asks
    except RuntimeError:
        return False


def proof(network: Any, step: Any, kind: str, expected: int) -> list[Check]:
    """Check the bits of the packed weights, and that a step ran in their kernel."""
    layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
    sizes = [(layer.weight.shape.numel(), packed_bytes(layer.weight)) for layer in layers]
    bits = quantised.packed_weights(sizes, quantised.BITS[kind])
    return [bits, quantised.packed_kernels(step, KERNELS[kind], expected)]


def packed_bytes(weight: Any) -> int:
    """Return the bytes of the largest tensor inside a packed weight, which holds its numbers, or of a plain weight."""
    if not hasattr(weight, "__tensor_flatten__"):
        return int(weight.nbytes)
    names, _ = weight.__tensor_flatten__()
    return max(packed_bytes(getattr(weight, name)) for name in names)
