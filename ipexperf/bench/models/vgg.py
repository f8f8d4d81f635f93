"""VGG-11 with ten classes, as torchvision builds it: without batch norm, and most of its weights in linear layers."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.lazy import torchvision
from ipexperf.bench.models import _probe
from ipexperf.bench.registry import model

CLASSES = 10


# Smaller images than 32 x 32 are gone after five poolings.
@model(
    "vgg11",
    size=32,
    normal=224,
    least=32,
    batch_train=32,
    batch_infer=32,
    published={"int8": 80, "fp32": 160, "bf16": 112},
    optimizer="adam",
    learning_rate=3e-4,
    # After 40 steps it was right on a quarter of the held-out digits, after 120 on nine of ten.
    recipe_steps=120,
    train_steps=120,
    resized=_probe.fit,
    needs=("torch", "torchvision"),
)
def vgg11() -> Any:
    return torchvision.models.vgg11(num_classes=CLASSES)
