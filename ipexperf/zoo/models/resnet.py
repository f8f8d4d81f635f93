"""ResNet-18, ResNet-50 and ResNeXt-101 32x16d with ten classes, built of torchvision's blocks."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import TRAINING, model, torchvision
from ipexperf.zoo.models import _probe

CLASSES = 10
NORMAL = 224
"""Image size of ImageNet, used in the vendor's published figures."""
PUBLISHED = {"int8": 80, "fp32": 160, "bf16": 112}
"""Batches of the vendor's throughput figures."""


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


# With a rate of 0.02 its activations were hundreds of times too large for one image in ten, which breaks int8.
# 66 steps reach 0.88 of the held-out digits, 330 reach 0.98, so that few answers are near a decision boundary.
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


# torchvision has no constructor for it. 100 steps of 32 with a falling rate reach 0.95 of the held-out digits in three
# minutes on two cores with AVX-512. Its blocks start at zero: otherwise its loss jumps (0.6, 7.6), and its activations
# get so large that int8 changes one answer in five.
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
    why_nots={TRAINING: "a launch takes minutes, and none has been measured yet"},
    needs=("torch", "torchvision"),
)
def resnext101_32x16d() -> Any:
    resnet = torchvision.models.resnet
    blocks = [3, 4, 23, 3]
    return resnet.ResNet(resnet.Bottleneck, blocks, CLASSES, zero_init_residual=True, groups=32, width_per_group=16)
