"""Networks of ten classes from torchvision: ResNets, ResNeXt-101 32x16d, VGG-11, ShuffleNet v2 and MobileNet v2."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import TRAINING, model, torchvision
from ipexperf.zoo.models import _probe

CLASSES = 10
SHARED: dict[str, Any] = {"size": 32, "normal": 224, "needs": ("torch", "torchvision")}
"""Sizes and packages that all of them share. 224 is the size of ImageNet, used in the vendor's published figures."""
PUBLISHED = {"int8": 80, "fp32": 160, "bf16": 112}
"""Batches of the vendor's throughput figures."""
_LAID_OUT = "torch's quantised layers return channels last, and its shuffle of 5 dimensions has no such layout"


@model("resnet18", batch_train=64, batch_infer=32, resized=_probe.fit_anew, **SHARED)
def resnet18() -> Any:
    return torchvision.models.resnet18(num_classes=CLASSES)


# With a rate of 0.02 its activations were hundreds of times too large for one image in ten, which breaks int8.
# 66 steps reach 0.88 of the held-out digits, 330 reach 0.98, so that few answers are near a decision boundary.
@model(
    "resnet50",
    batch_train=64,
    batch_infer=32,
    published=PUBLISHED,
    learning_rate=0.005,
    recipe_steps=330,
    resized=_probe.fit_anew,
    **SHARED,
)
def resnet50() -> Any:
    return torchvision.models.resnet50(num_classes=CLASSES)


# torchvision has no constructor for it. 100 steps of 32 with a falling rate reach 0.95 of the held-out digits in three
# minutes on two cores with AVX-512. Its blocks start at zero: otherwise its loss jumps (0.6, 7.6), and its activations
# get so large that int8 changes one answer in five.
@model(
    "resnext101_32x16d",
    batch_train=32,
    batch_infer=8,
    published=PUBLISHED,
    learning_rate=0.005,
    recipe_steps=100,
    settles=40,
    resized=_probe.fit_anew,
    held_out=64,
    why_nots={TRAINING: "a launch takes minutes, and none has been measured yet"},
    **SHARED,
)
def resnext101_32x16d() -> Any:
    resnet = torchvision.models.resnet
    blocks = [3, 4, 23, 3]
    return resnet.ResNet(resnet.Bottleneck, blocks, CLASSES, zero_init_residual=True, groups=32, width_per_group=16)


# No batch norm, and most weights in linear layers. Images smaller than 32 x 32 vanish after five poolings.
@model(
    "vgg11",
    least=32,
    batch_train=32,
    batch_infer=32,
    published=PUBLISHED,
    optimizer="adam",
    learning_rate=3e-4,
    # After 40 steps a quarter of the held-out digits were correct, after 120 nine of ten.
    recipe_steps=120,
    train_steps=120,
    resized=_probe.fit,
    **SHARED,
)
def vgg11() -> Any:
    return torchvision.models.vgg11(num_classes=CLASSES)


# Little arithmetic, and much movement of channels. Its shuffle makes images contiguous, so channels last would not
# survive the first block.
@model(
    "shufflenet_v2_x1_0",
    version=2,
    batch_train=64,
    batch_infer=32,
    published=PUBLISHED,
    channels_last=False,
    learning_rate=0.05,
    resized=_probe.fit_anew,
    why_nots={"int8 on stock": _LAID_OUT},
    **SHARED,
)
def shufflenet_v2_x1_0() -> Any:
    return torchvision.models.shufflenet_v2_x1_0(num_classes=CLASSES)


@model(
    "mobilenet_v2",
    version=2,
    batch_train=64,
    batch_infer=32,
    published={"fp32": 160},
    learning_rate=0.05,
    # 66 steps reach 0.87 of the held-out digits.
    recipe_steps=200,
    resized=_probe.fit_anew,
    **SHARED,
)
def mobilenet_v2() -> Any:
    return torchvision.models.mobilenet_v2(num_classes=CLASSES, dropout=0.0)
