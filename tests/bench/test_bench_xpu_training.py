"""A training that stays on the CPU under the label of the card: how LPRNet came to look slow on an Arc."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from bench_cases import bench, failed, named

from ipexperf.bench import registry
from ipexperf.bench.api import Settings, Workbench
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.zoo.datasets import plates

pytest.importorskip("torch")
pytest.importorskip("PIL")


class OnTheHost(Xpu):
    """Leaves everything where it is, as the script of the story did: a `bool` of its empty option was False."""

    def put(self, value: Any) -> Any:
        return value


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few plates are enough."""
    for name, value in (("TRAIN", 16), ("TEST", 8), ("PART", 8)):
        monkeypatch.setattr(plates, name, value)


def training(device: Xpu) -> Workbench:
    """LPRNet on plates, four at a time."""
    model = registry.models.get("lprnet")
    made = bench(model.build, "train", device, channels_last="off")
    case = dataclasses.replace(made.case, model="lprnet", batch=4, size=model.size, data="plates")
    task, plates = registry.tasks.get(model.task), registry.datasets.get("plates")
    return dataclasses.replace(made, case=case, model=model, dataset=plates, task=task)


@pytest.mark.usefixtures("card", "few")
def test_a_training_that_stays_on_the_cpu_is_caught(tmp_path: Path) -> None:
    """It trains as well as any other: only where it did so is not what its label says, and three checks see that."""
    device = OnTheHost()
    device.telemetry = Telemetry(tmp_path, lambda _: None)
    device.start(Settings())
    session = registry.modes.get("train").open(training(device))
    session.sample(device.synchronise, 2, 1)
    checks = [*session.proof(), *device.proof(session.step, 1)]
    assert failed(checks) == {"device", "input", "arithmetic"}
    assert named(checks, "steps").ok
    assert named(checks, "weights_move").ok
    assert "cpu" in named(checks, "arithmetic").found
    assert " on cpu" in named(checks, "input").found
