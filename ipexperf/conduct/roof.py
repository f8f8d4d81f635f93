"""Measure a machine's ceilings (peak compute and bandwidth) once, and compare each case with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.evidence import ceilings
from ipexperf.bench.evidence.fingerprint import ISA_VARIABLES
from ipexperf.bench.machine.placement import ranges
from ipexperf.case import Case
from ipexperf.conduct import artifact_cache
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.placement import SET_BY_LAUNCHERS
from ipexperf.errors import WorkerError
from ipexperf.judge import roof
from ipexperf.result import Launch

AGAIN = "the machine's ceilings are measured again"


class Roofs:
    """The ceilings of this run's devices, each measured when the first case on it has been measured."""

    def __init__(self, cache: Path, say: Callable[[str], None]) -> None:
        self._folder = cache / "ceilings"
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
        """Add to the launches their rates and the share of the ceilings that they reached.

        Without `measure`, only ceilings count that this run or an earlier one has measured.
        """
        work = roof.counted_work(tuple(launches))
        if work is None:
            return list(launches)
        limits = self._ceilings(case.device, as_one_worker(conditions), environment, measure=measure)
        devices = registry.modes.get(case.mode).processes(case) if conditions.accelerator else 1
        return [_with_share(x, work, case.dtype, limits, devices) if x.outcome == "ok" else x for x in launches]

    def _ceilings(
        self, device: str, conditions: Conditions, environment: Mapping[str, Any], *, measure: bool
    ) -> Mapping[str, Any] | str:
        """The ceilings under these conditions, or the reason why they are unknown."""
        name = address(device, conditions, environment)
        if name not in self._known:
            self._known[name] = self._measured(self._folder / f"{name}.json", device, conditions, measure=measure)
        return self._known[name]

    def _measured(self, path: Path, device: str, conditions: Conditions, *, measure: bool) -> Mapping[str, Any] | str:
        def make(part: Path) -> None:
            if not measure:
                raise WorkerError("error", "the budget (--perf-budget) was spent already")
            with conditions.worker() as worker:
                reply = worker.ask("ceilings", device=device, settings=asdict(conditions.settings))
            part.write_text(json.dumps(reply["ceilings"], indent=1, sort_keys=True) + "\n")

        try:
            artifact_cache.make_once(path, make, lambda flaw: self._say(f"{path.name} is not used, {flaw}: {AGAIN}"))
        except WorkerError as error:
            return f"measuring the machine's ceilings: {error.reason}"
        limits: Mapping[str, Any] = json.loads(path.read_text())
        return limits


def _with_share(
    launch: Launch, work: Mapping[str, Any], dtype: str, limits: Mapping[str, Any] | str, devices: int
) -> Launch:
    rated = roof.with_rates(launch, work, dtype)
    if isinstance(limits, str):
        return roof.with_note(rated, f"has no roof: {limits}")
    return roof.with_share(rated, limits, dtype, devices)


def as_one_worker(conditions: Conditions) -> Conditions:
    """The conditions for one worker on all cores of a case's instances, whose ceilings hold for them as_one_worker."""
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
    """A hash of everything that ceilings depend on. Variables that limit instructions are left out: see `free`."""
    variables = {**environment["variables"], **conditions.variables}
    document = {
        "version": ceilings.VERSION,
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
