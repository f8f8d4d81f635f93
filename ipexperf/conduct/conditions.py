"""The conditions of a launch: settings, interpreter, variables, limits, and how its worker begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ipexperf.bench.kinds import Settings
from ipexperf.conduct.pulse import NO_PULSE, Pulse
from ipexperf.conduct.server import Server
from ipexperf.conduct.worker import Worker


@dataclass(frozen=True, slots=True)
class Conditions:
    """How launches are made in this run."""

    settings: Settings
    python: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    accelerator: bool = False
    """Whether the case is on a device that can be lost: what its runtime printed last is then looked at."""
    timeout: float = 600.0
    samples: int = 12
    seconds: float = 0.6
    say: Callable[[str], None] = lambda _: None
    server: Server | None = None
    """What workers are forked from; None: they are started fresh."""
    notes: tuple[str, ...] = ()
    """What every launch says of how it was started."""
    yardstick: str | None = None
    """The interpreter of the yardstick that takes turns with the case; None: it runs alone."""
    instances: tuple[Conditions, ...] = ()
    """Of each worker, where several answer at the same time."""
    pulse: Pulse = NO_PULSE
    """What says how quick the machine is, before and after."""

    def given(self, **more: Any) -> Conditions:
        """The same, with settings that the worker is told beside the others."""
        instances = tuple(instance.given(**more) for instance in self.instances)
        return replace(self, settings=replace(self.settings, **more), instances=instances)

    def worker(self) -> Worker:
        return Worker(self.python, self.variables, self.timeout, self.say, self.server)
