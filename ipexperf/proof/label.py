"""Proof that a case ran on its device, in its dtype, jitted. Each result is a check with what was found."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ipexperf.bench.api import IMAGES, Kernel, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Tensors
from ipexperf.dtypes import DTYPES
from ipexperf.proof import onednn, profiler
from ipexperf.result import Check

ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
HEAVY = (
    *("aten::_convolution", "aten::convolution_backward", "aten::mkldnn_rnn_layer", ATTENTION),
    *("aten::addmm", "aten::_addmm_activation", "aten::mm", "aten::mv", "aten::addmv"),
    *("aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::_int_mm", "aten::_scaled_mm"),
)
"""Operators that do the arithmetic, below autocast. Their two operands have the dtype of the case."""
FROZEN = ("mkldnn::_convolution_pointwise", "mkldnn::_linear_pointwise", "mkl::_mkl_linear")
"""Their replacements after inductor's freezing, with packed weights and fused operations."""
QUANTISED = ("quantized::conv", "quantized::linear")
"""Prefixes of the operators for int8."""
LOWERED = ("onednn::qconv_pointwise", "onednn::qconv2d_pointwise", "onednn::qlinear_pointwise")
"""Quantised layers in inductor's code. Arguments: input, its scale, its zero point, weights."""
SGEMM = ("torch_ipex::ipex_MKLSGEMM", "ipex_prepack::mkl_sgemm_run")
"""IPEX's packed linear layers in fp32, eager and in a graph. They use MKL, only in fp32."""
SWAYED = 0.1
"""Share of the operators that other whole numbers may add: a mixture of experts runs those that its tokens need."""
TAKES = {"aten::_convolution": 13, "aten::addmm": 5}
"""Number of arguments of operators. In a graph, the profiler may list values for later operators in front of them.

Compiled code for an accelerator calls them with one more: the tensor for the result.
"""
PRIMITIVES = ("convolution", "matmul", "inner_product")
"""Primitives of oneDNN that do arithmetic."""
_ONEDNN_NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "s8": "int8", "u8": "uint8"}
_MATMUL = re.compile(r"(?:\d+x)*(\d+)x(\d+):(?:\d+x)*(\d+)(?![\dx])")
_LINEAR = re.compile(r"mb(\d+)ic(\d+)oc(\d+)")
_BATCHED = re.compile(r"\d+(?:x\d+){2,}:(\d+(?:x\d+)*)x\d+x\d+(?::|$)")
_SHAPE = re.compile(r"_(?:g\d+)?ic(\d+)oc\d+_ih(\d+)\w*_iw(\d+)")


def placed(network: Any, inputs: Any, outputs: Any, device: str) -> Check:
    """Check that all tensors of a step are on the case's device. Call it after a step: a network may move itself."""
    kinds = {
        "parameters": dict(getattr(network, "named_parameters", dict)()),
        "buffers": dict(getattr(network, "named_buffers", dict)()),
        "constants": dict(_constants(network)),
        "inputs": dict(_tensors(inputs)),
        "outputs": dict(_tensors(outputs)),
    }
    elsewhere = {
        kind: {name: value.device.type for name, value in values.items() if value.device.type != device}
        for kind, values in kinds.items()
    }
    text = ", ".join(f"{len(values)} {kind}" for kind, values in kinds.items() if values)
    away = [
        f"{len(names)} of {len(kinds[kind])} {kind} on {next(iter(names.values()))} ({next(iter(names))})"
        for kind, names in elsewhere.items()
        if names
    ]
    # A step without inputs or outputs would prove nothing.
    empty = [f"no {kind}" for kind in ("inputs", "outputs") if not kinds[kind]]
    wrong = [*away, *empty]
    return Check("device", not wrong, "; ".join(wrong) or f"{text}: {device}", f"{device} for all of them")


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the tensors in nested inputs or outputs, each with its path."""
    if isinstance(value, torch.Tensor):
        yield name or "the tensor", value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _tensors(part, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from _tensors(part, f"{name}[{index}]")


def _constants(network: Any) -> Iterator[tuple[str, Any]]:
    """Yield the constants of a frozen graph, which hold its weights."""
    if isinstance(network, torch.jit.ScriptModule) and hasattr(network, "graph"):
        for node in network.graph.findAllNodes("prim::Constant"):
            # Skip scalars that take the dtype of other tensors.
            if isinstance(value := node.output().toIValue(), torch.Tensor):
                yield node.output().debugName(), value


def operators(step: Callable[[], Any], wanted: Collection[str]) -> list[Check]:
    """Check that each operator that the model declares for its stack runs in a step. No checks if it declares none."""
    if not wanted:
        return []
    counts = Counter(str(event.get("name")) for event in profiler.traced(step))
    text = ", ".join(f"{name} x{counts[name]}" for name in wanted)
    return [Check("tuned_operators", all(counts[name] for name in wanted), text, "each at least once")]


def layouts(inputs: Iterable[Any], *, channels_last: bool) -> list[Check]:
    """Check the memory layout of each input that is a batch of images."""
    return [layout(value, channels_last=channels_last) for value in inputs if value.dim() == IMAGES]


def layout(value: Any, *, channels_last: bool) -> Check:
    if not channels_last:
        return Check("layout", value.is_contiguous(), "strided", "contiguous")
    ok = value.is_contiguous(memory_format=torch.channels_last)
    return Check("layout", ok, "channels_last" if ok else "contiguous", "channels_last")


def jitted(network: Any) -> Check:
    """Check that the module is a frozen script module: no parameters outside its graph."""
    script = isinstance(network, torch.jit.ScriptModule)
    outside = len(list(network.parameters())) if script else -1
    text = f"frozen graph, {outside} parameters outside" if script else type(network).__name__
    return Check("jit", script and outside == 0, text, "frozen graph, 0 parameters outside")


def dtype_of_kernels(kernels: Iterable[Kernel], dtype: str) -> Check:
    """Check that every arithmetic operator took its inputs in the case's dtype."""
    counts = Counter(kernel.dtype for kernel in kernels if kernel.operands)
    text = ", ".join(f"{kind} x{count}" for kind, count in counts.most_common()) or "no operator that does arithmetic"
    operands = DTYPES[dtype].operands
    ok = bool(counts) and all(set(kind.split(" x ")) <= operands for kind in counts)
    return Check("dtype", ok, text, f"{' or '.join(sorted(operands))} in all")


