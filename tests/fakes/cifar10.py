"""Files in the on-disk format of CIFAR-10's python version.

Loaded with `--perf-load=tests/fakes/cifar10.py`, it makes a worker take the files in $FAKE_CIFAR10 for the real ones.
"""

import hashlib
import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"
META = "batches.meta"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def write(root: Path, batches: dict[str, tuple[Any, Sequence[int]]]) -> Path:
    """Writes each batch's pixels, uint8 and N x 3072, with its labels; the folder that was made is returned."""
    folder = root / FOLDER
    folder.mkdir()
    for number, (name, (pixels, labels)) in enumerate(batches.items(), 1):
        label = "testing batch 1 of 1" if name == TEST else f"training batch {number} of {len(TRAIN)}"
        filenames = [f"{CLASSES[label]}_s_{index:06}.png" for index, label in enumerate(labels)]
        batch = {"batch_label": label, "labels": list(labels), "data": pixels, "filenames": filenames}
        (folder / name).write_bytes(pickle.dumps(batch))
    meta = {"num_cases_per_batch": 10000, "label_names": list(CLASSES), "num_vis": 3072}
    (folder / META).write_bytes(pickle.dumps(meta))
    return folder


def published(folder: Path) -> dict[str, Any]:
    """What torchvision must hold for the published MD5 sums, to take these files for the real ones."""

    def entry(name: str) -> list[str]:
        return [name, hashlib.md5((folder / name).read_bytes()).hexdigest()]  # noqa: S324 - CIFAR-10 has no other

    return {
        "train_list": [entry(name) for name in TRAIN],
        "test_list": [entry(TEST)],
        "meta": {"filename": META, "key": "label_names", "md5": entry(META)[1]},
    }


if "FAKE_CIFAR10" in os.environ and "IPEXPERF_CONTROLLER" in os.environ:
    import torchvision

    for _name, _value in published(Path(os.environ["FAKE_CIFAR10"]) / FOLDER).items():
        setattr(torchvision.datasets.CIFAR10, _name, _value)
