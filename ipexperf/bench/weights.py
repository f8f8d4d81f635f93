"""A trained checkpoint for inference, made once: real weights, or low precision is measured on noise."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ipexperf.bench import accuracy
from ipexperf.bench.kinds import Model, Split, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

RECIPE = {"version": 2, "batch": 64, "steps": 66, "momentum": 0.9, "seed": 0}


def address(model: Model, data: str, data_path: str) -> str:
    """Names a checkpoint by what it is made of: model, recipe and the bytes of the data."""
    digest = hashlib.sha256()
    for part in (model.name, model.version, model.size, model.learning_rate, RECIPE, data):
        digest.update(json.dumps(part, sort_keys=True).encode())
    path = Path(data_path)
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            digest.update(f"{file.name} {file.stat().st_size}".encode())
            if file.stat().st_size < 2**24:
                digest.update(file.read_bytes())
    return f"{model.name}-{data}-{digest.hexdigest()[:16]}.pt"


def batches(split: Split, batch: int, seed: int) -> Any:
    """Endless shuffled batches, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for part in torch.randperm(len(split.train_images), generator=generator).split(batch):
            if len(part) == batch:
                yield split.train_images[part], split.train_labels[part]


def train(bench: Workbench, path: str) -> dict[str, Any]:
    """Trains in fp32 with stock PyTorch on the case's device, and saves the weights."""
    split = read(bench)
    torch.manual_seed(RECIPE["seed"])
    network = bench.device.put(bench.model.build().train())
    optimizer = torch.optim.SGD(network.parameters(), lr=bench.model.learning_rate, momentum=RECIPE["momentum"])
    feed = batches(split, int(RECIPE["batch"]), int(RECIPE["seed"]))
    for index in range(int(RECIPE["steps"])):
        images, labels = (bench.device.put(value) for value in next(feed))
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        if index % 10 == 0:
            bench.say(f"training {bench.model.name} once: step {index} of {RECIPE['steps']}, loss {float(loss):.3f}")
    network = network.eval().cpu()
    with torch.no_grad():
        outputs = torch.cat([network(part) for part in split.test_images.split(64)])
    reached = accuracy.right(outputs, split.test_labels)
    if reached < accuracy.FAR_OVER_CHANCE * bench.dataset.chance:
        raise WorkerError("error", f"{bench.model.name} did not learn: held-out accuracy {reached:.3f}")
    torch.save(network.state_dict(), path)
    return {"accuracy": reached}


def load(network: Any, path: str) -> None:
    """Reads weights only: a checkpoint can carry no code."""
    network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))


def read(bench: Workbench) -> Split:
    """The case's data, at the case's size."""
    path, why_not = bench.dataset.find(bench.settings.data_folder)
    path = bench.settings.data_file or path
    if path is None:
        raise WorkerError("error", why_not or "no data")
    return bench.dataset.read(path, bench.case.size)
