"""Roads: images become tiles with their masks, and the overlap is what is asked for."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.model import Examples, Split
from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets import roads
from ipexperf.zoo.tasks.segmentation import overlap

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

TASK = registry.tasks.get("segmentation")


def mask(*pixels: int) -> Any:
    return torch.tensor(pixels, dtype=torch.bool)


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        (mask(1, 0, 1, 0), mask(1, 1, 0, 0), 1 / 3),
        (mask(0, 0, 1, 1), mask(1, 1, 0, 0), 0.0),
        (mask(0, 0, 0, 0), mask(0, 0, 0, 0), 1.0),
    ],
)
def test_overlap_is_intersection_over_union(answer: Any, truth: Any, expected: float) -> None:
    """Missed pixels and wrong ones both lower it; nothing found where there is nothing is right."""
    assert overlap(answer, truth) == pytest.approx(expected)


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


SIDE = 8


def write(folder: Path, count: int) -> Path:
    """Images of 3 x 2 tiles whose red tells the tile, and where the left half of every second one is road."""
    folder.mkdir(exist_ok=True)
    tile = torch.arange(3)[:, None] * 2 + torch.arange(2)
    red = tile.repeat_interleave(SIDE, 0).repeat_interleave(SIDE, 1).byte() * 40
    road = (red // 40 % 2 == 1) & (torch.arange(2 * SIDE) % SIDE < SIDE // 2)
    for number in range(count):
        image = torch.stack((red, torch.full_like(red, number), torch.zeros_like(red)), 2)
        for name, mode, pixels in (("sat.png", "RGB", image), ("mask.png", "L", road.byte() * 255)):
            data = pixels.contiguous().numpy().tobytes()
            Image.frombytes(mode, (2 * SIDE, 3 * SIDE), data).save(folder / f"{number}_{name}")
    return folder


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three images."""
    monkeypatch.setattr(roads, "REAL_GROUND", SIDE)
    return write(tmp_path / roads.FOLDER, 3)


def test_images_are_cut_into_tiles_with_their_masks(small: Path) -> None:
    """Six of each image, none of an image that is held out among those to train on."""
    split = roads.RoadImages().read(str(small), SIDE)
    assert (len(split.train), len(split.test)) == (12, 6)
    for part, numbers in ((split.train, {0, 2}), (split.test, {1})):
        colours = ((part.inputs[0] + 1) * 127.5).round().long()
        assert set(colours[:, 1].flatten().tolist()) == numbers
        for tile, (colour, mask_of_tile) in enumerate(zip(colours, part.targets[0], strict=True)):
            assert set(colour[0].flatten().tolist()) == {tile % 6 * 40}
            assert mask_of_tile[0].mean(0).tolist() == ([1.0] * 4 + [0.0] * 4 if tile % 2 else [0.0] * 8)


def test_a_smaller_tile_shows_as_much(small: Path) -> None:
    """Each pixel is the mean of those it stands for, and road where half of them are."""
    split = roads.RoadImages().read(str(small), SIDE // 4)
    assert len(split.test) == 6
    assert split.test.targets[0][1, 0].tolist() == [[1.0, 0.0]] * 2


def test_images_that_do_not_fit_are_refused(small: Path) -> None:
    """Smaller than a tile, or than their mask."""
    with pytest.raises(WorkerError, match="24 x 16 and its mask 24 x 16: expected equal sizes of 17 x 17 or more"):
        roads.RoadImages().read(str(small), 17)
    Image.new("L", (SIDE, SIDE)).save(small / "2_mask.png")
    with pytest.raises(WorkerError, match=r"2_sat\.png is 24 x 16 and its mask 8 x 8"):
        roads.RoadImages().read(str(small), SIDE)


def test_images_are_found_in_their_folder_only(tmp_path: Path) -> None:
    """At least two, each with its mask; exactly one of path and reason is told, and weights are known by them alone."""
    data, folder = roads.RoadImages(), write(tmp_path / roads.FOLDER, 1)
    assert data.find(None) == (None, "a set of road images needs its folder: --perf-data=FOLDER")
    assert data.find(str(tmp_path)) == (None, f"{folder} holds 1 images NAME_sat.*, and at least 2 are needed")
    write(folder, 2)
    assert data.find(str(tmp_path)) == (str(folder), None)
    (folder / "readme.txt").touch()
    assert [file.name for file in data.files(str(folder))] == ["0_sat.png", "0_mask.png", "1_sat.png", "1_mask.png"]
    (folder / "1_mask.png").unlink()
    assert data.find(str(tmp_path)) == (None, f"{folder} lacks 1_mask.png")


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision")
def test_the_network_answers_for_every_pixel() -> None:
    """One number a pixel at any size that can be halved five times; each stage of the encoder has its part in it."""
    torch.manual_seed(0)
    network = registry.models.get("unet_resnet34").build().eval()
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert network(images).shape == (1, 1, 64, 64)
    network(images).sum().backward()
    assert all(value.grad is not None and bool(value.grad.any()) for value in network.parameters())
