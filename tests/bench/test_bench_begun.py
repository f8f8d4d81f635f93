"""Weights for another size than they were trained at."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from bench_cases import SIZE, bench

from ipexperf.bench import registry
from ipexperf.bench.api import Split, Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.zoo.models import _probe

torch = pytest.importorskip("torch")


def network() -> Any:
    """One that takes images of any size."""
    nn = torch.nn
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(8 * 16, 10))


def case(**model: Any) -> Workbench:
    """A training case whose model is declared so."""
    made = bench(network, "train", registry.devices.get("cpu"))
    return dataclasses.replace(made, model=dataclasses.replace(made.model, trained=True, **model))


def test_weights_for_another_size_are_trained_at_the_models_own(tmp_path: Path) -> None:
    """Then they are fitted to the size of the case; at its own size there is nothing to fit."""
    seen: list[tuple[str, int, int]] = []

    def told(name: str) -> Any:
        def do(made: Workbench, split: Split, built: Any) -> None:
            seen.append((name, made.case.size, split.train.inputs[0].shape[-1]))
            _probe.fit_anew(made, split, built)

        return do

    plain = case(recipe=told("recipe"), resized=told("resized"))
    weights.train(plain, str(tmp_path / "small.pt"))
    assert seen == [("recipe", SIZE, SIZE)]
    weights.train(plain.at(2 * SIZE), str(tmp_path / "large.pt"))
    assert seen[1:] == [("recipe", SIZE, SIZE), ("resized", 2 * SIZE, 2 * SIZE)]


def test_each_size_has_weights_of_its_own() -> None:
    path, _ = registry.datasets.get("digits").find(None)
    addresses = [weights.address(registry.models.get("resnet18"), "digits", str(path), size) for size in (32, 224)]
    assert len(set(addresses)) == len(addresses)