def same_work(operators: Callable[[Tensors], int], known: Tensors, new: Tensors, other: Tensors) -> Check:
    """Check that a step with known inputs runs as many arithmetic operators as one with inputs never seen before.

    A network that keeps results of inputs it has seen would be timed without the work, and be accurate all the same.
    A network may also do less for some batches, such as one with an early exit: then it does as much for the new batch
    a second time, and as little for a batch that is nearly the known one. `other` is a batch to take numbers from.
    """
    ran, expected = operators(known), operators(new)
    if not ran and not expected:
        return Check("same_work", False, "nothing to count: no operator that does arithmetic", "at least one")
    if ran < expected and operators(new) < expected:  # it has kept the new batch, too
        return Check("same_work", False, f"{ran} operators", f"{expected}, as with a new batch")
    near = min(operators(_nearly(known, other, part)) for part in (1, 2))
    slack = 0 if all(value.is_floating_point() for value in known) else SWAYED
    ok = ran >= (1 - slack) * near
    if not ok or ran < expected:
        return Check("same_work", ok, f"{ran} operators", f"{near}, as with a new batch that is nearly the same")
    return Check("same_work", ok, f"{ran} operators", f"{expected}, as with a new batch")


def _nearly(known: Tensors, other: Tensors, part: int) -> Tensors:
    """The batch with each number changed by a rounding. Whole numbers have none: some are those of another batch."""
    return tuple(_changed(value, beside, part) for value, beside in zip(known, other, strict=True))


def _changed(value: Any, beside: Any, part: int) -> Any:
    if value.is_floating_point():
        return value * (1 + (-1) ** part * torch.finfo(value.dtype).eps)
    if value.shape != beside.shape or not value.numel():
        return value
    value, column = value.clone(), value.shape[-1] * part // 3
    value[..., column] = beside[..., column]
    return value


def layout_of_kernels(
    kernels: Iterable[Kernel], *, channels_last: bool, plain: Callable[[], Iterable[Kernel]] | None = None
) -> list[Check]:
    """Check that every convolution read its images channels last, if the case requests that.

    A model may convert them inside. That is a user's own business, and `plain` has the kernels of the user's untouched
    network. Without channels last only the input is checked: with packed weights oneDNN chooses the layout.
    """
    if not channels_last:
        return []
    counts = Counter(kernel.layout for kernel in kernels if kernel.layout)
    text = ", ".join(f"{layout} x{count}" for layout, count in counts.most_common()) or "no convolution that shows it"
    if set(counts) <= {"channels_last"}:
        return [Check("kernel_layout", True, text, "channels_last in all")]
    if plain is not None and any(kernel.layout == "contiguous" for kernel in plain()):
        return [Check("kernel_layout", True, f"{text}: the network itself lays them out so", "no other by the stack")]
    return [Check("kernel_layout", False, text, "channels_last in all, or --perf-knobs channels_last=off")]


def of_stack(step: Callable[[], Any], bench: Workbench) -> list[Kernel]:
    """Run one step and return its arithmetic kernels: as listed by the stack, or else by the profiler."""
    kernels_of_stack = bench.stack.kernels(step, bench)
    return profiled(step) if kernels_of_stack is None else kernels_of_stack


def profiled(step: Callable[[], Any]) -> list[Kernel]:
    """Run one step under torch's profiler, and return its arithmetic kernels."""
    return kernels(profiler.traced(step))


