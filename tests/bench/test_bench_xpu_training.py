"""A training that stays on the CPU under the label of the card: how LPRNet came to look slow on an Arc."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from bench_cases import bench, named

from ipexperf.bench import registry
from ipexperf.bench.api import Settings, Workbench
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.zoo.datasets import plates

pytest.importorskip("torch")
pytest.importorskip("PIL")


class Asked(Xpu):
    """Puts things where a training script is told to, which parses its option as that of the story did."""

    def __init__(self, said: str) -> None:
        super().__init__()
        options = argparse.ArgumentParser()
        # Of a text, bool says whether it is empty: `no` means yes, and a variable that the shell has not means no.
        options.add_argument("--xpu", type=bool)
        self.wanted = options.parse_args(["--xpu", said]).xpu

    def put(self, value: Any) -> Any:
        return super().put(value) if self.wanted else value


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
@pytest.mark.parametrize(
    ("said", "missed"), [("no", set()), ("", {"device", "input", "arithmetic"})], ids=["no", "empty"]
)
def test_a_training_that_stays_on_the_cpu_is_caught(said: str, missed: set[str], tmp_path: Path) -> None:
    """It trains as well as any other: only where it did so is not what its label says, and three checks see that."""
    device = Asked(said)
    device.telemetry = Telemetry(tmp_path, lambda _: None)
    device.start(Settings())
    session = registry.modes.get("train").open(training(device))
    session.sample(device.synchronise, 2, 1)
    checks = [*session.proof(), *device.proof(session.step, 1)]
    assert {check.name for check in checks if not check.ok} == missed
    assert named(checks, "steps").ok
    assert named(checks, "weights_move").ok
    where = "cpu" if missed else "xpu"
    assert where in named(checks, "arithmetic").found
    assert f" on {where}" in named(checks, "input").found
