"""Proof of int8: the kernels that ran, the modules and the graph, compared with the untouched network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ipexperf.bench.api import Kernel
from ipexperf.bench.lazy import torch
from ipexperf.dtypes import DTYPES
from ipexperf.proof import profiler, templates
from ipexperf.proof.label import ATTENTION
from ipexperf.result import Check

INTEGERS = DTYPES["int8"].operands
LAYERS = ("aten::linear", "aten::convolution", "aten::lstm", "aten::gru")
"""Operators with weights that do the arithmetic, whatever module or function called them."""
PRODUCTS = ("aten::bmm", "aten::baddbmm", "batch_matmul", templates.PRODUCT, ATTENTION)
"""Products of two activations, as in attention. They are not layers, and often in fp32 beside int8 layers."""
BITS = {"int8": 8, "int4": 4, "da8w4": 4}
"""Bits of a packed weight. In `da8w4` the activations are rounded as well, to int8, anew in each step."""
_NODE = re.compile(r"%(?P<out>\S+) : .*? = (?P<name>\w+::\w+)(?:\[.*?\])?\((?P<inputs>[^)]*)\)")
_FLOAT_LAYER = re.compile(
    r"(aten::(_convolution|convolution|conv_?\w+|linear|addmm|mm|lstm|gru)|ipex_prepack::\w+_run)$"
)
_CALLED = re.compile(r"\b(?:torch\.ops|extern_kernels)\.([\w.]+)\(")
_INT8_CALL = re.compile(r"onednn\.q(conv|linear)\w*_pointwise\b")
_FLOAT_CALL = re.compile(
    r"(mkldnn\._?(convolution|linear)\w*|mkl\._mkl_linear|(aten\.)?(_?convolution|conv\dd|linear|addmm|mm))(\.|$)"
)
_INT8_LAYER = re.compile(r"quantized::(conv|linear)\w*$")


def count(network: Any, example: Any) -> int:
    """Count the layers in one step of the untouched network."""
    # With gradients: the fused encoder layer of inference would hide its layers.
    with torch.enable_grad():
        events = profiler.traced(lambda: network(*example))
    return sum(event.get("name") in LAYERS for event in events)


def layers(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Return the kernels that are not products of two activations."""
    return [kernel for kernel in kernels if kernel.name not in PRODUCTS]


def layers_that_ran(kernels: Iterable[Kernel], expected: int) -> Check:
    """Check that as many layers ran in int8 as the untouched network has, and none in another dtype."""
    kernels = list(kernels)
    whole = [kernel for kernel in layers(kernels) if kernel.operands and set(kernel.operands) <= INTEGERS]
    # An operator may appear in the logs of both torch and oneDNN, so each log is counted alone. Inductor's templates
    # are in neither.
    written = sum(kernel.name == templates.LAYER for kernel in whole)
    library = sum("::" not in kernel.name for kernel in whole)
    int8 = max(library, len(whole) - library - written) + written
    rest = Counter(
        f"{kernel.name} in {kernel.dtype}" for kernel in layers(kernels) if not set(kernel.operands) <= INTEGERS
    )
    beside = Counter(f"{kernel.name} in {kernel.dtype}" for kernel in kernels if kernel.name in PRODUCTS)
    text = f"{int8} of {expected} layers in int8{_list(', but ', rest)}{_list('; products of activations: ', beside)}"
    return Check("quantised_layers", 0 < expected <= int8 and not rest, text, f"all {expected}")


def modules(network: Any) -> Check:
    """Check that the converted network has no layer left that computes in floating point."""
    kinds = (torch.nn.Linear, torch.nn.modules.conv._ConvNd, torch.nn.RNNBase)  # noqa: SLF001 - the base of them all
    float_layers = [name or "the root" for name, module in network.named_modules() if isinstance(module, kinds)]
    # Converted layers of torch and IPEX have packed weights and a scale. Holders of packed weights have no scale.
    int8_layers = sum(hasattr(module, "_weight_bias") and hasattr(module, "scale") for module in network.modules())
    text = f"{int8_layers} quantised layers, {len(float_layers)} in floating point"
    if float_layers:
        text += f": {', '.join(float_layers[:4])}"
    return Check("quantised_modules", int8_layers > 0 and not float_layers, text, "some, and 0 in floating point")


