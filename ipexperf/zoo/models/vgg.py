"""VGG-11 with ten classes, from torchvision: no batch norm, and most weights in linear layers."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import model, torchvision
from ipexperf.zoo.models import _probe

CLASSES = 10


# Images smaller than 32 x 32 vanish after five poolings.
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
    # After 40 steps a quarter of the held-out digits were correct, after 120 nine of ten.
    recipe_steps=120,
    train_steps=120,
    resized=_probe.fit,
    needs=("torch", "torchvision"),
)
def vgg11() -> Any:
    return torchvision.models.vgg11(num_classes=CLASSES)
