"""CIFAR-10 as it lies on disk becomes the tensors that it holds, or is refused. Its files are made here."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ipexperf.zoo.datasets.cifar10 import DEVIATION, FILES, FOLDER, MEAN, Cifar10

Batches = dict[str, tuple[Any, list[int]]]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torchvision"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]

ROWS = 7


@pytest.fixture
def batches() -> Batches:
    """Pixels and labels of each file: no two rows are alike, and every class occurs."""
    import cifar10
    import numpy as np

    random = np.random.default_rng(0)
    contents = {}
    for index, name in enumerate((*cifar10.TRAIN, cifar10.TEST)):
        labels = [(index * ROWS + row) % 10 for row in range(ROWS)]
        contents[name] = (random.integers(0, 256, (ROWS, 3072), dtype=np.uint8), labels)
    return contents


@pytest.fixture
def folder(batches: Batches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with such files, which torchvision takes for the published ones."""
    import cifar10
    import torchvision

    for name, value in cifar10.published(cifar10.write(tmp_path, batches)).items():
        monkeypatch.setattr(torchvision.datasets.CIFAR10, name, value)
    return tmp_path / FOLDER


def expected(pixels: Any) -> Any:
    """Channel by channel, row by row: a byte over 255, less the channel's mean, over its deviation."""
    import numpy as np

    planes = pixels.reshape(-1, 3, 32, 32).astype(np.float64) / 255
    return (planes - np.reshape(MEAN, (3, 1, 1))) / np.reshape(DEVIATION, (3, 1, 1))


def test_every_pixel_and_label_is_read(batches: Batches, folder: Path) -> None:
    """The five batches are the training images in their order, the test batch is held out, and no pixel is lost."""
    import cifar10
    import numpy as np
    import torch

    split = Cifar10().read(str(folder), 32)
    train = np.concatenate([batches[name][0] for name in cifar10.TRAIN])
    test, test_labels = batches[cifar10.TEST]
    assert {split.train.inputs[0].dtype, split.test.inputs[0].dtype} == {torch.float32}
    assert split.train.inputs[0].is_contiguous()
    np.testing.assert_allclose(split.train.inputs[0].numpy(), expected(train), rtol=0, atol=2e-6)
    np.testing.assert_allclose(split.test.inputs[0].numpy(), expected(test), rtol=0, atol=2e-6)
    assert split.train.targets[0].tolist() == [label for name in cifar10.TRAIN for label in batches[name][1]]
    assert split.test.targets[0].tolist() == test_labels
    assert {split.train.targets[0].dtype, split.test.targets[0].dtype} == {torch.int64}


def test_another_size_is_scaled_to(batches: Batches, folder: Path) -> None:
    """At half the size each pixel is the mean of the four that it covers, and labels stay."""
    import cifar10
    import numpy as np

    split = Cifar10().read(str(folder), 16)
    pixels, labels = batches[cifar10.TEST]
    quarters = expected(pixels).reshape(ROWS, 3, 16, 2, 16, 2).mean(axis=(3, 5))
    np.testing.assert_allclose(split.test.inputs[0].numpy(), quarters, rtol=0, atol=2e-6)
    assert split.test.targets[0].tolist() == labels


def test_cifar10_is_found_in_its_folder_only(tmp_path: Path) -> None:
    """It needs a folder with all files of its on-disk format; exactly one of path and reason is told."""
    dataset, folder = Cifar10(), tmp_path / FOLDER
    again = "unpack cifar-10-python.tar.gz there"
    assert dataset.find(None) == (None, "CIFAR-10 needs its folder: --perf-data=FOLDER")
    assert dataset.find(str(tmp_path / "no")) == (None, f"--perf-data={tmp_path / 'no'}: there is no such folder")
    assert dataset.find(str(tmp_path)) == (None, f"--perf-data={tmp_path} holds no {FOLDER}: {again}")
    folder.mkdir()
    for name in FILES:
        (folder / name).touch()
    assert dataset.find(str(tmp_path)) == (str(folder), None)
    (folder / "data_batch_4").unlink()
    assert dataset.find(str(tmp_path)) == (None, f"--perf-data={folder} lacks data_batch_4: {again} again")
