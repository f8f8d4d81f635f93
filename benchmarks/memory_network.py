"""A network that holds some MiB more than it needs. `HELD_MIB=4 ... --model=benchmarks/memory_network.py:network`."""

from __future__ import annotations

import os
from typing import Any


def network() -> Any:
    """A ResNet-18 with a buffer that nothing reads."""
    import torch
    from torchvision.models import resnet18

    class Larger(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = resnet18(num_classes=10)
            self.register_buffer("held", torch.ones(int(float(os.environ.get("HELD_MIB", "0")) * 2**18)))

        def forward(self, images: Any) -> Any:
            return self.inner(images)

    return Larger()
