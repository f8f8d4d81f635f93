"""A mode that is timed cold, and counts its steps. Loaded after fake.py, whose device and stack it uses."""

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Session, Workbench
from ipexperf.result import Check


class StartSession(Session):
    def __init__(self, bench: Workbench) -> None:
        self.answer = bench.model.build()
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        self.answer()

    def metrics(self) -> dict[str, float]:
        return {"build_time": 0.25, "first_inference": 0.5}

    def notes(self) -> list[str]:
        return ["it was cold"]

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        return {"accuracy": 1.0}, [Check("accuracy", True, "1", "1")]

    def proof(self) -> list[Check]:
        return [Check("dtype", True, "fp32", "fp32"), Check("cold", self.steps == 1, f"{self.steps} steps", "1")]


class Start(type(registry.modes.get("spin"))):  # type: ignore[misc] # it is known only where the fakes are loaded
    name = "start"
    cold = True

    def open(self, bench: Workbench) -> Any:
        return StartSession(bench)


registry.modes.add("start", Start())
