"""The last layer alone: fitted to examples, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest
from bench_cases import bench, network

from ipexperf.bench import registry
from ipexperf.bench.api import Split
from ipexperf.bench.artifacts import weights
from ipexperf.bench.evidence import accuracy
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
