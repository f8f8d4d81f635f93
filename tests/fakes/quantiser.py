"""A worker that quantises small networks and runs what it quantised, for the tests of int8."""

import dataclasses
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.conduct.worker import Worker

NETWORKS = Path(__file__).parent / "int8.py"
PATIENCE = 300
"""Workers that import torch and IPEX may have to share their cores with other tests."""


class Quantiser:
    """A worker process of one stack, which trains small networks, quantises them, and runs what was quantised."""

    def __init__(self, worker: Worker, folder: Path, stack: str) -> None:
        self.worker, self.folder, self.stack = worker, folder, stack
        self.weights: dict[str, Path] = {}
        data, _ = registry.datasets.get("digits").find(None)
        self.settings = Settings(load=(str(NETWORKS),), data_file=data, threads=1)

    def case(self, model: str, mode: str, **knobs: str) -> NetworkCase:
        return NetworkCase(model, "cpu", "int8", mode, self.stack, 16, 8, data="digits", knobs=tuple(knobs.items()))

    def settings_of(self, case: NetworkCase) -> Settings:
        """The settings of a case, with weights that are trained when they are first asked for."""
        if case.model not in self.weights:
            path = self.weights[case.model] = self.folder / f"{case.model}.pt"
            teacher = dataclasses.replace(case, mode="train", dtype="fp32", knobs=())
            self.worker.ask("weights", path=str(path), case=teacher.to_json(), settings=asdict(self.settings))
        made = str(self.folder / f"{case.id}.pt")
        return dataclasses.replace(self.settings, weights=str(self.weights[case.model]), artifact=made)

    def make(self, case: NetworkCase, stack: str | None = None) -> Path:
        """Quantises, with another stack where one is named, and tells where."""
        settings = self.settings_of(case)
        maker = dataclasses.replace(case, stack=stack or case.stack).to_json()
        self.worker.ask("quantise", path=settings.artifact, case=maker, settings=asdict(settings))
        return Path(str(settings.artifact))

    def run(self, case: NetworkCase, stack: str | None = None) -> dict[str, dict[str, Any]]:
        """The checks of the case that loads what was made, proof and accuracy, by name."""
        runner = dataclasses.replace(case, stack=stack or case.stack).to_json()
        self.worker.prepare(runner, asdict(self.settings_of(case)))
        proven, accurate = self.worker.ask("proof"), self.worker.ask("accuracy")
        self.notes = accurate["notes"]
        return {check["name"]: check for check in (*proven["checks"], *accurate["checks"])}


def failed(checks: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, check in checks.items() if not check["ok"]}
