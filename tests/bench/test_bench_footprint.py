"""What a network takes: numbers that can be worked out by hand for a small one."""

from __future__ import annotations

from typing import Any

import pytest
from bench_cases import SIZE, bench, network

from ipexperf.bench import registry
from ipexperf.bench.artifacts import footprint

torch = pytest.importorskip("torch")

FLOAT = 4
CONVOLUTION = 2 * 36 * 4 * 27
LINEAR = 2 * 4 * 36 * 10
INPUT = 3 * SIZE * SIZE * FLOAT
PASSED_ON = 4 * 36 * FLOAT


def look(build: Any = network, mode: str = "infer") -> footprint.Footprint:
    return footprint.measure(bench(build, mode, registry.devices.get("cpu")))


def test_parameters_arithmetic_weights_and_what_passes_are_counted() -> None:
    """A convolution of 3 x 3, a batch norm and a linear layer, of one example."""
    found = look()
    assert found.parameters == (4 * 27 + 4) + 2 * 4 + (144 * 10 + 10)
    assert found.flops == CONVOLUTION + LINEAR
    # Weights are counted with the statistics of the batch norm, and its count of batches, which has eight bytes.
    assert found.weights == found.parameters * FLOAT + 2 * 4 * FLOAT + 8
    # The layer with most in and out is the convolution.
    assert found.passing == INPUT + PASSED_ON


def test_training_keeps_the_inputs_of_its_layers() -> None:
    """The image, and at least what comes out of the convolution and of the ReLU; never the weights."""
    kept = look(mode="train").kept
    assert kept >= INPUT + 2 * PASSED_ON
    assert kept < INPUT + 6 * PASSED_ON
    assert look().kept == 0


def test_examples_that_share_their_memory_count_once() -> None:
    """The digits are grey: three channels lie in one place."""
    assert look().examples == 1797 * (SIZE * SIZE * FLOAT + 8)
