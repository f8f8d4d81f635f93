"""Trained weights for inference, made once. With random weights, the accuracy of low precision would mean nothing."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.bench import optimizers, outcome, registry, shared
from ipexperf.bench.api import Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Examples, Model, Split
from ipexperf.errors import WorkerError
from ipexperf.proof import accuracy

RECIPE = {"version": 4, "seed": 0}

AGAIN = "delete it to have it made again"


def address(model: Model, data: str, data_path: str, size: int) -> str:
    """Return the address of a checkpoint: a hash of model, size, recipe and the bytes of the data."""
    digest = hashlib.sha256()
    training = (model.batch_train, model.optimizer, model.learning_rate, model.recipe_steps)
    settling = (model.settles,) if model.settles else ()
    sizes = dict.fromkeys((model.size, size))
    for part in (model.name, model.version, *sizes, *training, *settling, RECIPE, data):
        digest.update(json.dumps(part, sort_keys=True).encode())
    for file in registry.datasets.get(data).files(data_path):
        digest.update(f"{file.name} {file.stat().st_size}".encode())
        if file.stat().st_size < 2**24:
            digest.update(file.read_bytes())
    return f"{model.name}-{data}-{digest.hexdigest()[:16]}.pt"


def order(examples: int, batch: int, seed: int) -> Iterator[Any]:
    """Yield endless shuffled batches of example indices, equal for equal seeds."""
    if batch > examples:
        raise WorkerError("error", f"a batch of {batch} is larger than the {examples} examples available")
    generator = torch.Generator().manual_seed(seed)
    while True:
        for part in torch.randperm(examples, generator=generator).split(batch):
            if len(part) == batch:
                yield part


def train(bench: Workbench, path: str) -> dict[str, Any]:
    """Train in fp32 with stock PyTorch on the case's device, and save the weights."""
    model = bench.model
    first = bench.at(model.size) if model.resized else bench
    split = read(first)
    torch.manual_seed(RECIPE["seed"])
    network = bench.device.put(bench.built().train())
    (model.recipe or steps)(first, split, network)
    if model.resized and first.case.size != bench.case.size:
        split = read(bench)
        model.resized(bench, split, network)
    network = network.eval().cpu()
    outputs = accuracy.predict(lambda inputs: network(*inputs), split.test.inputs, accuracy.PART)
    reached, trivial = bench.task.score(outputs, split.test.targets), bench.task.trivial(split)
    if reached < bench.task.floor(trivial):
        text = f"held-out accuracy {reached:.3f}; a constant answer reaches {trivial:.3f}"
        raise WorkerError("error", f"{bench.model.name} did not learn: {text}")
    torch.save(network.state_dict(), path)
    return {"accuracy": reached}


def steps(bench: Workbench, split: Split, network: Any) -> None:
    """Train for the steps that the model declares, like the mode `train`."""
    model, task = bench.model, bench.task
    optimizer = optimizers.make(model.optimizer, network.parameters(), model)
    numbers = order(len(split.train), model.batch_train, int(RECIPE["seed"]))
    for index in range(model.recipe_steps):
        batch = split.train.part(next(numbers))
        optimizers.settle(optimizer, model.optimizer, model, model.recipe_steps - index)
        optimizer.zero_grad(set_to_none=True)
        inputs, targets = (tuple(map(bench.device.put, part)) for part in (batch.inputs, batch.targets))
        loss, _ = task.learn(network, inputs, targets)
        loss.backward()
        optimizer.step()
        if index % 10 == 0:
            bench.say(
                f"training {model.name} once: step {index} of {model.recipe_steps}, loss {float(loss.detach()):.3f}"
            )


def network(bench: Workbench) -> Any:
    """Build a new, unoptimised network with the case's weights."""
    torch.manual_seed(bench.settings.seed)
    built = bench.built()
    if bench.model.trained:
        load(built, str(bench.settings.weights))
    return built.eval()


def load(network: Any, path: str) -> None:
    state_dict = restore(path)
    try:
        network.load_state_dict(state_dict)
    except (AttributeError, KeyError, RuntimeError, TypeError) as error:
        raise WorkerError("error", f"{path} holds the weights of another network: {AGAIN}") from error


def restore(path: str) -> Any:
    """Read a checkpoint. Only tensors are loaded, so it cannot run code."""
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, EOFError, OSError, RuntimeError) as error:
        if outcome.indicated(str(error)) or isinstance(error, (FileNotFoundError, PermissionError)):
            raise  # the machine is at fault, not the file
        raise WorkerError("error", f"{path} is truncated or holds something other than tensors: {AGAIN}") from error


def save(network: Any, optimizer: Any, path: str) -> None:
    """Write a checkpoint from which training could continue, atomically."""
    target = Path(path)
    scratch.made(target.parent)
    with scratch.folder("weights", target.parent) as place:
        part = place / target.name
        torch.save({"model": network.state_dict(), "optimizer": optimizer.state_dict()}, part)
        part.replace(target)


def read(bench: Workbench) -> Split:
    """Read the case's data at the case's size, or load what another worker of the run saved."""
    path, why_not = bench.dataset.find(bench.settings.data_folder)
    path = bench.settings.data_file or path
    if path is None:
        raise WorkerError("error", why_not or "no data")

    def make() -> list[tuple[Any, ...]]:
        split = bench.dataset.read(path, bench.case.size)
        return [split.train.inputs, split.train.targets, split.test.inputs, split.test.targets]

    parts = shared.once(bench, "data", [path], make)
    return Split(Examples(*parts[:2]), Examples(*parts[2:]))
