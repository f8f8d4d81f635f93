"""Crops of photographs: always the same, no pixel in both parts, and of known files alone. Here they are made."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path

import pytest

from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets import photographs
from ipexperf.zoo.datasets.photographs import DEVIATION, LEAST, LEFT, MEAN, TEST, TRAIN, Photographs

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

NAMES = ("first.png", "second.jpg")
WIDTH, HEIGHT = 320, 160


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two photographs in two folders; red tells the column, and blue which one it is."""
    known = {}
    for index, name in enumerate(NAMES):
        folder = tmp_path / str(index)
        folder.mkdir()
        image = Image.new("RGB", (WIDTH, HEIGHT))
        image.putdata([(x * 255 // WIDTH, 0, 200 * index) for _ in range(HEIGHT) for x in range(WIDTH)])
        image.save(folder / name, quality=100)
        known[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    monkeypatch.setattr(photographs, "SHA256", known)
    return os.pathsep.join(str(tmp_path / str(index)) for index in range(len(NAMES)))


def test_the_class_is_the_photograph(path: str) -> None:
    """Those of all photographs take turns, so that any first part holds all classes."""
    split = Photographs().read(path, 32)
    for examples, crops in ((split.train, TRAIN), (split.test, TEST)):
        assert examples.inputs[0].shape == (crops * len(NAMES), 3, 32, 32)
        assert examples.targets[0].tolist() == [0, 1] * crops
        blue = examples.inputs[0][:, 2].mean((1, 2)) * DEVIATION[2] + MEAN[2]
        assert torch.equal(blue > 0.4, examples.targets[0] == 1)


def test_no_pixel_is_in_both_parts(path: str) -> None:
    """What is held out lies right of all that is trained on."""
    split = Photographs().read(path, LEAST)
    red = [part.inputs[0][:, 0] * DEVIATION[0] + MEAN[0] for part in (split.train, split.test)]
    assert red[0].max() < LEFT + 0.02
    assert red[1].min() > LEFT - 0.02


def test_another_file_is_refused(path: str) -> None:
    """By its name and the sum that it has."""
    changed = Path(path.split(os.pathsep)[1]) / NAMES[1]
    changed.write_bytes(changed.read_bytes() + b" ")
    with pytest.raises(WorkerError, match=r"second\.jpg is not the known one: sha256 [0-9a-f]{64}"):
        Photographs().read(path, 32)
    changed.unlink()
    with pytest.raises(WorkerError, match=r"there is no second\.jpg in "):
        Photographs().read(path, 32)


def test_the_files_are_those_that_are_read(path: str) -> None:
    """And nothing that lies beside them."""
    (Path(path.split(os.pathsep, maxsplit=1)[0]) / "another.png").write_bytes(b"")
    assert [file.name for file in Photographs().files(path)] == list(NAMES)


@pytest.mark.skipif(importlib.util.find_spec("skimage") is None, reason="needs scikit-image")
def test_the_packages_photographs_are_the_known_ones() -> None:
    """All of them, and each gives as many crops as any other."""
    found, why_not = Photographs().find(None)
    assert why_not is None
    assert found is not None
    split = Photographs().read(found, 32)
    assert split.test.targets[0].bincount().tolist() == [TEST] * len(photographs.SHA256)
