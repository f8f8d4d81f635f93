"""Measures cases: weights first where they are needed, then launches, with one more try for a contended one."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from filelock import FileLock

from ipexperf.bench import environment as surroundings
from ipexperf.bench import registry, weights
from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import launch
from ipexperf.conduct.launch import Conditions
from ipexperf.errors import WorkerError
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement

RETRIES = 1


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Conductor:
    """Holds what is the same for all cases of a run."""

    def __init__(self, options: Options, launches: int, folder: Path, say: Callable[[str], None]) -> None:
        self._options = options
        self._launches = launches
        self._cache = options.cache or folder / ".ipexperf"
        self._say = say
        self._source = surroundings.source(folder)
        self._deadline = time.monotonic() + options.budget if options.budget else None

    def _conditions(self, case: Case) -> Conditions:
        data = str(self._options.data) if self._options.data else None
        found, _ = registry.datasets.get(case.data).find(data)
        settings = Settings(
            load=tuple(str(Path(item).resolve()) if item.endswith(".py") else item for item in self._options.load),
            threads=self._options.threads,
            data_folder=data,
            data_file=found,
        )
        return Conditions(
            settings,
            python=self._options.python,
            timeout=self._options.timeout,
            samples=self._options.samples,
            seconds=self._options.seconds,
            say=self._say,
        )

    def ready(self, case: Case) -> Conditions:
        """The conditions of a case, with trained weights where it infers: made once, kept by content."""
        conditions = self._conditions(case)
        model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
        if mode.trains or not model.trained:
            return conditions
        path = self._cache / "weights" / weights.address(model, case.data, conditions.settings.data_file or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.exists():
                teacher = dataclasses.replace(case, mode="train", stack="stock", dtype="fp32")
                part = path.with_suffix(f".{os.getpid()}.part")
                try:
                    with conditions.worker() as worker:
                        request = {"case": teacher.to_json(), "settings": asdict(conditions.settings)}
                        worker.ask("weights", path=str(part), timeout=6 * conditions.timeout, **request)
                    part.replace(path)
                finally:
                    part.unlink(missing_ok=True)
        return dataclasses.replace(conditions, settings=dataclasses.replace(conditions.settings, weights=str(path)))

    def measure(self, case: Case) -> Measurement:
        """All launches of a case. The first that fails is the last: its outcome is the case's."""
        started = now()
        launches: list[Launch] = []
        found: dict[str, Any] = {}
        try:
            conditions = self.ready(case)
        except WorkerError as error:
            launches.append(Launch(0, error.outcome, f"training weights: {error.reason}", log=error.log))  # type: ignore[arg-type]
            return self._measurement(case, launches, found, started)
        for index in range(self._launches):
            if self._deadline and time.monotonic() > self._deadline:
                if not launches:
                    launches.append(Launch(0, "interrupted", "the budget (--perf-budget) was spent before it began"))
                break
            self._say(f"{case.id}: launch {index + 1} of {self._launches}")
            done, environment = self._launch(case, index, conditions)
            found = found or environment
            launches.append(done)
            if done.outcome != "ok":
                break
        return self._measurement(case, launches, found, started)

    def _launch(self, case: Case, index: int, conditions: Conditions) -> tuple[Launch, dict[str, Any]]:
        """A contended launch is measured again; if it stays so, it says why its case is invalid."""
        for attempt in range(RETRIES + 1):
            done, environment = launch.run(case, index, conditions)
            if not done.contended or attempt == RETRIES:
                break
            self._say(f"{case.id}: launch {index + 1} again, {done.contended}")
        return done, environment

    def _measurement(self, case: Case, launches: list[Launch], found: dict[str, Any], started: str) -> Measurement:
        if not found:
            machine = {**surroundings.hardware(), "accelerator": None, "threads": None}
            found = {
                "machine_key": surroundings.machine_key(machine),
                "hardware": machine,
                "software": {"torch": None, "ipex": None},
                "variables": {},
            }
        return Measurement(case, tuple(launches), {**found, "git": self._source}, started, now())
