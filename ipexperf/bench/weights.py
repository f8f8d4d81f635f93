"""A trained checkpoint for inference, made once: real weights, or low precision is measured on noise."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipexperf.bench import accuracy, outcome
from ipexperf.bench.kinds import Model, Split, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

RECIPE = {"version": 3, "batch": 64, "momentum": 0.9, "seed": 0}

AGAIN = "delete it, and it is made again"


def address(model: Model, data: str, data_path: str) -> str:
    """Names a checkpoint by what it is made of: model, recipe and the bytes of the data."""
    digest = hashlib.sha256()
    for part in (model.name, model.version, model.size, model.learning_rate, model.recipe_steps, RECIPE, data):
        digest.update(json.dumps(part, sort_keys=True).encode())
    path = Path(data_path)
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            digest.update(f"{file.name} {file.stat().st_size}".encode())
            if file.stat().st_size < 2**24:
                digest.update(file.read_bytes())
    return f"{model.name}-{data}-{digest.hexdigest()[:16]}.pt"


def order(examples: int, batch: int, seed: int) -> Iterator[Any]:
    """The numbers of the examples in each of endless shuffled batches, the same for the same seed."""
    if batch > examples:
        raise WorkerError("error", f"a batch of {batch} is more than the {examples} examples that there are")
    generator = torch.Generator().manual_seed(seed)
    while True:
        for part in torch.randperm(examples, generator=generator).split(batch):
            if len(part) == batch:
                yield part


def batches(split: Split, batch: int, seed: int) -> Iterator[tuple[Any, Any]]:
    """Endless shuffled batches, the same for the same seed."""
    for part in order(len(split.train_images), batch, seed):
        yield split.train_images[part], split.train_labels[part]


def train(bench: Workbench, path: str) -> dict[str, Any]:
    """Trains in fp32 with stock PyTorch on the case's device, and saves the weights."""
    split = read(bench)
    torch.manual_seed(RECIPE["seed"])
    network = bench.device.put(bench.model.build().train())
    optimizer = torch.optim.SGD(network.parameters(), lr=bench.model.learning_rate, momentum=RECIPE["momentum"])
    feed = batches(split, int(RECIPE["batch"]), int(RECIPE["seed"]))
    steps = bench.model.recipe_steps
    for index in range(steps):
        images, labels = (bench.device.put(value) for value in next(feed))
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        if index % 10 == 0:
            bench.say(f"training {bench.model.name} once: step {index} of {steps}, loss {float(loss):.3f}")
    network = network.eval().cpu()
    with torch.no_grad():
        outputs = torch.cat([network(part) for part in split.test_images.split(64)])
    reached = accuracy.right(outputs, split.test_labels)
    if reached < accuracy.FAR_OVER_CHANCE * bench.dataset.chance:
        raise WorkerError("error", f"{bench.model.name} did not learn: held-out accuracy {reached:.3f}")
    torch.save(network.state_dict(), path)
    return {"accuracy": reached}


def network(bench: Workbench) -> Any:
    """A network of the case's weights that nothing has optimised, as often as one is asked for."""
    torch.manual_seed(bench.settings.seed)
    built = bench.model.build()
    if bench.model.trained:
        if bench.settings.weights is None:
            raise WorkerError("error", f"{bench.model.name} infers on trained weights, and none were given")
        load(built, bench.settings.weights)
    return built.eval()


def load(network: Any, path: str) -> None:
    """Puts saved weights into a network."""
    kept = restore(path)
    try:
        network.load_state_dict(kept)
    except (AttributeError, RuntimeError, TypeError) as error:
        raise WorkerError("error", f"{path} holds the weights of another network: {AGAIN}") from error


def restore(path: str) -> Any:
    """Reads tensors and nothing else: a checkpoint can carry no code."""
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, EOFError, OSError, RuntimeError) as error:
        if outcome.told(str(error)) or isinstance(error, (FileNotFoundError, PermissionError)):
            raise  # a full memory says nothing of the file
        raise WorkerError("error", f"{path} is cut short or holds something else than tensors: {AGAIN}") from error


def save(network: Any, optimizer: Any, path: str) -> None:
    """Writes a checkpoint that training could go on from: there all at once, or not at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        torch.save({"model": network.state_dict(), "optimizer": optimizer.state_dict()}, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def read(bench: Workbench) -> Split:
    """The case's data, at the case's size."""
    path, why_not = bench.dataset.find(bench.settings.data_folder)
    path = bench.settings.data_file or path
    if path is None:
        raise WorkerError("error", why_not or "no data")
    return bench.dataset.read(path, bench.case.size)
