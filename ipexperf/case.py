"""What a run measures, its cases: networks (cells of the matrix), functions that tests call, numbers of programs."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self

AXES = ("model", "device", "dtype", "mode", "stack")
AGAINST = "against"
"""The knob that names the other arm of a case measured in pairs. Such times are a series of their own."""
CONDITIONS = frozenset({"placement", AGAINST})
"""The knobs that say under what a case is run. All others are settings of what it does."""
ITSELF = "itself"
"""The value of that knob for a case that was compared with itself."""


class Case(ABC):
    """One thing that a run measures: what a network and a function have in common."""

    __slots__: tuple[str, ...] = ()
    device: str
    knobs: tuple[tuple[str, str], ...]
    noun: ClassVar[str]
    """What people call such a case."""
    step: ClassVar[str]
    """What it is timed in, as people call it."""
    labelled: ClassVar[bool]
    """Whether its id promises a dtype and right answers, of which there must be checks."""
    captures_vary: ClassVar[bool]
    """Whether one step may do other work than the next: then one that was captured tells little of the others."""

    @property
    @abstractmethod
    def plain_id(self) -> str:
        """The id with all knobs at their defaults."""

    @property
    def id(self) -> str:
        """The name for people, with the knobs that are not at their defaults."""
        return self.plain_id + turned(self.knobs)

    @property
    def name(self) -> str:
        """What people call it."""
        return self.id

    @property
    def primary(self) -> tuple[str, bool]:
        """The unit of its metric of speed, and whether more of it is better."""
        return "s", False

    @property
    def timed(self) -> bool:
        """Whether that metric is a time."""
        return self.primary == ("s", False)

    def cost(self, value: float) -> float:
        """What is compared of a value of that metric: less of it is better."""
        return 1 / value if self.primary[1] else value

    @property
    def label(self) -> str:
        """The name where two batches of a network, which have one name, may stand beside one another."""
        batch = self.inputs.get("batch")
        return self.name if batch is None else f"{self.name} (batch {batch})"

    @property
    def axes(self) -> dict[str, str]:
        """Its value on each axis that it has. By these a run is asked for it."""
        return {axis: getattr(self, axis) for axis in AXES if axis in self.__slots__}

    @property
    def inputs(self) -> dict[str, Any]:
        """What a step works through, by name. A function has nothing of the kind, so its throughput tells nothing."""
        return {name: getattr(self, name) for name in ("batch", "size", "data") if name in self.__slots__}

    @property
    def group(self) -> str | None:
        """Where pytest-benchmark shows it: beside the same mode of its model."""
        axes = self.axes
        return f"{axes['model']}-{axes['mode']}" if "model" in axes else None

    @property
    def slot(self) -> tuple[Any, ...]:
        """Everything that names its work except the version of its code. Baselines have one place for it."""
        return self.id, *self.inputs.values()

    @property
    def uid(self) -> str:
        """A hash of the content. Cases with the same uid do the same work."""
        return hashlib.sha256(_ENCODE(self.to_json()).encode()).hexdigest()

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """The knobs that change what the case does, such as packed weights."""
        return tuple(knob for knob in self.knobs if knob[0] not in CONDITIONS)

    def without_settings(self) -> Self:
        """Return the same case under the same conditions, with all settings at their defaults."""
        return self.without(*(name for name, _ in self.settings))

    def without(self, *names: str) -> Self:
        """Return the same case with these knobs at their defaults."""
        return self.with_knobs({name: value for name, value in self.knobs if name not in names})

    def with_knobs(self, knobs: Mapping[str, str]) -> Self:
        """Return the same case with these knobs, and all others at their defaults."""
        return self.from_json({**self.to_json(), "knobs": knobs})

    def to_json(self) -> dict[str, Any]:
        """Return plain values. Without knobs the key is left out, so that older cases keep their uids."""
        # `asdict` copies deeply, and judging asks often.
        document: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        knobs = dict(document.pop("knobs"))
        return {**document, "knobs": knobs} if knobs else document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_json` of this class returned."""
        return cls(**{**document, "knobs": tuple(sorted(document.get("knobs", {}).items()))})


@dataclass(frozen=True, slots=True)
class NetworkCase(Case):
    """A cell of the matrix with its input. `version` is bumped when the model's code changes: a new series begins."""

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

    noun = "network"
    step = "step"
    labelled = True
    captures_vary = False

    @property
    def plain_id(self) -> str:
        return "-".join(getattr(self, axis) for axis in AXES)


@dataclass(frozen=True, slots=True)
class FunctionCase(Case):
    """A function that a test measures."""

    test: str
    """The id of the test."""
    device: str
    knobs: tuple[tuple[str, str], ...] = ()

    noun = "function"
    step = "call"
    labelled = False
    captures_vary = True

    @property
    def plain_id(self) -> str:
        return self.test

    @property
    def name(self) -> str:
        return self.test


@dataclass(frozen=True, slots=True)
class ProgramCase(Case):
    """A number that a program tells of itself, or the program as a whole: then its time."""

    program: str
    """Its command line, without secrets."""
    device: str
    number: str = ""
    """The name of the number. Empty: the whole program."""
    unit: str = "s"
    higher: bool = False
    """Whether more of the number is better."""
    knobs: tuple[tuple[str, str], ...] = ()

    noun = "number"
    step = "run"
    labelled = False
    captures_vary = False

    @property
    def plain_id(self) -> str:
        return f"{self.program}: {self.number}" if self.number else self.program

    @property
    def name(self) -> str:
        return self.number or self.program

    @property
    def primary(self) -> tuple[str, bool]:
        return self.unit, self.higher

    @property
    def whole(self) -> ProgramCase:
        """The program as a whole."""
        return replace(self, number="", unit="s", higher=False)


OF_NETWORKS = tuple(name for name in NetworkCase.__slots__ if name not in FunctionCase.__slots__)
"""The fields of networks that functions lack."""


def from_json(document: Mapping[str, Any]) -> Case:
    """Read what `to_json` of any case returned."""
    kinds: dict[str, type[Case]] = {"test": FunctionCase, "program": ProgramCase}
    return next((kind for field, kind in kinds.items() if field in document), NetworkCase).from_json(document)


def networks(cases: Iterable[Case]) -> list[NetworkCase]:
    """Return the networks among these cases."""
    return [case for case in cases if isinstance(case, NetworkCase)]


_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def turned(knobs: Iterable[tuple[str, str]]) -> str:
    """Return the part of an id that has the knobs."""
    return "".join(f"+{name}:{value}" for name, value in knobs)
