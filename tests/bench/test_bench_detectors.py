"""The network of one stage answers what its task reads. Needs torch and torchvision; the weights are random."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import tensors

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from ipexperf.zoo.models import ssd
from ipexperf.zoo.tasks import _anchors, detection

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torchvision"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]

BOXES = torch.tensor([[[5.0, 5, 25, 25], [32, 32, 60, 54]], [[3, 32, 23, 60], [0, 0, 0, 0]]])
LABELS = torch.tensor([[0, 1], [1, -1]])
"""Three things in two scenes."""


def test_one_stage_answers_for_each_known_box() -> None:
    """Offsets and scores, a row for each: the maps are as large as the task believes."""
    task: Any = registry.tasks.get("detection")
    outputs = tensors(ssd.ssd_resnet34()(torch.rand(2, 3, detection.SIZE, detection.SIZE)))
    known = len(_anchors.anchors(detection.SIZE))
    assert [tuple(value.shape) for value in outputs] == [(2, known, 4), (2, known, ssd.CLASSES)]
    assert float(task.loss(outputs, (BOXES, LABELS)).detach()) > 0
    assert len(task.detections(tuple(value.detach().double() for value in outputs))) == 2


def test_the_rows_of_a_map_stand_in_the_order_of_the_known_boxes() -> None:
    """Row by row, point by point, and at each point one box after the other."""
    value = torch.arange(2 * 3 * 3).reshape(3, 3, 2).permute(2, 0, 1)[None]
    assert ssd._rows(value, 1).flatten().tolist() == list(range(18))
