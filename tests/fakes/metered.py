"""A model whose steps use as many joules as FAKE_JOULES says, and a counter of them. Loaded after fake.py.

A file that FAKE_JOULES_FILE names says it instead while it is there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.ext import EnergyCounter, EnergyPart

COUNT = [10**9]
"""The microjoules so far."""


def joules() -> float:
    path = Path(os.environ.get("FAKE_JOULES_FILE", "none"))
    return float(path.read_text() if path.is_file() else os.environ["FAKE_JOULES"])


@registry.model("metered", size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)
def metered() -> Any:
    spin = registry.models.get("tiny").build()

    def step() -> int:
        COUNT[0] += round(joules() * 1e6)
        return int(spin())

    return step


def counter() -> EnergyCounter:
    return EnergyCounter(
        "the fake device", float(os.environ.get("FAKE_UPDATE", "1e-5")), [EnergyPart(lambda: COUNT[0])]
    )


if "FAKE_JOULES" in os.environ:
    registry.devices.get("fake").energy_counter = counter  # type: ignore[method-assign] # a device with a counter
