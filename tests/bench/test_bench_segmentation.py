"""Roads: tiles that keep what is held out apart, their masks, and the overlap that is asked for."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Examples, Split
from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets import roads
from ipexperf.zoo.tasks.segmentation import overlap

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

TASK = registry.tasks.get("segmentation")


def mask(*pixels: int) -> Any:
    return torch.tensor(pixels, dtype=torch.bool)


@pytest.mark.parametrize(
    ("found", "truth", "expected"),
    [
        (mask(1, 0, 1, 0), mask(1, 1, 0, 0), 1 / 3),
        (mask(0, 0, 1, 1), mask(1, 1, 0, 0), 0.0),
        (mask(0, 0, 0, 0), mask(0, 0, 0, 0), 1.0),
    ],
)
def test_overlap_is_intersection_over_union(found: Any, truth: Any, expected: float) -> None:
    """Missed pixels and wrong ones both lower it; nothing found where there is nothing is right."""
    assert overlap(found, truth) == pytest.approx(expected)


def example(*pixels: float) -> Any:
    return torch.tensor(pixels, dtype=torch.float32).view(1, 1, 2, 2)


def test_the_score_is_of_all_pixels_together() -> None:
    """A tile without road has no say of its own: two of three pixels of road are found in all."""
    truth = torch.cat((example(1, 1, 1, 0), example(0, 0, 0, 0)))
    answers = torch.cat((example(3, 2, -1, -1), example(-1, -1, -1, -1)))
    assert TASK.score((answers,), (truth,)) == pytest.approx(2 / 3)
    assert TASK.score((-answers,), (truth,)) < 0.2


def test_one_answer_for_every_pixel_is_worth_the_share_of_the_road() -> None:
    """All road is better than none, as long as there is a road."""
    split = [Examples((example(0, 0, 0, 0),), (truth,)) for truth in (example(1, 1, 1, 1), example(1, 0, 0, 0))]
    assert TASK.trivial(Split(*split)) == 0.25
    assert TASK.trivial(Split(split[0], Examples((example(0, 0, 0, 0),), (example(0, 0, 0, 0),)))) == 1.0


def test_the_loss_falls_with_every_pixel_that_is_found() -> None:
    """Near 0 for the truth, and the dice is in it: all pixels off the road is worse than the few that it is."""
    truth = example(1, 0, 0, 0)
    right, none, wrong = (
        float(TASK.loss((20 * example(*answer),), (truth,)))
        for answer in ((1, -1, -1, -1), (-1, -1, -1, -1), (-1, 1, 1, 1))
    )
    assert right < 1e-3
    assert right < none < wrong
    assert none > 20 / 4, "cross entropy of the one pixel that was missed"
    assert none - 20 / 4 == pytest.approx(0.5, abs=1e-3), "dice: (0 + 1) / (0 + 1 + 1)"


SIDE, TRAINED = 20, 12


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image of 20 x 20 whose pixels are all different; road is where the number can be divided by 7."""
    numbers = torch.arange(SIDE * SIDE, dtype=torch.int16)
    road = (numbers % 7 == 0).byte().mul(255)
    sums = {}
    for name, mode, pixels in ((roads.IMAGE, "I;16", numbers), (roads.MASK, "L", road)):
        Image.frombytes(mode, (SIDE, SIDE), pixels.numpy().tobytes()).save(tmp_path / name)
        sums[name] = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    changed = {"TRAINED": TRAINED, "MEAN": 0.0, "DEVIATION": 1.0, "SHA256": sums, "GROUND": 1}
    for name, value in changed.items():
        monkeypatch.setattr(roads, name, value)
    return tmp_path / roads.IMAGE


