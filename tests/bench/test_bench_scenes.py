"""The painted scenes: real photographs and digits, the same each time, with boxes where the signs are."""

import importlib.util
from typing import Any

import pytest

from ipexperf.bench.model import Examples, Split
from ipexperf.zoo.datasets import scenes
from ipexperf.zoo.datasets.scenes import Scenes

torch = pytest.importorskip("torch")

needs_torchvision = pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision")
SIZE = 64


@pytest.fixture(scope="module")
def split() -> Split:
    pytest.importorskip("torchvision")
    path, why_not = Scenes().find(None)
    assert path is not None, why_not
    return Scenes().read(path, SIZE)


def painter(seed: int = 0) -> Any:
    """A painter of black photographs and white digits."""
    digits = Examples((torch.ones(6, 3, 8, 8),), (torch.tensor([0, 1, 2, 3, 4, 9]),))
    return scenes._Painter([torch.full((3, 200, 150), -1.0)], digits, SIZE, seed)


def test_a_box_is_where_its_sign_is() -> None:
    """White on black: inside each box all is white, and outside of all of them black."""
    made = painter().scenes(20)
    for image, boxes, labels in zip(*made.inputs, *made.targets, strict=True):
        outside = torch.ones(SIZE, SIZE, dtype=torch.bool)
        for left, top, right, bottom in boxes[labels >= 0].int().tolist():
            assert bool((image[:, top:bottom, left:right] > 0).all())
            outside[top:bottom, left:right] = False
        assert bool((image[:, outside] < 0).all())


def test_signs_are_some_and_do_not_overlap() -> None:
    """Each scene has one or more, of known classes; what is no sign is said to be none."""
    made = painter().scenes(40)
    boxes, labels = made.targets
    counts = (labels >= 0).sum(1)
    assert set(counts.tolist()) == {1, 2, 3}
    assert int(labels.max()) < scenes.CLASSES
    areas = (boxes[..., 2:] - boxes[..., :2]).prod(2)
    assert torch.equal(areas > 0, labels >= 0)
    white = (made.inputs[0][:, 0] > 0).flatten(1).sum(1)
    assert torch.equal(white.float(), areas.sum(1))


@needs_torchvision
def test_held_out_scenes_are_others(split: Split) -> None:
    """There are as many as are said, at the model's size, and not one of them is trained on."""
    assert (len(split.train), len(split.test)) == (scenes.TRAIN, scenes.TEST)
    assert split.train.inputs[0].shape[1:] == (3, SIZE, SIZE)
    train, test = ({image.numpy().tobytes() for image in part.inputs[0]} for part in (split.train, split.test))
    assert not train & test
    assert float(split.train.inputs[0].abs().max()) <= 1 + 1e-5
