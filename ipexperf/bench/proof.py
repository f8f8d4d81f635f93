"""Did it really run there, in that dtype, jitted? Each answer is a check with what was found."""

from __future__ import annotations

import ctypes
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.precision import torch_dtype
from ipexperf.result import Check

HEAVY = ("aten::_convolution", "aten::addmm", "aten::mm", "aten::bmm", "aten::convolution_backward")
"""The operators that do the arithmetic, below autocast: their first input has the dtype of the case."""
_PROFILER_NAMES = {"float": "float32", "c10::BFloat16": "bfloat16", "c10::Half": "float16", "double": "float64"}
_ONEDNN_NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "s8": "int8", "u8": "uint8"}
_PRIMITIVE = re.compile(
    r"onednn_verbose,.*exec,\w+,(?:convolution|matmul|inner_product),[^,]*,[^,]*,[^,]*?src(?:_\w+)?:(\w+):"
)


def device_of(value: Any, device: str) -> Check:
    """The tensor lies on the device of the label."""
    return Check("device", value.device.type == device, value.device.type, device)


def layout(value: Any, *, channels_last: bool) -> Check:
    """The input lies in memory as the model wants it."""
    if not channels_last:
        return Check("layout", value.is_contiguous(), "strided", "contiguous")
    ok = value.is_contiguous(memory_format=torch.channels_last)
    return Check("layout", ok, "channels_last" if ok else "contiguous", "channels_last")


def jitted(network: Any) -> Check:
    """A frozen script module: no parameters are left outside its graph."""
    script = isinstance(network, torch.jit.ScriptModule)
    outside = len(list(network.parameters())) if script else -1
    found = f"frozen graph, {outside} parameters outside" if script else type(network).__name__
    return Check("jit", script and outside == 0, found, "frozen graph, 0 parameters outside")


def dtype_of_kernels(found: Counter[str], dtype: str) -> Check:
    """Every operator that does arithmetic took its input in the dtype of the label."""
    expected = str(torch_dtype(dtype)).removeprefix("torch.")
    told = ", ".join(f"{kind} x{count}" for kind, count in found.most_common()) or "no kernel with a dtype"
    return Check("dtype", set(found) == {expected}, told, f"{expected} in all")


def profiled_dtypes(step: Callable[[], Any]) -> Counter[str]:
    """One step under torch's profiler: the dtype of the first input of each arithmetic operator."""
    with torch.profiler.profile(record_shapes=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    types = [event["args"]["Input type"] for event in events if event.get("name") in HEAVY and "args" in event]
    return Counter(_PROFILER_NAMES.get(kinds[0], kinds[0]) for kinds in types if kinds)


def logged_dtypes(step: Callable[[], Any], verbose: AbstractContextManager[Any]) -> Counter[str]:
    """One step with oneDNN's own log: the source dtype of each convolution, matrix product and inner product.

    For operators whose packed weights hide their inputs from the profiler. The library prints to file
    descriptor 1, which a worker has long turned away from its protocol.
    """
    with tempfile.TemporaryFile() as log:
        kept = os.dup(1)
        try:
            os.dup2(log.fileno(), 1)
            with verbose:
                step()
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()
    matches = (_PRIMITIVE.match(line) for line in lines)
    return Counter(_ONEDNN_NAMES.get(match.group(1), match.group(1)) for match in matches if match)