def graph(text: str, expected: int) -> Check:
    """Check that every layer of the graph is a quantised operator, or inside a fusion with int8 inputs."""
    int8, rest = read_graph(text)
    summary = f"{int8} of {expected} layers quantised{_list(', but ', Counter(rest))}"
    return Check("quantised_graph", 0 < expected <= int8 and not rest, summary, f"all {expected}")


def code(text: str, expected: int) -> Check:
    """Check that every layer in inductor's code is a quantised operator of oneDNN, or a template of its own in int8."""
    calls = [name for line in text.splitlines() if not line.lstrip().startswith("#") for name in _CALLED.findall(line)]
    written = layers(templates.kernels(text))
    int8 = sum(bool(_INT8_CALL.match(name)) for name in calls) + sum(
        set(kernel.operands) <= INTEGERS for kernel in written
    )
    rest = Counter(name for name in calls if _FLOAT_CALL.match(name))
    rest.update(f"{kernel.name} in {kernel.dtype}" for kernel in written if not set(kernel.operands) <= INTEGERS)
    summary = f"{int8} of {expected} layers called in int8{_list(', but ', rest)}"
    return Check("quantised_code", 0 < expected <= int8 and not rest, summary, f"all {expected}")


def packed_weights(sizes: Iterable[tuple[int, int]], most: float) -> Check:
    """Check that packed weights take no more than so many bits. `sizes`: weights and bytes of each layer."""
    counts = [*sizes]
    weights = sum(count for count, _ in counts)
    bits = 8 * sum(size for _, size in counts) / max(1, weights)
    text = f"{weights:,} weights in {len(counts)} layers, {bits:.3g} bits each"
    return Check("packed_weights", 0 < bits <= most, text, f"at most {most:g} bits")


def packed_kernels(step: Callable[[], Any], kernel: str, expected: int) -> Check:
    """Check that every linear layer of a step ran in a kernel for packed weights, and none in another.

    `kernel` is a regular expression for their names in torch's profiler.
    """
    names = Counter(str(event.get("name")) for event in profiler.traced(step))
    packed = sum(times for name, times in names.items() if re.fullmatch(kernel, name))
    rest = names["aten::addmm"] + names["aten::mm"]
    text = f"{packed} of {expected} layers in {kernel}, {rest} in other products"
    return Check("packed_kernels", packed == expected and not rest, text, f"all {expected}, and 0")


def read_graph(text: str) -> tuple[int, list[str]]:
    """Return the number of quantised layers in a printed graph, and the names of the others."""
    int8, rest = 0, []
    # `with ipex::LlgaFusionGroup_0 = graph(...)` prints the inside of a fusion after its graph.
    for part in re.split(r"^with ", text, flags=re.MULTILINE):
        fused = part.startswith("ipex::LlgaFusionGroup")
        defined: dict[str, str] = {}
        for line in part.splitlines():
            node = _NODE.search(line)
            if node is None:
                continue
            defined[node["out"]] = node["name"]
            if _INT8_LAYER.match(node["name"]):
                int8 += 1
            elif _FLOAT_LAYER.match(node["name"]):
                inputs = [name.strip().removeprefix("%") for name in node["inputs"].split(",")[:2]]
                # oneDNN's graph compiler merges a layer and the dequantisation of its operands into one int8 kernel.
                if fused and all(defined.get(name) == "aten::dequantize" for name in inputs):
                    int8 += 1
                else:
                    rest.append(node["name"])
    return int8, rest


def _list(before: str, names: Counter[str]) -> str:
    return before + ", ".join(f"{name} x{times}" for name, times in names.most_common()) if names else ""
