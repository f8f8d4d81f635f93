"""CIFAR-10 in its original file format, read by torchvision from a folder of the user."""

from __future__ import annotations

from pathlib import Path

from ipexperf.ext import Dataset, Examples, Split, WorkerError, register, torch, torchvision
from ipexperf.zoo.datasets import _folder

FOLDER = "cifar-10-batches-py"
ARCHIVE = "cifar-10-python.tar.gz"
"""The published archive, which contains the folder."""
FILES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta")
MEAN = (0.4914, 0.4822, 0.4465)
DEVIATION = (0.2470, 0.2435, 0.2616)


class Cifar10(Dataset):
    name = "cifar10"
    licence = "none stated by its authors"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        return _folder.find(folder, "CIFAR-10", FOLDER, FILES, f"unpack {ARCHIVE}")

    def read(self, path: str, size: int) -> Split:
        """Read the examples. torchvision checks the MD5 sums of the files first."""

        def examples(*, train: bool) -> Examples:
            try:
                data = torchvision.datasets.CIFAR10(Path(path).parent, train=train, download=False)
            except RuntimeError:
                text = f"{path} is not CIFAR-10 as published: unpack {ARCHIVE} there again"
                raise WorkerError("error", text) from None
            images = torch.from_numpy(data.data).permute(0, 3, 1, 2).float() / 255
            images = (images - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(DEVIATION).view(3, 1, 1)
            if size != images.shape[-1]:
                images = torch.nn.functional.interpolate(images, size=(size, size), mode="bilinear")
            return Examples((images.contiguous(),), (torch.tensor(data.targets),))

        return Split(examples(train=True), examples(train=False))


register(Cifar10())
