"""SSD on ResNet-34 as in MLPerf, for small images and few classes."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import model, torch, torchvision
from ipexperf.zoo.datasets import scenes
from ipexperf.zoo.tasks import detection

CHANNELS = (256, 512, 256)
"""Channels of the feature maps: the trunk's, then those of smaller maps."""
CLASSES = scenes.CLASSES + 1
"""Class 0 is background."""


# 150 steps reach 0.57 on the held-out scenes, 240 reach 0.75 and 480 reach 0.90, so that few boxes are near a decision
# boundary. Small images and batches keep a step on two cores below a second.
@model(
    "ssd_resnet34",
    version=2,
    size=detection.SIZE,
    batch_train=4,
    batch_infer=8,
    task="detection",
    data="scenes",
    optimizer="adam",
    learning_rate=1e-3,
    recipe_steps=480,
    train_steps=150,
    held_out=64,
    answers=("places", "classes"),
    needs=("torch", "torchvision"),
)
def ssd_resnet34() -> Any:
    nn = torch.nn

    class Ssd(nn.Module):  # type: ignore[misc, name-defined] # torch is imported late, and has no types here
        def __init__(self) -> None:
            super().__init__()
            self.trunk = _trunk()
            self.further = nn.ModuleList([_narrower(256, 256, 512), _narrower(512, 128, 256)])
            pairs = list(zip(CHANNELS, detection.COUNTS, strict=True))
            self.places = nn.ModuleList([nn.Conv2d(width, count * 4, 3, padding=1) for width, count in pairs])
            self.classes = nn.ModuleList([nn.Conv2d(width, count * CLASSES, 3, padding=1) for width, count in pairs])

        def forward(self, images: Any) -> tuple[Any, Any]:
            maps = [self.trunk(images)]
            for narrower in self.further:
                maps.append(narrower(maps[-1]))
            places = [_rows(head(value), 4) for head, value in zip(self.places, maps, strict=True)]
            classes = [_rows(head(value), CLASSES) for head, value in zip(self.classes, maps, strict=True)]
            return torch.cat(places, 1), torch.cat(classes, 1)

    return Ssd()


def _trunk() -> Any:
    """Return ResNet-34 up to its third stage, without downsampling in that stage."""
    resnet = torchvision.models.resnet34()
    first = resnet.layer3[0]
    first.conv1.stride = first.downsample[0].stride = (1, 1)
    parts = (resnet.conv1, resnet.bn1, resnet.relu, resnet.maxpool, resnet.layer1, resnet.layer2, resnet.layer3)
    return torch.nn.Sequential(*parts)


def _narrower(channels: int, between: int, width: int) -> Any:
    """Return layers that halve the size of a map."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(channels, between, 1, bias=False),
        nn.BatchNorm2d(between),
        nn.ReLU(inplace=True),
        nn.Conv2d(between, width, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
    )


def _rows(value: Any, width: int) -> Any:
    """Reshape to a row for each box at each point of a map."""
    return value.permute(0, 2, 3, 1).flatten(1).unflatten(1, (-1, width))
