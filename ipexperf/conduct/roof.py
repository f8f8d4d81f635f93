"""Measure a machine's peak rates once, and compare each case with that of its dtype: its roof."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.evidence import peaks
from ipexperf.bench.evidence.fingerprint import ISA_VARIABLES
from ipexperf.bench.machine.placement import ranges
from ipexperf.case import Case
from ipexperf.conduct import artifact_cache
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.placement import SET_BY_LAUNCHERS
from ipexperf.errors import WorkerError
from ipexperf.judge import roof
from ipexperf.result import Launch

AGAIN = "the machine's peak rates are measured again"


class Roofs:
    """The peak rates of this run's devices, each measured when the first case on it has been measured."""

    def __init__(self, cache: Path, say: Callable[[str], None]) -> None:
        self._folder = cache / "peaks"
        self._say = say
        self._known: dict[str, Mapping[str, Any] | str] = {}

    def with_shares(
        self,
        launches: Sequence[Launch],
        case: Case,
        conditions: Conditions,
        environment: Mapping[str, Any],
        *,
        measure: bool = True,
    ) -> list[Launch]:
        """Add to the launches their rates and the share of the roof that they reached.

        Without `measure`, only peak rates count that this run or an earlier one has measured.
        """
        work = roof.counted_work(tuple(launches))
        if work is None:
            return list(launches)
        peaks = self._peaks(case.device, as_one_worker(conditions), environment, measure=measure)
        devices = registry.modes.get(case.mode).processes(case) if conditions.accelerator else 1
        return [roof.with_share(x, work, peaks, case.dtype, devices) if x.outcome == "ok" else x for x in launches]

    def _peaks(
        self, device: str, conditions: Conditions, environment: Mapping[str, Any], *, measure: bool
    ) -> Mapping[str, Any] | str:
        """The peak rates under these conditions, or the reason why they are unknown."""
        name = address(device, conditions, environment)
        if name not in self._known:
            self._known[name] = self._measured(self._folder / f"{name}.json", device, conditions, measure=measure)
        return self._known[name]

    def _measured(self, path: Path, device: str, conditions: Conditions, *, measure: bool) -> Mapping[str, Any] | str:
        def make(part: Path) -> None:
            if not measure:
                raise WorkerError("error", "the budget (--perf-budget) was spent already")
            with conditions.worker() as worker:
                reply = worker.ask("peaks", device=device, settings=asdict(conditions.settings))
            part.write_text(json.dumps(reply["peaks"], indent=1, sort_keys=True) + "\n")

        try:
            artifact_cache.make_once(path, make, lambda flaw: self._say(f"{path.name} is not used, {flaw}: {AGAIN}"))
        except WorkerError as error:
            return f"measuring the machine's peak rates: {error.reason}"
        peaks: Mapping[str, Any] = json.loads(path.read_text())
        return peaks


def as_one_worker(conditions: Conditions) -> Conditions:
    """The conditions for one worker on all cores of a case's instances, whose roof holds for them as one worker."""
    plain = replace(conditions, server=None, notes=(), instances=())
    if not conditions.instances:
        return plain
    first = conditions.instances[0]
    cores = sorted(core for part in conditions.instances for core in (part.settings.placement or {})["cores"])
    placement = {**(first.settings.placement or {}), "cores": cores, "threads": len(cores)}
    affinity = {name: ranges(cores) for name in ("GOMP_CPU_AFFINITY",) if name in first.variables}
    return replace(
        plain,
        settings=replace(first.settings, placement=placement, threads=len(cores)),
        variables={**first.variables, **affinity, "OMP_NUM_THREADS": str(len(cores))},
    )


def address(device: str, conditions: Conditions, environment: Mapping[str, Any]) -> str:
    """A hash of everything that peak rates depend on. Variables that limit instructions are left out: see `free`."""
    variables = {**environment["variables"], **conditions.variables}
    document = {
        "version": peaks.VERSION,
        "device": device,
        "machine": environment["machine_key"],
        "torch": environment["software"].get("torch"),
        "threads": conditions.settings.threads,
        "placement": conditions.settings.placement,
        "variables": {
            name: value
            for name, value in variables.items()
            if SET_BY_LAUNCHERS.match(name) and name not in ISA_VARIABLES
        },
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
