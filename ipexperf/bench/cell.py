"""What is asked for: a cell of the matrix, and the settings of its worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipexperf.case import turned


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the axes, before it is known whether it can run."""

    model: str
    device: str
    dtype: str
    mode: str
    stack: str
    knobs: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """The id that the case would have."""
        return f"{self.model}-{self.device}-{self.dtype}-{self.mode}-{self.stack}{turned(self.knobs)}"

    def knob(self, name: str) -> str | None:
        """Return the requested value of a knob, or None if it stays at its default."""
        return dict(self.knobs).get(name)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a worker besides its case. Sent to it as JSON."""

    load: tuple[str, ...] = ()
    threads: int | None = None
    seed: int = 0
    weights: str | None = None
    checkpoint: str | None = None
    """Path where training saves its checkpoint. None: do not save."""
    artifact: str | None = None
    """Path of the quantised network that an int8 case loads."""
    data_folder: str | None = None
    data_file: str | None = None
    train_steps: int | None = None
    """Number of steps of the mode `train`. None: as declared by the model."""
    placement: Mapping[str, Any] | None = None
    """Placement that the worker applies and proves (`bench.machine.placement`). None: stay as started."""
    forked: bool = False
    """True if the worker must be forked. It proves that."""
    shared: str | None = None
    """Folder for results that all workers of a run share (`bench.shared`). None: share nothing."""
    cards: Sequence[Mapping[str, str]] = ()
    """Variables for each process of a case with several, which give it a device of its own."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Settings:
        """Read the settings of a request."""
        return cls(**{**document, "load": tuple(document["load"])})
