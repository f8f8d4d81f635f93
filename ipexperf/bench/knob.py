"""Knobs: the settings of modes and stacks, and what is wrong with a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Model
from ipexperf.errors import UsageError


@dataclass(frozen=True)
class Knob:  # no slots: subclasses set name and help as defaults
    """A setting of a mode or a stack. The default is the first of its values."""

    name: str
    help: str
    values: tuple[str, ...] = ("on", "off")
    modes: tuple[str, ...] | None = None
    """Traits of the modes that have this knob (`Mode.traits`). None: all modes of its owner."""
    dtypes: tuple[str, ...] | None = None
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Devices on which the software ignores the setting, with what it does instead."""
    barred: Mapping[str, str] = field(default_factory=dict)
    """Traits of the modes that cannot have this knob (`Mode.traits`), with the reasons."""
    of_model: str = ""
    """The attribute of the model that is the default, in place of the first value."""
    beside: tuple[str, tuple[str, ...], str] | None = None
    """Another knob, those of its values beside which this one does anything, and why it does nothing otherwise."""

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        """Return the default value, given the requested values of the other knobs."""
        if not self.of_model:
            return self.values[0]
        value = getattr(model, self.of_model)
        return value if isinstance(value, str) else "on" if value else "off"

    def ablated(self, model: Model, beside: Mapping[str, str]) -> str:
        """Return the value that `--perf-ablate` compares with the default."""
        if len(self.values) != 2:
            raise UsageError(f"the knob {self.name} has no 'off': ablation is for knobs that are on or off")
        return next(value for value in self.values if value != self.default(model, beside))

    def wrong(self, value: str) -> str | None:
        """Return why a value is invalid, or None."""
        return None if value in self.values else f"expected one of {', '.join(self.values)}, got '{value}'"

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        """Return why this cell cannot have the knob although its mode can (`Mode.lacks`), or None."""
        if self.beside is not None:
            other, values, reason = self.beside
            if cell.knob(other) not in values:
                return f"the knob {self.name} is for {other}={' and '.join(values)}: {reason}"
        if self.dtypes is not None and cell.dtype not in self.dtypes:
            return f"the knob {self.name} is for {', '.join(self.dtypes)}, not for {cell.dtype}"
        if cell.device in self.ignored:
            return f"the knob {self.name} would change nothing on {cell.device}: {self.ignored[cell.device]}"
        return None


@dataclass(frozen=True)
class Number(Knob):
    """A knob whose value is a whole number of at least 1. The first of `values` is its default."""

    def wrong(self, value: str) -> str | None:
        ok = value.isascii() and value.isdigit() and int(value) > 0
        return None if ok else f"expected a whole number of at least 1, got '{value}'"

    def ablated(self, model: Model, beside: Mapping[str, str]) -> str:
        raise UsageError(f"the knob {self.name} is a number: ablation is for knobs that are on or off")


CHANNELS_LAST = Knob(
    "channels_last",
    "images and weights laid out with their channels last (default: the model's)",
    of_model="channels_last",
)
