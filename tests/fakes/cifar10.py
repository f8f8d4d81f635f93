"""Files in the on-disk format of CIFAR-10's python version: pickled as Python 2 and its numpy did.

Loaded with `--perf-load=tests/fakes/cifar10.py`, it makes a worker take the files in $FAKE_CIFAR10 for the real ones.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"
META = "batches.meta"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class _Python2(pickle._Pickler):
    """Writes texts and bytes as Python 2 wrote its `str`. The pickler in C cannot be told how."""

    def _save_string(self, value: str | bytes) -> None:
        data = value.encode("latin1") if isinstance(value, str) else value
        short = len(data) < 256
        self.write((b"U" + bytes([len(data)]) if short else b"T" + struct.pack("<i", len(data))) + data)  # type: ignore[attr-defined]
        self.memoize(value)  # type: ignore[attr-defined]

    dispatch = {**pickle._Pickler.dispatch, str: _save_string, bytes: _save_string}  # noqa: RUF012


def _dump(path: Path, document: dict[str, Any]) -> None:
    written = io.BytesIO()
    _Python2(written, protocol=2).dump(document)
    # numpy's module had another name when the files were made.
    path.write_bytes(written.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"))


def write(root: Path, batches: dict[str, tuple[Any, Sequence[int]]]) -> Path:
    """Writes each batch's pixels, uint8 and N x 3072, with its labels; the folder that was made is returned."""
    folder = root / FOLDER
    folder.mkdir()
    for number, (name, (pixels, labels)) in enumerate(batches.items(), 1):
        label = "testing batch 1 of 1" if name == TEST else f"training batch {number} of {len(TRAIN)}"
        filenames = [f"{CLASSES[label]}_s_{index:06}.png" for index, label in enumerate(labels)]
        _dump(folder / name, {"batch_label": label, "labels": list(labels), "data": pixels, "filenames": filenames})
    _dump(folder / META, {"num_cases_per_batch": 10000, "label_names": list(CLASSES), "num_vis": 3072})
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
