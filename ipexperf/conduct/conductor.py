"""What all cases of a run share: their conditions, the lease, the budget, lost devices, files, servers, peak rates."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ipexperf import lock, scratch
from ipexperf.bench import registry
from ipexperf.bench.api import Execution
from ipexperf.bench.cell import Settings
from ipexperf.bench.declaration import answer
from ipexperf.bench.device import Device
from ipexperf.bench.machine.inventory import Inventory
from ipexperf.bench.machine.placement import ranges
from ipexperf.bench.process import environment as surroundings
from ipexperf.case import Case, NetworkCase, ProgramCase
from ipexperf.conduct import gate, lease, memory_limit, placement, process
from ipexperf.conduct.case_files import CaseFiles
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.forking import Forking, ForkServers
from ipexperf.conduct.memory_fit import Footprints
from ipexperf.conduct.roof import Roofs
from ipexperf.conduct.worker import Worker
from ipexperf.errors import UsageError, WorkerError
from ipexperf.judge import growth
from ipexperf.judge.policy import GatePolicy
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement

LEAST_OF_FUNCTIONS = {"samples": 10, "seconds": 0.1}
"""The least of a function's launch, unless the command line says otherwise: a suite has hundreds."""
NO_LEASE = "measured without a lease: another process may have measured on the device at the same time"
"""The note of every launch with `--perf-lease off`."""


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Conductor:
    """Shared state of a run."""

    def __init__(
        self,
        options: Options,
        folder: Path,
        say: Callable[[str], None],
        *,
        policy: GatePolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        memory: int | None = None,
        start: Callable[..., Worker] = Worker,
    ) -> None:
        """Prepare a run. `policy`, `memory` and `start` are for its `Conditions`; the budget runs by `clock`."""
        self._options = options
        self._folder = folder
        self._say = say
        self._start = start
        self._policy = policy or gate.POLICY
        self._memory = memory_limit.limit() if memory is None else memory
        self._clock = clock
        self._deadline = clock() + options.budget if options.budget else None
        self.lease = lease.Lease(options.lease, say)
        self.load = tuple(str(Path(item).resolve()) if item.endswith(".py") else item for item in options.load)
        """The modules and files of `--perf-load`, with absolute paths."""
        self._cache = scratch.cache(options.cache, folder)
        self._shared = scratch.Scratch("shared")
        self._files = CaseFiles(self._cache, say)
        self._footprints = Footprints(say)
        self._servers = ForkServers(options, say)
        self._told_cores = False
        self._lost: dict[str, str] = {}
        """The devices that were lost, each with the case that lost it."""
        self._roofs = None if "roof" in options.without else Roofs(self._cache, say)

    @functools.cached_property
    def _source(self) -> dict[str, Any]:
        """The commit that is measured. Lazy, because asking git during collection would slow that down."""
        return surroundings.source(self._folder)

    def ready(self, case: Case, python: str | None = None, source: str = "") -> Conditions:
        """The conditions of a case. Makes what the case loads, unless the cache has it.

        Every measurement calls this first, so this takes the lease on its device.

        `python` is the interpreter of its workers if it is not that of the run. Libraries that they preload are its
        own. `source` is their value of `SOURCE`, if another tree of files takes the place of the user's.
        """
        self.reserve((case,))
        conditions = self._conditions(case, python)
        if not isinstance(case, NetworkCase):
            return conditions
        self._footprints.refuse_larger(case, conditions)
        return self._files.made(case, conditions, python, source)

    def reserve(self, cases: Iterable[Case]) -> None:
        """Hold the devices of these cases, until this is closed."""
        claims = (lease.of_case(case, self._options.index(case.device), os.environ) for case in cases)
        self.lease.take(set().union(*claims))

    def forking(
        self, cases: Sequence[tuple[Case, Conditions]], arms: int
    ) -> contextlib.AbstractContextManager[Forking]:
        """The servers from which a round of so many arms forks the workers of these cases."""
        return self._servers.of_round(cases, arms)

    def quarantine_if_lost(self, case: Case, launches: Iterable[Launch]) -> None:
        """Quarantine the device of the case if one of these launches lost it: nothing more is launched there."""
        if any(launch.outcome == "device_lost" for launch in launches):
            self._lost.setdefault(case.device, case.id)

    def quarantined(self, case: Case) -> list[Launch]:
        """A launch record that says so if the device of the case was lost, else none."""
        if case.device not in self._lost:
            return []
        reason = f"{case.device} is in quarantine since {self._lost[case.device]} lost it: not launched"
        return [Launch(0, "device_lost", reason)]

    def close(self) -> None:
        """Remove shared files, and give the devices back."""
        self.lease.close()
        self._shared.close()

    def roofed(
        self, launches: list[Launch], case: Case, conditions: Conditions, environment: Mapping[str, Any]
    ) -> list[Launch]:
        """Add to the launches what share of the roof they reached, unless that is switched off."""
        if self._roofs is None or not environment or not isinstance(case, NetworkCase):
            return launches
        return self._roofs.with_shares(launches, case, conditions, environment)

    def spent(self) -> bool:
        """Whether the budget is spent, of which waiting for a device takes none. Nothing long may then begin."""
        if self._deadline is None:
            return False
        return self._clock() > self._deadline + self.lease.seconds_waited

    def measurement(
        self,
        case: Case,
        launches: Sequence[Launch],
        environment: Mapping[str, Any],
        started: str,
        cut: str = "",
    ) -> Measurement:
        """The record of a case. If no worker could describe the machine, describe it as far as we can."""
        locked = self._locked({**(environment or surroundings.of_machine()), "git": self._source})
        if not registry.execution(case).requests:  # whose samples are of several workers
            launches = growth.noted(launches)
        return Measurement(case, tuple(launches), locked, started, now(), cut)

    def _locked(self, environment: Mapping[str, Any]) -> dict[str, Any]:
        """The environment with the lock of its software in place of the worker's inventory."""
        document = dict(environment)
        inventory = document.pop("inventory", None)
        if inventory is not None:
            recorded = lock.make(
                Inventory.from_json(inventory),
                software=document["software"],
                variables=process.tuned_by_user(os.environ),
                placement=str(self._options.placement or ""),
            )
            document |= {"lock": recorded.digest, "lock_text": recorded.text}
        return document

    def _conditions(self, case: Case, python: str | None = None) -> Conditions:
        device = registry.devices.get(case.device)
        data = str(self._options.data) if self._options.data else None
        settings = Settings(
            load=self.load,
            threads=self._options.threads,
            data_folder=data,
            shared=str(self._shared.path),
            cards=self._cards(case),
        )
        least = {name: getattr(self._options, name) for name in LEAST_OF_FUNCTIONS}
        if isinstance(case, NetworkCase):
            checkpoint = str(self._cache.resolve() / "checkpoints" / f"{case.id}.pt")
            data_file = registry.datasets.get(case.data).find(data)[0]
            settings = dataclasses.replace(settings, checkpoint=checkpoint, data_file=data_file)
        else:
            least |= {name: few for name, few in LEAST_OF_FUNCTIONS.items() if name not in self._options.sources}
        conditions = Conditions(
            settings,
            python=self._options.python,
            variables=answer(Device, device, "variables", self._options.index(case.device), os.environ),
            accelerator=device.accelerator,
            timeout=self._options.timeout,
            **least,
            say=self._say,
            notes=(NO_LEASE,) if self._options.lease == lease.OFF else (),
            gate=self._policy,
            memory=self._memory,
            start=self._start,
        )
        if isinstance(case, ProgramCase):  # which runs where the user would have it run
            return conditions
        options = dataclasses.replace(self._options, python=python or self._options.python)
        placed = placement.find(options, registry.execution(case).openmp)
        if placed is not None and placed.usual and device.hosted and not self._told_cores:
            self._told_cores = True
            self._say(placement.USUAL.format(ranges(placed.placement.cores or ())))
        return placement.apply(conditions, case, placed)

    def _cards(self, case: Case) -> tuple[Mapping[str, str], ...]:
        """Variables that give each process of a case a device of its own, if it has several processes."""
        execution, device = registry.execution(case), registry.devices.get(case.device)
        processes = answer(Execution, execution, "processes", case)
        if processes == 1:
            return ()
        first = self._options.index(case.device)
        try:
            return tuple(device.variables(first + number, os.environ) for number in range(processes))
        except UsageError as error:
            raise WorkerError("error", f"{processes} processes need a device each: {error}") from None
