"""Matrix products that inductor wrote itself, read from its code.

With `max_autotune` inductor may take a template of its own for a layer: in C++ on a CPU, in Triton on a card. Neither a
trace nor oneDNN's log names it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ipexperf.bench.api import Kernel
from ipexperf.dtypes import DTYPES

LAYER = "inductor::gemm"
"""A linear layer, by the name that this project gives it."""
PRODUCT = "inductor::bmm"
"""A product of two activations, as in attention."""
CPP_NAMES = {
    "float": "float32",
    "double": "float64",
    "bfloat16": "bfloat16",
    "at::BFloat16": "bfloat16",
    "half": "float16",
    "at::Half": "float16",
    "uint8_t": "uint8",
    "int8_t": "int8",
}
"""Names of dtypes in C++ code."""
TRITON_NAMES = {
    "fp32": "float32",
    "fp64": "float64",
    "bf16": "bfloat16",
    "fp16": "float16",
    "i8": "int8",
    "u8": "uint8",
}
"""Names of dtypes in Triton's signatures."""
_TRITON = re.compile(
    r"^(\w+) = async_compile\.triton\('\w+', '''((?:(?!''').)*?^@triton_heuristics\.template\((?:(?!''').)*)'''",
    re.MULTILINE | re.DOTALL,
)
_SIGNATURE = re.compile(r"'arg_[ABXW]': '\*(\w+)'")
"""Operands of a product (A, B) and of a convolution (X, W). A product of a tensor with itself has one."""
_OF_TRITON_BATCHES = "# batch dimension for BMM"
"""In the source that only the template for batches of matrices has."""
_FUNCTION = re.compile(r"^(\w+) = async_compile\.cpp_pybinding\(.*?'''(.*?)'''\)$", re.MULTILINE | re.DOTALL)
_OPERANDS = re.compile(
    r"inline void \w*micro_gemm\([^)]*?const ([\w:]+)\* __restrict__ A,\s*const ([\w:]+)\* __restrict__ B,"
)
_BATCHED = "_threaded_mm("
"""In the name of a function that only the template for batches of matrices has."""


def kernels(code: str) -> list[Kernel]:
    """Return a kernel for each call of a template, given all the Python code that inductor generated."""
    templates = _named(code)
    if not templates:
        return []
    called = re.compile(rf"^\s+({'|'.join(map(re.escape, templates))})(?:\.run)?\(", re.MULTILINE)
    return [templates[name] for name in called.findall(code)]


@contextmanager
def called() -> Iterator[list[Kernel]]:
    """Collect a kernel for each call of a template inside the block, for a network that compiles itself.

    Generated code looks up its functions by name at each call, so other functions can take their places for a while.
    """
    calls: list[Kernel] = []
    replaced = [
        (vars(module), name, kernel) for module in modules() for name, kernel in _templates(module.__file__).items()
    ]
    functions = [names[name] for names, name, _ in replaced]
    for (names, name, kernel), function in zip(replaced, functions, strict=True):
        names[name] = _noting(calls, kernel, function)
    try:
        yield calls
    finally:
        for (names, name, _), function in zip(replaced, functions, strict=True):
            names[name] = function


def modules() -> list[Any]:
    """Return the modules that inductor has loaded in this process, without importing inductor."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    return list(cache.modules) if cache else []


def _noting(calls: list[Kernel], kernel: Kernel, function: Any) -> Any:
    """Return what takes the place of a function in C++, or of a kernel in Triton, which is called through `run`."""
    run = getattr(function, "run", function)

    def noted(*arguments: Any, **named: Any) -> Any:
        calls.append(kernel)
        return run(*arguments, **named)

    return noted if run is function else SimpleNamespace(run=noted)


def _templates(path: str) -> dict[str, Kernel]:
    """Return the functions in a file of generated code that are templates, by name. None if the file was deleted."""
    file = Path(path)
    return _named(file.read_text()) if file.exists() else {}


def _named(code: str) -> dict[str, Kernel]:
    in_cpp = {name: kernel for name, source in _FUNCTION.findall(code) if (kernel := _kernel(source))}
    return {**in_cpp, **{name: _of_triton(source) for name, source in _TRITON.findall(code)}}


def _of_triton(source: str) -> Kernel:
    kinds = tuple(TRITON_NAMES.get(kind, kind) for kind in _SIGNATURE.findall(source))
    return Kernel(PRODUCT if _OF_TRITON_BATCHES in source else LAYER, kinds)


def _kernel(source: str) -> Kernel | None:
    declared = _OPERANDS.search(source)
    if declared is None:
        return None
    activations, weights = (CPP_NAMES.get(name, name) for name in declared.groups())
    # Packed integer weights of a layer in floating point are converted inside: it computes in the dtype of the others.
    integers = DTYPES["int8"].operands
    packed = weights in integers and activations not in integers
    operands = (activations,) if packed else (activations, weights)
    return Kernel(PRODUCT if _BATCHED in source else LAYER, operands)
