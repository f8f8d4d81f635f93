"""Measure a machine's peak rates once, and compare each case with that of its dtype: its roof."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.case import NetworkCase
from ipexperf.conduct import artifact_cache
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.placement import SET_BY_LAUNCHERS
from ipexperf.errors import WorkerError
from ipexperf.proof import peaks
from ipexperf.result import THROUGHPUT, Launch

AGAIN = "the machine's peak rates are measured again"


class Roofs:
    """The peak rates of this run's devices, each measured when the first case on it has been measured."""

    def __init__(self, cache: Path, say: Callable[[str], None]) -> None:
        self._folder = cache / "peaks"
        self._say = say
        self._known: dict[str, Mapping[str, float]] = {}

    def with_shares(
        self, launches: Sequence[Launch], case: NetworkCase, conditions: Conditions, environment: Mapping[str, Any]
    ) -> list[Launch]:
        """Add to the launches their operations per second, and the share of the roof that these are."""
        work = counted_work(launches)
        if work is None:
            return list(launches)
        name = address(case.device, conditions, environment)
        if name not in self._known:
            self._known[name] = self._peaks(self._folder / f"{name}.json", case.device, conditions)
        peak = self._known[name].get(case.dtype)
        devices = registry.modes.get(case.mode).processes(case) if conditions.accelerator else 1
        roof = None if peak is None else peak * devices
        return [with_share(launch, work, roof) if launch.outcome == "ok" else launch for launch in launches]

    def _peaks(self, path: Path, device: str, conditions: Conditions) -> Mapping[str, float]:
        """The kept peak rates, or those that are measured now: none if that fails, which it says."""

        def make(part: Path) -> None:
            self._say(f"measuring the peak rates of {device}")
            # Several instances have the roof of one worker on all their cores.
            with replace(conditions, server=None).worker() as worker:
                reply = worker.ask("peaks", device=device, settings=asdict(conditions.settings))
            part.write_text(json.dumps(reply["peaks"], indent=1, sort_keys=True) + "\n")

        try:
            artifact_cache.make_once(path, make, lambda flaw: self._say(f"{path.name} is not used, {flaw}: {AGAIN}"))
        except WorkerError as error:
            self._say(f"there is no roof: measuring the peak rates of {device}: {error.reason}")
            return {}
        rates: Mapping[str, float] = json.loads(path.read_text())
        return rates


def with_share(launch: Launch, work: Mapping[str, Any], roof: float | None) -> Launch:
    """Add to a launch its operations per second and their share of the roof, if there is one."""
    rate = work["step_flops"] * launch.metrics[THROUGHPUT] / work["items"]
    share = {} if roof is None else {"of_roof": rate / roof}
    return replace(launch, metrics={**launch.metrics, "flop_rate": rate, **share})


def counted_work(launches: Sequence[Launch]) -> Mapping[str, Any] | None:
    """The work of an item, counted in the untouched network by any of a case's launches. None if none counted it."""
    counts = (launch.fingerprint.get("beside", {}).get("work") for launch in launches if launch.fingerprint)
    return next((count for count in counts if count and count["step_flops"]), None)


def address(device: str, conditions: Conditions, environment: Mapping[str, Any]) -> str:
    """A hash of everything that peak rates depend on."""
    variables = {**environment["variables"], **conditions.variables}
    document = {
        "version": peaks.VERSION,
        "device": device,
        "machine": environment["machine_key"],
        "torch": environment["software"].get("torch"),
        "threads": conditions.settings.threads,
        "placement": conditions.settings.placement,
        "variables": {name: value for name, value in variables.items() if SET_BY_LAUNCHERS.match(name)},
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
