"""U-Net with torchvision's ResNet-34 as its encoder, as it won a road competition (albu, 2018)."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import model, torch, torchvision

WIDTHS = (64, 64, 128, 256, 512)
"""Channels of the encoder's stages. Each halves height and width."""
LAST = 32
"""Channels at full image size, where the encoder has no stage."""


def unet_resnet34() -> Any:
    nn = torch.nn

    class Unet(nn.Module):  # type: ignore[misc, name-defined] # torch is imported late, and has no types here
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList(_encoder())
            widths = (*WIDTHS[-2::-1], LAST)
            beside = (*WIDTHS[-2::-1], 0)
            below = (WIDTHS[-1], *widths)
            inputs = map(sum, zip(below, beside, strict=False))
            self.up = nn.ModuleList(map(_twice, inputs, widths))
            self.road = nn.Conv2d(LAST, 1, 1)

        def forward(self, images: Any) -> Any:
            """Return a number for each pixel: above 0 means road."""
            stages = [images]
            for stage in self.down:
                stages.append(stage(stages[-1]))
            features = stages.pop()
            for layers, beside in zip(self.up, [*stages[:0:-1], None], strict=True):
                features = nn.functional.interpolate(features, scale_factor=2, mode="nearest")
                features = layers(features if beside is None else torch.cat((features, beside), 1))
            return self.road(features)

    return Unet()


def _encoder() -> list[Any]:
    """Return the five stages of a ResNet-34. That of the published winner was pretrained; this one is not."""
    resnet = torchvision.models.resnet34()
    first = torch.nn.Sequential(resnet.conv1, resnet.bn1, resnet.relu)
    return [first, torch.nn.Sequential(resnet.maxpool, resnet.layer1), resnet.layer2, resnet.layer3, resnet.layer4]


def _twice(inputs: int, width: int) -> Any:
    """Two convolutions, each with normalisation."""
    nn = torch.nn
    layers: list[Any] = []
    for channels in (inputs, width):
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def _declare(name: str, **sizes: int) -> None:
    """Declare the network with a size."""
    model(
        name,
        version=2,
        settles=120,
        task="segmentation",
        data="roads",
        optimizer="adam",
        learning_rate=1e-3,
        needs=("torch", "torchvision"),
        **sizes,
    )(unet_resnet34)


_declare("unet_resnet34", size=128, batch_train=4, batch_infer=4, recipe_steps=240, train_steps=240)
# The winner's size of crops, for machines with many cores.
_declare("unet_resnet34_512", size=512, batch_train=4, batch_infer=2, recipe_steps=240, train_steps=240)
