"""A frozen graph's weights are looked at, and the numbers beside them are not taken for weights."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.bench.evidence import proof

torch = pytest.importorskip("torch")
CHANNELS = 4


def frozen() -> tuple[Any, Any]:
    """A convolution whose channels are then shuffled, as ShuffleNet does it: halves of a size are computed."""

    class Shuffled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, CHANNELS, 3)

        def forward(self, images: Any) -> Any:
            found = self.convolution(images)
            count, channels, height, width = found.size()
            turned = found.view(count, 2, channels // 2, height, width).transpose(1, 2).contiguous()
            return turned.view(count, channels, height, width)

    images = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        return torch.jit.freeze(torch.jit.trace(Shuffled().eval(), images)), images


def test_a_network_that_computes_with_its_sizes_is_placed() -> None:
    """Weight and bias are its constants; the twos by which sizes are divided lie nowhere."""
    network, images = frozen()
    with torch.no_grad():
        found = proof.placed(network, [images], network(images), "cpu")
    assert found.ok
    assert all(isinstance(value, torch.Tensor) for _, value in proof._constants(network))
    assert {CHANNELS} <= {value.shape[0] for _, value in proof._constants(network) if value.dim()}


def test_a_weight_that_lies_elsewhere_is_still_seen() -> None:
    """The same graph is not on a card that it was never put on."""
    network, images = frozen()
    with torch.no_grad():
        found = proof.placed(network, [images], network(images), "xpu")
    assert not found.ok
    assert "constants on cpu" in found.found
