"""Read safetensors files: a length, a table of names in JSON, and the tensors' bytes. They cannot contain code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

LENGTH = 8
"""Size of the number at the beginning, which is the length of the table."""
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
    """Return the tensors of a file by name. Raise WorkerError if the file is damaged."""
    data = bytearray(Path(path).read_bytes())
    begin = LENGTH + int.from_bytes(data[:LENGTH], "little")
    try:
        table = json.loads(bytes(data[LENGTH:begin]))
        table.pop("__metadata__", None)
        return {name: _tensor(data, begin, header) for name, header in table.items()}
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise WorkerError("error", f"{path} is truncated or not a safetensors file: {error}") from error


def _tensor(data: bytearray, begin: int, header: dict[str, Any]) -> Any:
    """Return one tensor. Its bytes must exist and match its shape."""
    first, last = header["data_offsets"]
    dtype = getattr(torch, DTYPES[header["dtype"]])
    if not 0 <= first <= last <= len(data) - begin:
        raise ValueError(f"bytes {first} to {last} of {len(data) - begin}")
    if first == last:
        return torch.empty(header["shape"], dtype=dtype)
    count = (last - first) // dtype.itemsize
    return torch.frombuffer(data, dtype=dtype, count=count, offset=begin + first).reshape(header["shape"])
