"""ResNet-18 and ResNet-50 with ten classes, as torchvision builds them."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.lazy import torchvision
from ipexperf.bench.models import _probe
from ipexperf.bench.registry import model

CLASSES = 10
NORMAL = 224
"""The size of ImageNet, at which the vendor publishes speeds."""
PUBLISHED = {"int8": 80, "fp32": 160, "bf16": 112}
"""The vendor's batches of throughput."""


@model(
    "resnet18",
    size=32,
    normal=NORMAL,
    batch_train=64,
    batch_infer=32,
    resized=_probe.fit_anew,
    needs=("torch", "torchvision"),
)
def resnet18() -> Any:
    return torchvision.models.resnet18(num_classes=CLASSES)


# With 0.02 its activations were hundreds of times too large for one image in ten, which int8 does not survive.
# 66 steps reach 0.88 of the held-out digits, 330 reach 0.98: an answer near the border is then rare.
@model(
    "resnet50",
    size=32,
    normal=NORMAL,
    batch_train=64,
    batch_infer=32,
    published=PUBLISHED,
    learning_rate=0.005,
    recipe_steps=330,
    resized=_probe.fit_anew,
    needs=("torch", "torchvision"),
)
def resnet50() -> Any:
    return torchvision.models.resnet50(num_classes=CLASSES)
