"""CIFAR-10 as it lies on disk becomes the tensors that it holds, or is refused. Its files are made here."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets.cifar10 import DEVIATION, FOLDER, MEAN, Cifar10
from ipexperf.zoo.datasets.cifar10 import FILES as FILE_NAMES

if TYPE_CHECKING:
    from types import ModuleType

    Batches = dict[str, tuple[Any, list[int]]]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torchvision"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]

ROWS = 7
FILES = Path(__file__).parents[1] / "fakes" / "cifar10.py"


@pytest.fixture(scope="module")
def files() -> ModuleType:
    """The maker of the files."""
    spec = importlib.util.spec_from_file_location("fake_cifar10", FILES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def batches(files: ModuleType) -> Batches:
    """Pixels and labels of each file: no two rows are alike, and every class occurs."""
    import numpy as np

    random = np.random.default_rng(0)
    found = {}
    for index, name in enumerate((*files.TRAIN, files.TEST)):
        labels = [(index * ROWS + row) % 10 for row in range(ROWS)]
        found[name] = (random.integers(0, 256, (ROWS, 3072), dtype=np.uint8), labels)
    return found


@pytest.fixture
def root(files: ModuleType, batches: Batches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with such files, which torchvision takes for the published ones."""
    import torchvision

    for name, value in files.published(files.write(tmp_path, batches)).items():
        monkeypatch.setattr(torchvision.datasets.CIFAR10, name, value)
    return tmp_path


def expected(pixels: Any) -> Any:
    """Channel by channel, row by row: a byte over 255, less the channel's mean, over its deviation."""
    import numpy as np

    planes = pixels.reshape(-1, 3, 32, 32).astype(np.float64) / 255
    return (planes - np.reshape(MEAN, (3, 1, 1))) / np.reshape(DEVIATION, (3, 1, 1))


def test_every_pixel_and_label_is_read(files: ModuleType, batches: Batches, root: Path) -> None:
    """The five batches are the training images in their order, the test batch is held out, and no pixel is lost."""
    import numpy as np
    import torch

    split = Cifar10().read(str(root), 32)
    train = np.concatenate([batches[name][0] for name in files.TRAIN])
    test, test_labels = batches[files.TEST]
    assert split.train.inputs[0].shape == (5 * ROWS, 3, 32, 32)
    assert split.test.inputs[0].shape == (ROWS, 3, 32, 32)
    assert {split.train.inputs[0].dtype, split.test.inputs[0].dtype} == {torch.float32}
    assert split.train.inputs[0].is_contiguous()
    np.testing.assert_allclose(split.train.inputs[0].numpy(), expected(train), rtol=0, atol=2e-6)
    np.testing.assert_allclose(split.test.inputs[0].numpy(), expected(test), rtol=0, atol=2e-6)
    assert split.train.targets[0].tolist() == [label for name in files.TRAIN for label in batches[name][1]]
    assert split.test.targets[0].tolist() == test_labels
    assert {split.train.targets[0].dtype, split.test.targets[0].dtype} == {torch.int64}


def test_another_size_is_scaled_to(files: ModuleType, batches: Batches, root: Path) -> None:
    """At half the size each pixel is the mean of the four that it covers, and labels stay."""
    import numpy as np

    split = Cifar10().read(str(root), 16)
    pixels, labels = batches[files.TEST]
    quarters = expected(pixels).reshape(ROWS, 3, 16, 2, 16, 2).mean(axis=(3, 5))
    np.testing.assert_allclose(split.test.inputs[0].numpy(), quarters, rtol=0, atol=2e-6)
    assert split.test.targets[0].tolist() == labels


def test_cifar10_is_found_in_its_folder_only(tmp_path: Path) -> None:
    """CIFAR-10 needs a folder, and its on-disk format in it; exactly one of path and reason is told."""
    dataset = Cifar10()
    assert dataset.find(None) == (None, "CIFAR-10 needs its folder: --perf-data=FOLDER")
    path, why_not = dataset.find(str(tmp_path))
    assert path is None
    assert f"--perf-data={tmp_path} holds no cifar-10-batches-py" in str(why_not)
    (tmp_path / "cifar-10-python.tar.gz").touch()
    assert str(dataset.find(str(tmp_path))[1]).endswith("on-disk format: unpack cifar-10-python.tar.gz there first")
    complete(tmp_path)
    assert dataset.find(str(tmp_path)) == (str(tmp_path), None)
    path, why_not = dataset.find(str(tmp_path / FOLDER))
    assert path is None
    assert str(why_not).endswith(f"give the folder that holds {FOLDER}, not the latter itself")
    assert dataset.find(str(tmp_path / "no")) == (None, f"--perf-data={tmp_path / 'no'}: there is no such folder")


def complete(root: Path) -> Path:
    """A folder of which the names alone are right."""
    (root / FOLDER).mkdir(parents=True)
    for name in FILE_NAMES:
        (root / FOLDER / name).touch()
    return root


def test_half_a_download_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """The files that are not there are named."""
    folder = complete(tmp_path) / FOLDER
    (folder / "data_batch_4").unlink()
    (folder / "test_batch").unlink()
    told = f"--perf-data={folder} lacks data_batch_4, test_batch: unpack cifar-10-python.tar.gz there again"
    assert Cifar10().find(str(tmp_path)) == (None, told)


def test_what_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file without the right to read it, and a folder that nobody may look into, are one sentence each."""
    complete(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "data_batch_2")
    told = f"--perf-data={tmp_path / FOLDER}: data_batch_2 may not be read"
    assert Cifar10().find(str(tmp_path)) == (None, told)

    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    told = f"--perf-data={tmp_path} cannot be read: permission denied"
    assert Cifar10().find(str(tmp_path)) == (None, told)


@pytest.mark.parametrize(("name", "damage"), [("data_batch_3", "changed"), ("batches.meta", "missing")])
def test_a_damaged_file_is_named(root: Path, name: str, damage: str) -> None:
    """One file that is not there, or in which a byte differs, is one sentence with the folder and the file."""
    path = root / "cifar-10-batches-py" / name
    if damage == "missing":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[-10] ^= 1
        path.write_bytes(data)
    with pytest.raises(WorkerError) as error:
        Cifar10().read(str(root), 32)
    told = f"{path.parent} is not CIFAR-10 as published: {name} missing or damaged"
    assert str(error.value) == f"{told}; unpack cifar-10-python.tar.gz there again"
    assert error.value.outcome == "error"
    assert error.value.__suppress_context__


def test_files_that_are_not_the_published_ones_are_refused(files: ModuleType, batches: Batches, tmp_path: Path) -> None:
    """Files of the right names and format, and with other contents than the published ones, are all named."""
    files.write(tmp_path, batches)
    with pytest.raises(WorkerError) as error:
        Cifar10().read(str(tmp_path), 32)
    assert f": {', '.join((*files.TRAIN, files.TEST, files.META))} missing or damaged; " in str(error.value)
