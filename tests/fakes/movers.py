"""Two stacks to move between, with modes and settings that only one of them has. Loaded after `fake.py`."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, Cell, Knob, Stack
from ipexperf.bench.machine.facts import Facts


class Movable(type(registry.stacks.get("plain"))):  # type: ignore[misc] # known only where the fakes are loaded
    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        absent = facts.missing(f"{self.name}-package") if f"{self.name}-package" in facts.packages else None
        return absent or (None if cell.device == "fake" else f"{self.name} runs on the fake device")


class Old(Movable):
    name = "old"
    knobs = (Knob("packed", "weights laid out for their kernels"),)

    def script(self, method: str, cell: Cell) -> tuple[str, ...]:
        return ("import old", "model = old.optimise(model)") if method == "for_inference" else ()


class New(Movable):
    name = "new"
    knobs = (Knob("searched", "the fastest of several kernels", ("off", "on"), modes=(COMPILED,)),)

    def script(self, method: str, cell: Cell) -> tuple[str, ...]:
        searched = ", search=True" if cell.knob("searched") == "on" else ""
        return (f"model = new.compile(model{searched})",) if method == "compiled" else ()


Spun = type(registry.modes.get("spin"))
"""A mode like it is in the same rounds."""


class Whirl(Spun):  # type: ignore[misc, valid-type]
    """What the new stack recommends."""

    name = "whirl"
    graph = COMPILED

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return super().why_not(cell, facts) or (None if cell.stack == "new" else f"{cell.stack} cannot whirl")

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return (*stack.script("compiled", cell), "outputs = model(*inputs)")


class Streams(Spun):  # type: ignore[misc, valid-type]
    """What only the old stack has."""

    name = "streamed"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return super().why_not(cell, facts) or (None if cell.stack == "old" else f"{cell.stack} has no streams")

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return (*stack.script("for_inference", cell), "outputs = old.streams(model)(*inputs)")


class Fuse(Knob):
    """What is fused. The last kind comes with the old stack."""

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        return f"{value} comes with old: {cell.stack} has none" if value == "own" and cell.stack != "old" else None


class Teach(Spun):  # type: ignore[misc, valid-type]
    """A training, in which users choose among several kinds of updates."""

    name = "teach"
    trains = True
    knobs = (Fuse("update", "what updates the weights", ("plain", "quick", "own"), choice=True),)

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return (*stack.script("for_inference", cell), f"update = {cell.knob('update') or 'plain'}()")


for one in (Old(), New()):
    registry.stacks.add(one.name, one)
for mode in (Whirl(), Streams(), Teach()):
    registry.modes.add(mode.name, mode)
