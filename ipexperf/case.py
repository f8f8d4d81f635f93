"""A case: one cell of the matrix with its batch and input size."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

AXES = ("model", "device", "dtype", "mode", "stack")
DTYPES = ("fp32", "bf16", "fp16", "int8")


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the matrix. `version` is bumped when the model's code changes: a new series begins."""

    model: str
    device: str
    dtype: str
    mode: str
    stack: str
    batch: int
    size: int
    version: int = 1
    data: str = ""

    @property
    def id(self) -> str:
        """The name for people: the axes, joined."""
        return "-".join(getattr(self, axis) for axis in AXES)

    @property
    def uid(self) -> str:
        """The name by content: two cases with the same uid did the same work."""
        document = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(document.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Case:
        return cls(**document)