def kernels(events: Iterable[dict[str, Any]]) -> list[Kernel]:
    """Return the arithmetic kernels in a trace of torch's profiler."""
    pairs = ((event["name"], arguments(event)) for event in events if arithmetic(event))
    return [Kernel(name, _operands(name, line), _strided(name, line)) for name, line in pairs]


def arithmetic(event: dict[str, Any]) -> bool:
    """Whether an event of a trace is an arithmetic operator with known operands."""
    name = str(event.get("name"))
    heavy = name in HEAVY or name.startswith((*FROZEN, *QUANTISED, *LOWERED))
    return name in SGEMM or (heavy and "Input type" in event.get("args", {}))


def arguments(event: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operator, without values in front that belong to another one."""
    line: dict[str, Any] = event.get("args", {})
    count = TAKES.get(event["name"])
    if count is None:
        return line
    into = (line.get("Input type") or [""])[-1] not in ("Scalar", "")
    return {key: value[-count - into :] if key.startswith("Input ") else value for key, value in line.items()}


def _operands(name: str, line: dict[str, Any]) -> tuple[str, ...]:
    """Return the dtypes of the first two tensors. In `addmm` the first is the bias, which has the same dtype."""
    kinds: list[str] = line.get("Input type", [])
    if name in SGEMM and not any(kinds[:2]):
        return ("float32",)  # in a graph the profiler lists no operands
    if name.startswith(QUANTISED) and name.endswith("_dynamic"):
        return ("int8",)  # it takes a float tensor and quantises it itself
    if name.startswith(QUANTISED) and "" in kinds[1:]:
        # Packed weights are no tensor. In a graph the output of another head may precede the arguments.
        kinds = kinds[kinds.index("", 1) - 1 :]
    if name.startswith(LOWERED):
        return tuple(profiler.DTYPES.get(kind, kind) for kind in (kinds[0], kinds[3]))
    if name.startswith(FROZEN):
        # A summand may precede the weights: take all tensors before them, except the bias, which is a row.
        tensors = itertools.takewhile(lambda kind: kind and not kind.startswith("Scalar"), kinds)
        kinds = [kind for kind, sizes in zip(tensors, line["Input Dims"], strict=False) if len(sizes) > 1]
        return tuple(profiler.DTYPES.get(kind, kind) for kind in kinds)
    return tuple(profiler.DTYPES.get(kind, kind) for kind in kinds[:2] if kind)


def _strided(name: str, line: dict[str, Any]) -> str:
    """Return the layout of a convolution's input by its strides. Empty with one channel or pixel, which fits both."""
    strides, sizes = line.get("Input Strides"), line.get("Input Dims")
    others = ("quantized::conv", "onednn::qconv", FROZEN[0])
    convolution = name == "aten::_convolution" or name.startswith(others)
    if not convolution or not strides or not sizes or len(sizes[0]) != 4:
        return ""
    _, channels, height, width = sizes[0]
    if channels == 1 or height * width == 1:
        return ""
    return "channels_last" if strides[0][1] == 1 else "contiguous"


def logged(step: Callable[[], Any], verbose: AbstractContextManager[Any]) -> list[Kernel]:
    """Run one step with oneDNN's log, and return its convolutions, matrix products and inner products.

    For operators whose packed weights hide their inputs from the profiler.
    """
    return arithmetic_of(onednn.recorded(step, verbose))


def arithmetic_of(log: onednn.OneDnnLog) -> list[Kernel]:
    """Return the arithmetic kernels among executed primitives."""
    executed = []
    for line in log.executed:
        if line.name not in PRIMITIVES:
            continue
        operands = {operand.role: operand for operand in line.operands}
        chosen = [operands[role].dtype for role in ("src", "diff_dst", "wei") if role in operands][:2]
        images = operands.get("src") if line.name == "convolution" else None
        # Weights have no batch dimension: a product with one on both sides is of two activations.
        batch = _BATCHED.match(line.problem) if line.name == "matmul" else None
        several = batch is not None and set(batch[1].split("x")) != {"1"}
        name = "batch_matmul" if several else line.name
        layout = _tagged(images.tag, line.problem) if images else ""
        kinds = tuple(_ONEDNN_NAMES.get(kind, kind) for kind in chosen)
        executed.append(Kernel(name, kinds, layout, line.implementation, _product(line.problem)))
    return executed


def _product(problem: str) -> tuple[int, int, int] | None:
    """Return rows, columns and inner length of a product, from `4x16:16x10` or `mb4ic16oc10`."""
    if match := _MATMUL.match(problem):
        return int(match[1]), int(match[3]), int(match[2])
    if match := _LINEAR.fullmatch(problem):
        return int(match[1]), int(match[3]), int(match[2])
    return None


def _tagged(tag: str, problem: str) -> str:
    """Return the layout of a convolution's input by oneDNN's tag. Blocked ones (aBcd16b) are the library's choice."""
    shape = _SHAPE.search(problem)
    if shape is None or shape[1] == "1" or (shape[2], shape[3]) == ("1", "1"):
        return ""
    return {"acdb": "channels_last", "abcd": "contiguous"}.get(tag, "")
