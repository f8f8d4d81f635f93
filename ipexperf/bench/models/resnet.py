"""ResNet-18, ResNet-50 and ResNeXt-101 32x16d with ten classes, out of torchvision's building blocks."""

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


# torchvision has no constructor of it. 100 steps of 32 that settle reach 0.95 of the held-out digits, in three minutes
# on two cores with AVX-512. Its blocks begin as nothing: else its loss leaps (0.6, 7.6), and its activations become so
# large that int8 answers one image in five in another way.
@model(
    "resnext101_32x16d",
    size=32,
    normal=NORMAL,
    batch_train=32,
    batch_infer=8,
    published=PUBLISHED,
    learning_rate=0.005,
    recipe_steps=100,
    settles=40,
    resized=_probe.fit_anew,
    held_out=64,
    why_nots=dict.fromkeys(("train", "train_ddp"), "a launch of it takes minutes, and none was ever measured"),
    needs=("torch", "torchvision"),
)
def resnext101_32x16d() -> Any:
    resnet = torchvision.models.resnet
    blocks = [3, 4, 23, 3]
    return resnet.ResNet(resnet.Bottleneck, blocks, CLASSES, zero_init_residual=True, groups=32, width_per_group=16)
