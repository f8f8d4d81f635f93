"""The last layer alone: fitted to examples, and nothing else is touched. And weights for another size."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from bench_cases import SIZE, bench, network

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.model import Split
from ipexperf.proof import accuracy
from ipexperf.zoo.models import _probe

torch = pytest.importorskip("torch")

HEAD = ("4.weight", "4.bias")


@pytest.fixture
def made() -> tuple[Any, Split, Any]:
    torch.manual_seed(0)
    case = bench(network, "train", registry.devices.get("cpu"))
    return case, weights.read(case), network()


def score(case: Any, split: Split, fitted: Any) -> float:
    outputs = accuracy.predict(lambda inputs: fitted.eval()(*inputs), split.test.inputs, 64)
    return float(case.task.score(outputs, split.test.targets))


def test_a_fitted_layer_knows_the_digits(made: tuple[Any, Split, Any]) -> None:
    """On top of a convolution that nobody trained; every other weight stays as it was."""
    case, split, fitted = made
    before = {name: value.clone() for name, value in fitted.state_dict().items()}
    assert score(case, split, fitted) < 0.3
    _probe.fit(case, split, fitted)
    assert score(case, split, fitted) > 0.8
    changed = {name for name, value in fitted.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == set(HEAD)


def test_batch_norm_takes_the_statistics_of_the_examples(made: tuple[Any, Split, Any]) -> None:
    """Of those that it is fitted to, each as much as any other, and it goes on as before."""
    case, split, fitted = made
    _probe.fit_anew(case, split, fitted)
    with torch.no_grad():
        seen = fitted[0](split.train.inputs[0][: _probe.EXAMPLES])
    assert torch.allclose(fitted[1].running_mean, seen.mean((0, 2, 3)), atol=1e-5)
    assert fitted[1].momentum == 0.1
    assert score(case, split, fitted) > 0.8


def of_any_size() -> Any:
    """One that takes images of any size."""
    nn = torch.nn
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(8 * 16, 10))


def test_weights_for_another_size_are_trained_at_the_models_own(tmp_path: Path) -> None:
    """Then they are fitted to the size of the case; at its own size there is nothing to fit."""
    seen: list[tuple[str, int, int]] = []

    def told(name: str) -> Any:
        def do(made: Workbench, split: Split, built: Any) -> None:
            seen.append((name, made.case.size, split.train.inputs[0].shape[-1]))
            _probe.fit_anew(made, split, built)

        return do

    plain = bench(of_any_size, "train", registry.devices.get("cpu"))
    declared = {"trained": True, "recipe": told("recipe"), "resized": told("resized")}
    plain = dataclasses.replace(plain, model=dataclasses.replace(plain.model, **declared))
    weights.train(plain, str(tmp_path / "small.pt"))
    assert seen == [("recipe", SIZE, SIZE)]
    weights.train(plain.at(2 * SIZE), str(tmp_path / "large.pt"))
    assert seen[1:] == [("recipe", SIZE, SIZE), ("resized", 2 * SIZE, 2 * SIZE)]
