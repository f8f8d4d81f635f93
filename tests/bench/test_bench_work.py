"""What a step has to do and what a network takes: counted by hand here, and by the counters there."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bench_cases import SIZE, bench, network

from ipexperf.bench import registry
from ipexperf.bench.artifacts import footprint
from ipexperf.proof import work

functional = torch.nn.functional


def counted(step: Callable[[], Any]) -> int:
    with torch.no_grad():
        return work.count(step, torch.nn.Identity())["step_flops"]


def test_a_product_has_its_operations() -> None:
    """A matrix product of 2 x 3 by 3 x 4 has 48; what draws random numbers afterwards draws the same."""
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert counted(lambda: torch.rand(2, 3) @ torch.rand(3, 4)) == 48
    assert torch.equal(torch.rand(3), expected)


def test_a_convolution_has_the_operations_of_its_outputs() -> None:
    layer, images = torch.nn.Conv2d(3, 4, 3), torch.rand(2, 3, 8, 8)
    assert counted(lambda: layer(images)) == 2 * 2 * 4 * 36 * 27


def test_attention_on_a_cpu_is_that_of_any_other_device() -> None:
    """torch's own counter sees nothing of it: two products for each head, and their way back."""
    query, key = torch.rand(1, 2, 8, 16), torch.rand(1, 2, 32, 16)
    forward = counted(lambda: functional.scaled_dot_product_attention(query, key, key))
    assert forward == 2 * (2 * 2 * 8 * 32 * 16)
    query.requires_grad_()

    def both() -> None:
        functional.scaled_dot_product_attention(query, key, key).sum().backward()

    assert work.count(both, torch.nn.Identity())["step_flops"] > 2 * forward


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
