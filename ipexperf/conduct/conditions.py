"""The conditions of a launch: settings, interpreter, variables, limits, and how its worker begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ipexperf.bench.cell import Settings
from ipexperf.conduct import gate, memory_limit
from ipexperf.conduct.server import Server
from ipexperf.conduct.worker import Worker
from ipexperf.judge.policy import GatePolicy


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the launches of a case are made in this run."""

    settings: Settings
    python: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    accelerator: bool = False
    """Whether the case runs on an accelerator. If its worker crashes, the log tells whether the device was lost."""
    timeout: float = 600.0
    samples: int = 12
    seconds: float = 0.6
    say: Callable[[str], None] = lambda _: None
    server: Server | None = None
    """The server that workers are forked from. None: they start fresh."""
    notes: tuple[str, ...] = ()
    """Notes for every launch on how it was started."""
    instances: tuple[Conditions, ...] = ()
    """The conditions of each worker, if several answer requests at the same time."""
    gate: GatePolicy = field(default_factory=lambda: gate.POLICY)
    """From which shares on the machine counts as contended."""

    memory: int = field(default_factory=memory_limit.limit)
    """How many bytes all workers of a round may use together."""
    start: Callable[..., Worker] = Worker
    """Starts a worker process."""

    def with_settings(self, **more: Any) -> Conditions:
        """A copy with these settings changed, for every instance too."""
        instances = tuple(instance.with_settings(**more) for instance in self.instances)
        return replace(self, settings=replace(self.settings, **more), instances=instances)

    def worker(self) -> Worker:
        return self.start(self.python, self.variables, self.timeout, self.say, self.server, memory=self.memory)
