"""What all measurements of a run share: what cases load, servers, pulses, roofs, lost devices and the budget."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ipexperf.bench import environment as surroundings
from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.provisions import Provisions
from ipexperf.conduct.pulse import Pulses
from ipexperf.conduct.quarantine import Quarantine
from ipexperf.conduct.roof import Roofs
from ipexperf.conduct.server import Order, Servers
from ipexperf.conduct.worker import Worker
from ipexperf.errors import ForkError, WorkerError
from ipexperf.plan import start
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Conductor:
    """Holds what is the same for all cases of a run."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        self._options = options
        self._provisions = Provisions(options, folder, say)
        self._say = say
        self._quarantine = Quarantine()
        self._servers = Servers()
        self._roofs = None if options.no_roof else Roofs(self._provisions.cache, say)
        self._pulses = None if options.no_pulse else Pulses(self._feeler, self._provisions.load, say)
        self._folder = folder
        self._deadline = time.monotonic() + options.budget if options.budget else None

    @functools.cached_property
    def _source(self) -> dict[str, Any]:
        """The commit that is measured: asked of git with the first measurement, not while tests are collected."""
        return surroundings.source(self._folder)

    def ready(self, case: Case, python: str | None = None) -> Conditions:
        """The conditions of a case, with what it loads: made where it is not there yet."""
        found = self._provisions.ready(case, python)
        return dataclasses.replace(found, pulse=self._pulses) if self._pulses else found

    def _feeler(self, case: Case) -> Worker:
        """The process that feels the pulse of the device of this case, and of all cases there."""
        variables = registry.devices.get(case.device).variables(self._options.device_index, os.environ)
        return Worker(self._options.python, variables, self._options.timeout)

    def start(self, case: Case, conditions: Conditions) -> tuple[Case, Conditions]:
        """How launches of the case are started. Where they were to be forked and can't be, it is the plain case."""
        reason = start.why_fresh(case, self._options)
        if not reason and start.FORK in dict(case.knobs).values():
            needs = registry.models.get(case.model).needs
            try:
                order = Order(case.stack, conditions.settings.load, needs)
                server = self._servers.get(order, conditions.python, conditions.variables, conditions.timeout)
            except (ForkError, WorkerError) as error:
                reason = str(error)
                case = start.plain(case)
            else:
                note = f"forked from a server, which had imported for {server.seconds:.1f} s"
                return case, dataclasses.replace(conditions, server=server, notes=(note,))
        if not reason:
            return case, conditions
        note = f"started fresh, not forked: {reason}"
        self._say(f"{case.id}: {note}")
        return case, dataclasses.replace(conditions, notes=(note,))

    def look(self, case: Case, launches: Iterable[Launch]) -> None:
        """Takes in that a case lost its device: no other case is launched there."""
        self._quarantine.look(case, launches)

    def quarantined(self, case: Case) -> list[Launch]:
        """What stands for the launches of a case whose device was lost; none where it was not."""
        return self._quarantine.launches(case)

    def close(self) -> None:
        """Ends what outlives a case."""
        self._servers.close()
        if self._pulses:
            self._pulses.close()

    def roofed(
        self, launches: list[Launch], case: Case, conditions: Conditions, environment: Mapping[str, Any]
    ) -> list[Launch]:
        """The launches with what they reached of the machine's ceilings, where that was not switched off."""
        if self._roofs is None or not environment or self.spent():
            return launches
        return self._roofs.over(launches, case, conditions, environment)

    def spent(self) -> bool:
        """Whether the budget is: nothing that takes long may begin then."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def measurement(
        self,
        case: Case,
        launches: Sequence[Launch],
        found: Mapping[str, Any],
        started: str,
        cut: str = "",
    ) -> Measurement:
        """The record of a case: where no worker could say on which machine it was, as far as we know that."""
        if not found:
            machine = {**surroundings.hardware(), "accelerator": None, "threads": None}
            found = {
                "machine_key": surroundings.machine_key(machine),
                "hardware": machine,
                "software": {"torch": None, "ipex": None},
                "variables": {},
            }
        return Measurement(case, tuple(launches), {**found, "git": self._source}, started, now(), cut)
