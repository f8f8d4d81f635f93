"""What all measurements of a run share: what cases load, servers, pulses, roofs, lost devices and the budget."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from ipexperf.conduct.server import Order, Servers, ServerSpec, start_servers
from ipexperf.conduct.worker import Worker
from ipexperf.errors import ForkError, WorkerError
from ipexperf.plan import start
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement


def _order(case: Case, conditions: Conditions) -> Order:
    """What a server imports before it is forked for workers of the case."""
    return Order(case.stack, conditions.settings.load, registry.models.get(case.model).needs)


def _server_spec(case: Case, conditions: Conditions) -> ServerSpec:
    variables = tuple(sorted(conditions.variables.items()))
    return ServerSpec(_order(case, conditions), conditions.python, variables, conditions.timeout)


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
        self._unforkable = False
        """Whether a server refused to be forked: later rounds do not try again."""
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
        if self._options.start != start.FORK:
            return case, conditions
        reason = start.why_fresh(case, self._options)
        if not reason and start.FORK in dict(case.knobs).values():
            try:
                order = _order(case, conditions)
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

    @contextlib.contextmanager
    def forked(self, cases: Mapping[Case, Conditions], arms: int) -> Iterator[dict[Case, Conditions]]:
        """Yield the conditions, by case, under which one round of `arms` arms forks its workers.

        Yield none if the round must start fresh: forking would save no imports, a case may not be forked, or a server
        refuses. Each round has its own servers, so that address layout and hash seed are drawn anew every round.
        """
        allowed = self._options.start == start.AUTO and not self._unforkable
        specs = {}
        if allowed and not any(start.why_fresh(case, self._options) for case in cases):
            specs = {case: _server_spec(case, conditions) for case, conditions in cases.items()}
        if len(set(specs.values())) >= arms:
            specs = {}
        with contextlib.ExitStack() as stack:
            forked = {}
            try:
                servers = stack.enter_context(start_servers(specs.values()))
            except (ForkError, WorkerError) as error:
                self._unforkable = True
                self._say(f"workers are started fresh in every round: {error}")
            else:
                for case, spec in specs.items():
                    settings = dataclasses.replace(cases[case].settings, forked=True)
                    forked[case] = dataclasses.replace(cases[case], settings=settings, server=servers[spec])
            yield forked

    def look(self, case: Case, launches: Iterable[Launch]) -> None:
        """Takes in that a case lost its device: no other case is launched there."""
        self._quarantine.look(case, launches)

    def quarantined(self, case: Case) -> list[Launch]:
        """What stands for the launches of a case whose device was lost; none where it was not."""
        return self._quarantine.launches(case)

    def close(self) -> None:
        """Ends what outlives a case."""
        self._servers.close()
        self._provisions.close()
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
