"""ResNet-18 and ResNet-50 with ten classes, as torchvision builds them."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.lazy import torchvision
from ipexperf.bench.registry import model

CLASSES = 10


@model("resnet18", size=32, batch_train=64, batch_infer=32, needs=("torch", "torchvision"))
def resnet18() -> Any:
    return torchvision.models.resnet18(num_classes=CLASSES)


# With 0.02 its activations were hundreds of times too large for one image in ten, which int8 does not survive.
# 66 steps reach 0.88 of the held-out digits, 330 reach 0.98: an answer near the border is then rare.
@model(
    "resnet50",
    size=32,
    batch_train=64,
    batch_infer=32,
    learning_rate=0.005,
    recipe_steps=330,
    needs=("torch", "torchvision"),
)
def resnet50() -> Any:
    return torchvision.models.resnet50(num_classes=CLASSES)
