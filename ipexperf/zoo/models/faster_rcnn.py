"""Faster R-CNN with a feature pyramid on ResNet-18, built of torchvision's parts, for small images and few classes."""

from __future__ import annotations

import importlib
from typing import Any

from ipexperf.bench.artifacts import weights
from ipexperf.ext import COMPILED, EXPORTED, TRAINING, Split, Workbench, model, torch, torchvision
from ipexperf.zoo.datasets import scenes

SIZE = 64
CLASSES = scenes.CLASSES + 1
"""Class 0 is background."""
MOST_BOXES = 20
"""Number of boxes per image in the output. Missing ones have the label -1."""
SIDES = ((16,), (24,), (32,), (48,))
"""Side length of the anchors of each map of the pyramid, in pixels."""
RATIOS = ((0.5, 1.0, 2.0),)
STAGES = {"layer1": ("0", 64), "layer2": ("1", 128), "layer3": ("2", 256)}
"""Stages of the trunk used by the pyramid, with the name and channels of each map."""
CHANNELS, POOLED, HIDDEN = 128, 7, 256
"""Channels of each map, size of ROIAlign's output, and width of the head."""
OPERATORS = ("torch_ipex::frozen_batch_norm", "torch_ipex::ROIAlign_forward")
"""IPEX's own operators. Importing IPEX already replaces torchvision's ROIAlign and NMS."""
FROZEN = "its norms are frozen, so it needs trained weights to start from: from a random start it did not learn"
DECIDES = "it chooses boxes in the middle of the network, where the graph breaks"


def learned_norms(bench: Workbench, split: Split, network: Any) -> None:
    """Train a copy with trainable norms, and freeze their values, like those of a pretrained trunk."""
    torch.manual_seed(weights.RECIPE["seed"])
    twin = bench.device.put(_network(torch.nn.BatchNorm2d).train())
    weights.steps(bench, split, twin)
    network.load_state_dict({name: value for name, value in twin.state_dict().items() if "num_batches" not in name})


def _for_ipex(network: Any) -> Any:
    """Replace torchvision's frozen batch norms by IPEX's, as its guide recommends. Their states have the same names.

    A frozen graph merges the two layers of the head and splits the output, which IPEX's softmax refuses.
    """
    frozen = importlib.import_module("intel_extension_for_pytorch").nn.modules.FrozenBatchNorm2d
    frozen_norm = torchvision.ops.FrozenBatchNorm2d
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if isinstance(child, frozen_norm):
                norm = frozen(len(child.weight), eps=child.eps)
                norm.load_state_dict(child.state_dict())
                setattr(parent, name, norm)
    network.roi_heads.box_predictor.register_forward_hook(lambda *call: (call[-1][0].contiguous(), call[-1][1]))
    return network


@model(
    "faster_rcnn",
    size=SIZE,
    least=SIZE,
    most=SIZE,
    batch_train=8,
    batch_infer=4,
    task="region_detection",
    data="scenes",
    optimizer="adam",
    learning_rate=1e-3,
    recipe=learned_norms,
    recipe_steps=400,
    held_out=64,
    tuned={"ipex": _for_ipex},
    operators={"ipex": OPERATORS},
    why_nots={
        TRAINING: FROZEN,
        COMPILED: f"{DECIDES} 20 times",
        EXPORTED: f"{DECIDES}: torch.export refuses it",
        "int8": "torch.fx cannot trace its lists of boxes, so there is no int8 of stock PyTorch to compare with",
    },
    needs=("torch", "torchvision"),
)
def faster_rcnn() -> Any:
    return _network(torchvision.ops.FrozenBatchNorm2d)


def _network(norm: Any) -> Any:
    nn = torch.nn
    listed = torchvision.models.detection.image_list.ImageList
    parts = _parts(norm)

    class Detector(nn.Module):  # type: ignore[misc, name-defined] # torch is imported late, and has no types here
        """The detector without torchvision's resizing: all images have one size and keep their memory layout."""

        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.rpn, self.roi_heads = parts.backbone, parts.rpn, parts.roi_heads

        def forward(self, images: Any, boxes: Any = None, labels: Any = None) -> Any:
            """Return the detections, padded to a fixed number of boxes. With targets, return the losses."""
            maps, sizes = self.backbone(images), [(SIZE, SIZE)] * len(images)
            targets = None if boxes is None else _targets(boxes, labels)
            proposed, first = self.rpn(listed(images, sizes), maps, targets)
            detections, second = self.roi_heads(maps, proposed, sizes, targets)
            if targets is not None:
                return {**first, **second}
            filled = [
                _filled(detection["boxes"], detection["scores"], detection["labels"] - 1) for detection in detections
            ]
            return tuple(torch.stack(parts) for parts in zip(*filled, strict=True))

    return Detector()


def _parts(norm: Any) -> Any:
    """Build torchvision's detector with anchors and layers for small images."""
    detection = torchvision.models.detection
    generator = detection.anchor_utils.AnchorGenerator

    class Anchors(generator):  # type: ignore[misc, valid-type] # torchvision is imported late, and has no types here
        """Anchors that stay in fp32. Torchvision's are cast to the dtype of the maps, so that traces in bf16 differ."""

        def set_cell_anchors(self, dtype: Any, device: Any) -> None:
            super().set_cell_anchors(torch.float32, device)

    trunk = torchvision.models.resnet18(norm_layer=norm)
    names, widths = {stage: name for stage, (name, _) in STAGES.items()}, [width for _, width in STAGES.values()]
    backbone = detection.backbone_utils.BackboneWithFPN(trunk, names, widths, CHANNELS)
    return detection.FasterRCNN(
        backbone,
        rpn_anchor_generator=Anchors(SIDES, RATIOS * len(SIDES)),
        rpn_batch_size_per_image=64,
        rpn_pre_nms_top_n_train=200,
        rpn_post_nms_top_n_train=100,
        rpn_post_nms_top_n_test=50,
        box_roi_pool=torchvision.ops.MultiScaleRoIAlign(
            [*names.values()], POOLED, 2, canonical_scale=32, canonical_level=3
        ),
        box_head=detection.faster_rcnn.TwoMLPHead(CHANNELS * POOLED * POOLED, HIDDEN),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(HIDDEN, CLASSES),
        box_batch_size_per_image=32,
        box_detections_per_img=MOST_BOXES,
    )


def _targets(boxes: Any, labels: Any) -> list[dict[str, Any]]:
    """Return the objects of each image in torchvision's form."""
    return [
        {"boxes": its[label >= 0], "labels": label[label >= 0] + 1} for its, label in zip(boxes, labels, strict=True)
    ]


def _filled(boxes: Any, scores: Any, labels: Any) -> tuple[Any, ...]:
    """Pad the detections of one image to a fixed number, because a trace must not contain their number."""
    pad, count = torch.nn.functional.pad, MOST_BOXES
    padded = pad(boxes, (0, 0, 0, count)), pad(scores, (0, count)), pad(labels, (0, count), value=-1)
    return tuple(part[:count] for part in padded)
