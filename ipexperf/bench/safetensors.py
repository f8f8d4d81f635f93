"""Reads a safetensors file: a length, a table of names in JSON, and the tensors' bytes. It can carry no code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

LENGTH = 8
"""Bytes of the number in front, which says how long the table is."""
DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


def read(path: str | Path) -> dict[str, Any]:
    """The tensors of a file by their names, or one sentence that says what is wrong with it."""
    data = bytearray(Path(path).read_bytes())
    begin = LENGTH + int.from_bytes(data[:LENGTH], "little")
    try:
        table = json.loads(bytes(data[LENGTH:begin]))
        table.pop("__metadata__", None)
        return {name: _tensor(data, begin, told) for name, told in table.items()}
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise WorkerError("error", f"{path} is cut short or is no safetensors file: {error}") from error


def _tensor(data: bytearray, begin: int, told: dict[str, Any]) -> Any:
    """One tensor: its bytes must be there, and as many as its shape needs."""
    first, last = told["data_offsets"]
    dtype = getattr(torch, DTYPES[told["dtype"]])
    if not 0 <= first <= last <= len(data) - begin:
        raise ValueError(f"bytes {first} to {last} of {len(data) - begin}")
    if first == last:
        return torch.empty(told["shape"], dtype=dtype)
    count = (last - first) // dtype.itemsize
    return torch.frombuffer(data, dtype=dtype, count=count, offset=begin + first).reshape(told["shape"])
