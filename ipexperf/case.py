"""A case: one cell of the matrix with its batch and input size."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from typing import Any

AXES = ("model", "device", "dtype", "mode", "stack")
AGAINST = "against"
"""The knob that names the other arm of a case measured in pairs. Such times are a series of their own."""
CALL = "call"
"""The mode of a function that a test measures. Its case has the id of the test as its model, and no dtype or stack of
its own: those of the plainest case stand there."""
CONDITIONS = frozenset({"placement", AGAINST})
"""The knobs that say under what a case is run. All others are settings of what it does."""
ITSELF = "itself"
"""The value of that knob for a case that was compared with itself."""


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
    knobs: tuple[tuple[str, str], ...] = ()
    """Settings of the mode or the stack that are not at their default, by name."""

    @property
    def id(self) -> str:
        """The name for people: the axes, joined, and the settings that are not at their defaults."""
        return identify(self)

    @property
    def is_call(self) -> bool:
        """Whether it is a function that a test measures."""
        return self.mode == CALL

    @property
    def name(self) -> str:
        """What people call it: its id, or the test of a function."""
        return self.model if self.is_call else self.id

    @property
    def label(self) -> str:
        """The same where two batches of a network, which have one id, may stand beside one another."""
        return self.name if self.is_call else f"{self.id} (batch {self.batch})"

    @property
    def axes(self) -> dict[str, str]:
        """Its value on each axis, for people: a function has neither dtype nor stack."""
        return {axis: "" if self.is_call and axis in ("dtype", "stack") else getattr(self, axis) for axis in AXES}

    @property
    def uid(self) -> str:
        """A hash of the content. Cases with the same uid do the same work."""
        return hashlib.sha256(_ENCODE(self.to_json()).encode()).hexdigest()

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """The knobs that change what the case does, such as packed weights."""
        return tuple(knob for knob in self.knobs if knob[0] not in CONDITIONS)

    def without_settings(self) -> Case:
        """Return the same case under the same conditions, with all settings at their defaults."""
        return self.without(*(name for name, _ in self.settings))

    def without(self, *names: str) -> Case:
        """Return the same case with these knobs at their defaults."""
        return replace(self, knobs=tuple(knob for knob in self.knobs if knob[0] not in names))

    def to_json(self) -> dict[str, Any]:
        """Return plain values. Without knobs the key is left out, so that older cases keep their uids."""
        document = {name: getattr(self, name) for name in _FIELDS}  # `asdict` copies deeply, and judging asks often
        knobs = dict(document.pop("knobs"))
        return {**document, "knobs": knobs} if knobs else document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Case:
        return cls(**{**document, "knobs": tuple(sorted(document.get("knobs", {}).items()))})


_FIELDS = tuple(field.name for field in fields(Case))
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def of_test(test: str, device: str) -> Case:
    """Return the case of a test that measures a function, by the id of the test."""
    return Case(test, device, "fp32", CALL, "stock", batch=1, size=1, data="none")


def identify(cell: Any) -> str:
    """Return the id for these axes and knobs: `resnet18-cpu-bf16-train-ipex+optimizer:adam`. Of a call: its test."""
    return joined(cell) + "".join(f"+{name}:{value}" for name, value in cell.knobs)


def joined(axes: Any) -> str:
    """Return the axes, joined, of anything that has them. Of a call: its test."""
    return str(axes.model) if axes.mode == CALL else "-".join(getattr(axes, axis) for axis in AXES)