@pytest.mark.parametrize(("size", "train", "test"), [(4, 3 * 5, 2 * 5), (8, 2 * 3, 1 * 2), (5, 3 * 4, 1 * 4)])
def test_tiles_cover_what_is_trained_on_and_never_touch_what_is_held_out(
    small: Path, size: int, train: int, test: int
) -> None:
    """Every pixel of the left part is trained on and none of the right one; held out is no pixel twice."""
    split = roads.Roads().read(str(small), size)
    assert split.train.inputs[0].shape == (8 * train, 3, size, size)
    assert split.test.inputs[0].shape == (test, 3, size, size)
    left, right = (part.inputs[0][:, 0].flatten().long().tolist() for part in (split.train, split.test))
    assert set(left) == {number for number in range(SIDE * SIDE) if number % SIDE < TRAINED}
    assert all(number % SIDE >= TRAINED for number in right)
    assert len(set(right)) == len(right)


def test_a_tile_and_its_mask_are_turned_together(small: Path) -> None:
    """Whichever way a tile lies, its road is where its pixels say."""
    split = roads.Roads().read(str(small), 4)
    for part in (split.train, split.test):
        (images,), (masks,) = part.inputs, part.targets
        assert torch.equal(masks, (images[:, :1] % 7 == 0).float())
        assert torch.equal(images[:, 0], images[:, 2])
    ways = {split.train.inputs[0][15 * way, 0].numpy().tobytes() for way in range(8)}
    assert len(ways) == 8


def test_a_small_tile_shows_as_much_ground_as_a_larger_one(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At half its size each pixel is the mean of four, and is road where two of them are."""
    whole = roads.Roads().read(str(small), 4).test
    monkeypatch.setattr(roads, "GROUND", 4)
    half = roads.Roads().read(str(small), 2).test
    pooled = [torch.nn.functional.avg_pool2d(value, 2) for value in whole.tensors]
    assert torch.equal(half.inputs[0], pooled[0])
    assert torch.equal(half.targets[0], (pooled[1] >= 0.5).float())
    assert half.targets[0].any()


def test_what_does_not_fit_is_refused(small: Path) -> None:
    """Tiles that are larger than the ground, and an image or mask that differs by one byte."""
    with pytest.raises(WorkerError, match="tiles of 9 x 9 are larger than 20 x 8"):
        roads.Roads().read(str(small), 9)
    for name in (roads.MASK, roads.IMAGE):
        path = small.with_name(name)
        path.write_bytes(path.read_bytes() + b" ")
        with pytest.raises(WorkerError, match=f"{name} is not the known one: sha256"):
            roads.Roads().read(str(small), 4)


def test_roads_are_found_in_their_package_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a file of it missing there is one sentence; the package is not imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "solaris" / "data"
    folder.mkdir(parents=True)
    (tmp_path / "solaris" / "__init__.py").write_text("raise RuntimeError('nobody imports this')")
    importlib.invalidate_caches()
    (folder / roads.IMAGE).touch()
    assert roads.Roads().find(None) == (None, f"solaris has no data/{roads.MASK} in {folder.parent}")
    (folder / roads.MASK).touch()
    assert roads.Roads().find(None) == (str(folder / roads.IMAGE), None)


@pytest.mark.skipif(roads.Roads().find(None)[0] is None, reason=str(roads.Roads().find(None)[1]))
def test_the_real_roads_are_three_pixels_of_a_hundred() -> None:
    """The package's own files at a quarter of their size: 192 tiles to train on, 10 held out, road in both."""
    path, _ = roads.Roads().find(None)
    split = roads.Roads().read(str(path), 64)
    assert (len(split.train), len(split.test)) == (8 * 4 * 6, 2 * 5)
    assert 0.01 < TASK.trivial(split) < 0.1
    assert 0.02 < float(split.train.targets[0].mean()) < 0.07


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision")
@pytest.mark.parametrize("name", ["unet_resnet34", "unet_resnet34_512"])
def test_the_network_answers_for_every_pixel(name: str) -> None:
    """One number a pixel at any size that can be halved five times; each stage of the encoder has its part in it."""
    torch.manual_seed(0)
    network = registry.models.get(name).build().eval()
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert network(images).shape == (1, 1, 64, 64)
    network(images).sum().backward()
    assert all(value.grad is not None and bool(value.grad.any()) for value in network.parameters())
