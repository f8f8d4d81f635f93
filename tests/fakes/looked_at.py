"""A mode that says what ran: the file that FAKE_RAN names, and with FAKE_WORK what a step has to do.

Loaded after fake.py, whose device and stack it uses.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.api import Captured, Look, Session, Workbench
from ipexperf.bench.device import Device
from ipexperf.result import Check


class LookedAtSession(Session):
    def __init__(self, bench: Workbench) -> None:
        self.answer = bench.model.build()

    def step(self) -> None:
        self.answer()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        return {"accuracy": 1.0}, [Check("accuracy", True, "1", "1")]

    def proof(self) -> list[Check]:
        return [Check("dtype", True, "fp32", "fp32")]

    def looks(self, device: Device) -> Mapping[str, Look]:
        return {"graph": self.look}

    def look(self) -> Mapping[str, Captured]:
        path = Path(os.environ["FAKE_RAN"])
        found = json.loads(path.read_text())
        if found.pop("random", 0):
            path.write_text(json.dumps({"random": 1, "aten::relu": found.get("aten::relu", 0) + 1}))
        counted = {"work": json.loads(os.environ["FAKE_WORK"])} if "FAKE_WORK" in os.environ else {}
        return {"graph": Captured([{"node": name, "calls": calls} for name, calls in found.items()], beside=counted)}


class LookedAt(type(registry.modes.get("spin"))):  # type: ignore[misc] # it is known only where the fakes are loaded
    name = "looked_at"

    def open(self, bench: Workbench) -> Session:
        return LookedAtSession(bench)


registry.modes.add("looked_at", LookedAt())
