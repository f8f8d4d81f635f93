"""A network that is as slow as the installed package `slowdown` says. `--model=benchmarks/live_network.py:network`."""

import time
from typing import Any


def network() -> Any:
    """A ResNet-18 that keeps a core busy for a share of each forward's own time."""
    import slowdown
    import torch
    from torchvision.models import resnet18

    class Slowed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = resnet18(num_classes=10)

        def forward(self, images: Any) -> Any:
            begin = time.perf_counter()
            output = self.inner(images)
            until = begin + (time.perf_counter() - begin) * (1 + slowdown.SHARE)
            while time.perf_counter() < until:
                pass
            return output

    return Slowed()
