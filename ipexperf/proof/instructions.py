"""Check that kernels use the CPU's instructions for the dtype, which names in oneDNN's log and inductor's code show.

It is no error if the CPU has no such instructions. If it has them and no kernel used them, the case is silently slower
than its label claims.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ipexperf.bench.api import Kernel
from ipexperf.bench.machine import facts
from ipexperf.case import NetworkCase
from ipexperf.dtypes import DTYPES, Instructions
from ipexperf.proof import label, onednn
from ipexperf.result import Check

FREE = ("", "all", "default")
TINY_ROWS, TINY_RESULT, TINY_INNER = 32, 256, 16
"""Up to these sizes of a product oneDNN does without AMX: rows and numbers in the result, or inner length. Read from
its sources; no such processor was at hand."""
SHOWN = 4
"""Number of implementations to list."""


def best(dtype: str, flags: frozenset[str]) -> Instructions | None:
    """Return the best instructions of this CPU for the dtype, or None."""
    return next((means for means in DTYPES[dtype].instructions if means.flag in flags), None)


def limit(means: Instructions, variables: Mapping[str, str]) -> str:
    """Return the setting that keeps oneDNN from using these instructions, or an empty text."""
    for name in onednn.ISA_VARIABLES:
        value = variables.get(name, "").lower()
        if value not in FREE and not any(word in value for word in means.words):
            return f"{name}={variables[name]}"
    return ""


def check(kernels: Iterable[Kernel], dtype: str, means: Instructions, code: str = "") -> Check:
    """Check that at least one kernel in the dtype used them. Small and depthwise layers may not.

    `code` is what inductor generated: with max_autotune it may hold kernels of its own in place of oneDNN's.
    """
    kernels = list(kernels)
    counts = Counter(kernel.implementation for kernel in kernels if _of(kernel, dtype))
    used = sum(count for name, count in counts.items() if any(word in name for word in means.words))
    listed = ", ".join(f"{name} x{count}" for name, count in counts.most_common(SHOWN))
    text = f"{means.called} in {used} of {counts.total()} kernels of oneDNN in {dtype}"
    generated = [name.rstrip("(") for name in means.intrinsics if name in code]
    if generated and not used:
        text = f"{means.called} in code that inductor generated: {', '.join(generated)}"
        return Check("instructions", True, text, wanted(means))
    if not counts and not means.alone:
        # FBGEMM computes stock's quantised layers, torch small products on Arm.
        text = f"no oneDNN kernel in {dtype}; other libraries do not report their instructions"
        return Check("instructions", True, text, f"{means.called} where it is reported")
    if not used and counts and all(_tiny(kernel, means) for kernel in kernels if _of(kernel, dtype)):
        return Check("instructions", True, f"{text}: oneDNN computes products so small without", wanted(means))
    return Check("instructions", used > 0, f"{text}: {listed}" if listed else text, wanted(means))


def _tiny(kernel: Kernel, means: Instructions) -> bool:
    """Return True for a product that oneDNN leaves to narrower instructions, because tiles would stay empty."""
    if means.called != "AMX" or kernel.product is None:
        return False
    rows, columns, inner = kernel.product
    return (rows <= TINY_ROWS and rows * columns <= TINY_RESULT) or inner <= TINY_INNER


def _of(kernel: Kernel, dtype: str) -> bool:
    return set(kernel.operands) <= DTYPES[dtype].operands


def wanted(means: Instructions) -> str:
    """Return what the check expects of a library that reports its instructions."""
    return f"{means.called} in at least one"


def proof(step: Callable[[], Any], case: NetworkCase, code: str = "") -> list[Check]:
    """Return evidence from oneDNN's log of a step, and from the code that inductor generated for it.

    Empty if the CPU lacks the instructions or they are disabled.
    """
    means = best(case.dtype, facts.cpu_flags())
    if case.device != "cpu" or means is None or limit(means, os.environ):
        return []
    logged = label.arithmetic_of(onednn.recorded(step, onednn.verbose()))
    return [check(logged, case.dtype, means, code)]


def notes(case: NetworkCase) -> list[str]:
    """Return a note if the user keeps oneDNN from using instructions of the CPU."""
    means = best(case.dtype, facts.cpu_flags())
    if case.device != "cpu" or means is None:
        return []
    lowered = limit(means, os.environ)
    return [f"does not use {means.called}, which this CPU has, because of {lowered}"] if lowered else []
