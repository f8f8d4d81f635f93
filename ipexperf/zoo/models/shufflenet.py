"""ShuffleNet v2 x1.0 with ten classes, from torchvision: little arithmetic, and much movement of channels."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import model, torchvision
from ipexperf.zoo.models import _probe

CLASSES = 10
_LAID_OUT = "torch's quantised layers return channels last, and its shuffle of 5 dimensions has no such layout"


# Its shuffle makes images contiguous, so channels last would not survive the first block.
@model(
    "shufflenet_v2_x1_0",
    version=2,
    size=32,
    normal=224,
    batch_train=64,
    batch_infer=32,
    published={"int8": 80, "fp32": 160, "bf16": 112},
    channels_last=False,
    learning_rate=0.05,
    resized=_probe.fit_anew,
    why_nots={"int8 on stock": _LAID_OUT},
    needs=("torch", "torchvision"),
)
def shufflenet_v2_x1_0() -> Any:
    return torchvision.models.shufflenet_v2_x1_0(num_classes=CLASSES)
