"""Weights that go on from those of a package, and weights for another size than they were trained at."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest
from bench_cases import SIZE, bench

from ipexperf.bench import registry
from ipexperf.bench.api import Packaged, Split, Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.errors import WorkerError
from ipexperf.zoo.models import _probe

torch = pytest.importorskip("torch")


def network() -> Any:
    """One that takes images of any size."""
    nn = torch.nn
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(8 * 16, 10))


def case(path: Path | None = None, **model: Any) -> Workbench:
    """A training case whose model is declared so, with a file of weights as the conductor would give it."""
    made = bench(network, "train", registry.devices.get("cpu"))
    settings = dataclasses.replace(made.settings, weights=str(path) if path else None)
    return dataclasses.replace(made, model=dataclasses.replace(made.model, trained=True, **model), settings=settings)


@pytest.fixture
def published(tmp_path: Path) -> tuple[Path, Packaged]:
    """A network that somebody else trained, in a file."""
    torch.manual_seed(7)
    path = tmp_path / "published.pt"
    torch.save(network().state_dict(), path)
    return path, Packaged("somebody", path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def test_a_recipe_goes_on_from_the_weights_of_a_package(published: tuple[Path, Packaged], tmp_path: Path) -> None:
    """All layers but the last are still the package's; the launches then load what came out, not the package."""
    path, packaged = published
    made = tmp_path / "made.pt"
    weights.train(case(path, pretrained=packaged, recipe=_probe.fit), str(made))
    kept = torch.load(path, weights_only=True)
    found = weights.network(case(made, pretrained=packaged, recipe=_probe.fit)).state_dict()
    assert {name for name in found if not torch.equal(found[name], kept[name])} == {"5.weight", "5.bias"}


def test_without_a_recipe_the_weights_are_the_packages(published: tuple[Path, Packaged]) -> None:
    path, packaged = published
    kept, found = torch.load(path, weights_only=True), weights.network(case(path, pretrained=packaged)).state_dict()
    assert all(torch.equal(found[name], kept[name]) for name in kept)


def test_another_file_than_the_known_one_is_refused(published: tuple[Path, Packaged], tmp_path: Path) -> None:
    """Whether it is to be run or to be gone on from."""
    path, packaged = published
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(WorkerError, match=r"is not the known published\.pt of somebody"):
        weights.network(case(path, pretrained=packaged))
    with pytest.raises(WorkerError, match=r"is not the known published\.pt of somebody"):
        weights.train(case(path, pretrained=packaged, recipe=_probe.fit), str(tmp_path / "made.pt"))


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
    """And so have those that go on from other weights."""
    path, _ = registry.datasets.get("digits").find(None)
    model = registry.models.get("resnet18")
    begun = dataclasses.replace(model, pretrained=Packaged("somebody", "file", "sum"))
    addresses = [weights.address(x, "digits", str(path), size) for x in (model, begun) for size in (32, 224)]
    assert len(set(addresses)) == len(addresses)
