"""The three networks of the face detector MTCNN, with weights of facenet-pytorch, each on crops of its size.

Each tells whether a crop contains a face, and where. The last one also locates eyes, nose and mouth.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ipexperf.ext import TRAINING, Packaged, model, torch

HEADS = ("conv4_1", "conv4_2", "dense5_1", "dense5_2", "dense6_1", "dense6_2", "dense6_3")
"""Names of the output layers in the package. The other layers precede them."""
_NO_ZERO = "torch's quantized::prelu ignores the zero point of its slopes, so the answers are noise"
_UNTRAINED = "its weights come from a package: four photographs are too few to train it"


def _renamed(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Rename the package's weights to the names of this network."""
    return {(name if name.split(".")[0] in HEADS else f"layers.{name}"): value for name, value in state_dict.items()}


def _declared(file: str, sha256: str, size: int) -> dict[str, Any]:
    """Return the declarations that the three share."""
    return {
        "size": size,
        "batch_train": 128,
        "batch_infer": 128,
        "data": "faces",
        "held_out": 128,
        "pretrained": Packaged("facenet-pytorch", f"facenet_pytorch/data/{file}", sha256, _renamed),
        "why_nots": {TRAINING: _UNTRAINED, "int8 on stock": _NO_ZERO},
        "needs": ("torch", "torchvision"),
    }


@model("mtcnn_pnet", **_declared("pnet.pt", "a2a71925e0b9996a42f63e47efc1ca19043e69558b5c523b978d611dfae49c8f", 12))
def mtcnn_pnet() -> Any:
    nn = torch.nn
    layers = {
        **_convolution(1, 3, 10, 3, nn.MaxPool2d(2, 2, ceil_mode=True)),
        **_convolution(2, 10, 16, 3),
        **_convolution(3, 16, 32, 3),
    }
    return _network(layers, {"conv4_1": nn.Conv2d(32, 2, 1), "conv4_2": nn.Conv2d(32, 4, 1)})


@model("mtcnn_rnet", **_declared("rnet.pt", "bbb937de72efc9ef83b186c49f5f558467a1d7e3453a8ece0d71a886633f6a86", 24))
def mtcnn_rnet() -> Any:
    nn = torch.nn
    layers = {
        **_convolution(1, 3, 28, 3, nn.MaxPool2d(3, 2, ceil_mode=True)),
        **_convolution(2, 28, 48, 3, nn.MaxPool2d(3, 2, ceil_mode=True)),
        **_convolution(3, 48, 64, 2),
        **_dense(4, 576, 128),
    }
    return _network(layers, {"dense5_1": nn.Linear(128, 2), "dense5_2": nn.Linear(128, 4)})


@model("mtcnn_onet", **_declared("onet.pt", "165bfbe42940416ccfb977545cf0e976d5bf321f67083ae2aaaa5c764280118d", 48))
def mtcnn_onet() -> Any:
    nn = torch.nn
    layers = {
        **_convolution(1, 3, 32, 3, nn.MaxPool2d(3, 2, ceil_mode=True)),
        **_convolution(2, 32, 64, 3, nn.MaxPool2d(3, 2, ceil_mode=True)),
        **_convolution(3, 64, 64, 3, nn.MaxPool2d(2, 2, ceil_mode=True)),
        **_convolution(4, 64, 128, 2),
        **_dense(5, 1152, 256),
    }
    heads = {"dense6_1": nn.Linear(256, 2), "dense6_2": nn.Linear(256, 4), "dense6_3": nn.Linear(256, 10)}
    return _network(layers, heads)


def _convolution(number: int, channels: int, width: int, side: int, pool: Any = None) -> dict[str, Any]:
    nn = torch.nn
    layers = {f"conv{number}": nn.Conv2d(channels, width, side), f"prelu{number}": nn.PReLU(width)}
    return layers if pool is None else {**layers, f"pool{number}": pool}


def _dense(number: int, features: int, width: int) -> dict[str, Any]:
    nn = torch.nn
    return {"rows": _rows(), f"dense{number}": nn.Linear(features, width), f"prelu{number}": nn.PReLU(width)}


def _rows() -> Any:
    """Flatten each image in the order of the trained weights."""

    class Rows(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
        def forward(self, images: Any) -> Any:
            return images.permute(0, 3, 2, 1).flatten(1)

    return Rows()


def _network(layers: dict[str, Any], heads: dict[str, Any]) -> Any:
    """Build a network whose first head classifies crops as face or not, without the package's softmax.

    In a frozen graph, IPEX's softmax refuses the output of its linear layer: "Expected contiguous tensor input!"
    """
    nn = torch.nn

    class Network(nn.Module):  # type: ignore[misc, name-defined] # torch is imported late, and has no types here
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(OrderedDict(layers))
            for name, head in heads.items():
                self.add_module(name, head)

        def forward(self, images: Any) -> Any:
            last = self.layers(images)
            return tuple(getattr(self, name)(last).flatten(1) for name in heads)

    return Network()
