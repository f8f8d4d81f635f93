"""Read safetensors files: a length, a table of names in JSON, and the tensors' bytes. They cannot contain code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch

LENGTH = 8
"""Size of the number at the beginning, which is the length of the table."""
DTYPES = {
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
}
"""The dtypes of published weights, as the table and torch name them."""


def read(path: str | Path) -> dict[str, Any]:
    """Return the tensors of a file by name. The caller knows by its checksum that the file is whole."""
    data = bytearray(Path(path).read_bytes())
    begin = LENGTH + int.from_bytes(data[:LENGTH], "little")
    table = json.loads(data[LENGTH:begin])
    table.pop("__metadata__", None)
    return {name: _tensor(data, begin, header) for name, header in table.items()}


def _tensor(data: bytearray, begin: int, header: dict[str, Any]) -> Any:
    first, last = header["data_offsets"]
    dtype = getattr(torch, DTYPES[header["dtype"]])
    count = (last - first) // dtype.itemsize
    return torch.frombuffer(data, dtype=dtype, count=count, offset=begin + first).reshape(header["shape"])
