"""Register the user's own networks as models. Imports none of them: `own_build` builds them in the worker."""

from __future__ import annotations

import ast
import glob
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.api import TRAINING
from ipexperf.bench.machine import source as files
from ipexperf.bench.model import Dataset, Model, Split
from ipexperf.bench.networks import own_build
from ipexperf.bench.networks.own_target import HUBS, Target, declared, importable, parse, syntax_tree
from ipexperf.bench.networks.own_task import Own, OwnTraining
from ipexperf.errors import UsageError

BATCH = 32
HELD_OUT = 64
"""Number of examples for fidelity, and of others for the calibration of int8."""
TRAINED = 256
"""Number of examples to train on."""

registry.tasks.add("own", Own())


def register(text: str) -> str:
    """Register a model for a target, without importing it, and return the model's name."""
    target = parse(text)
    if target.name in registry.models.names():
        known = registry.models.get(target.name).target or target.name
        if known == text:
            return target.name
        raise UsageError(f"'{known}' and '{text}' would both be called {target.name}: name one of them differently")
    _refuse_missing_files(target)
    training = declared(text, target.callable_name, _own_source(target))
    if training.why_not is None:
        registry.tasks.add(target.name, OwnTraining(target.name, lambda: own_build.loss(target)))
    registry.datasets.add(target.name, OwnExamples(target, HELD_OUT if training.why_not else TRAINED))
    registry.models.add(
        target.name,
        Model(
            target.name,
            lambda: own_build.network(target),
            size=target.shapes[0][-1] if target.shapes else 1,
            batch_train=BATCH,
            batch_infer=BATCH,
            task="own" if training.why_not else target.name,
            data=target.name,
            needs=("torch", *(HUBS[name] for name in [target.hub] if name)),
            imports=() if target.hub else imported(source(target)),
            trained=False,
            held_out=HELD_OUT,
            quantisation="dynamic" if target.hub == "hf" else "static",
            optimizer=training.optimizer,
            learning_rate=training.rate,
            why_nots={TRAINING: training.why_not} if training.why_not else {},
            target=text,
        ),
    )
    return target.name


def _refuse_missing_files(target: Target) -> None:
    """Raise UsageError for missing files and folders. Modules may exist in the workers' interpreter only.

    If a file is missing in a tree that takes the place of the user's, that is said when the network is built.
    """
    missing = target.location.endswith(".py") and not target.hub and not Path(target.location).is_file()
    if missing and not files.Replaced.of():
        raise UsageError(f"'{target.text}': there is no file {target.location}")
    if target.local and not (target.local / "config.json").is_file():
        raise UsageError(
            f"'{target.text}': {target.location} is not the folder of a saved network: it has no config.json"
        )
    if target.hub == "hf" and not target.local and not list(_snapshots(target.location)):
        text = "is not in the local cache, and nothing is downloaded here"
        raise UsageError(f"'{target.text}' {text}: hf download {target.location}, or name a folder")


def _snapshots(name: str) -> Iterator[Path]:
    """Return the folder of a network in Hugging Face's cache, as documented, without importing its package."""
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    folder = glob.escape(f"models--{name.replace('/', '--')}")
    return cache.expanduser().glob(f"{folder}/snapshots/*/config.json")


def source(target: Target) -> Path:
    """Return the sources of the network that are known without importing it. They identify its artifacts."""
    if target.local:
        return files.moved(target.local)
    if target.hub == "hf":
        return max(path.parent for path in _snapshots(target.location))
    if target.location.endswith(".py"):
        return files.moved(Path(target.location))
    top, *subpackages = (target.hub or target.location).split(".")
    spec = importlib.util.find_spec(top)
    roots = list(spec.submodule_search_locations or []) if spec else []
    for root in roots:
        for path in (Path(root, *subpackages, "__init__.py"), Path(root, *subpackages).with_suffix(".py")):
            if path.is_file():
                return path
    return Path(spec.origin) if spec and spec.origin else Path(__file__)


def _own_source(target: Target) -> Path | None:
    """Return the file that defines the callable, or None if there is none here or `@SHAPE` makes random inputs."""
    if target.hub or target.shapes:
        return None
    importable()
    path = source(target)
    return path if path.suffix == ".py" and path != Path(__file__) else None


def imported(path: Path) -> tuple[str, ...]:
    """Return the top-level modules that a file imports anywhere, without running it. Empty if it cannot be read."""
    names: set[str] = set()
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return tuple(sorted(names - sys.stdlib_module_names))


class OwnExamples(Dataset):
    """Examples for a user's own network: from its `training_batch()` or `example()`, or random numbers of a shape."""

    def __init__(self, target: Target, trained: int) -> None:
        """`trained` is the number of examples to train on, or to calibrate int8 with."""
        self.name = target.name
        self._target = target
        self._trained = trained

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        importable()
        return str(source(self._target)), None

    def read(self, path: str, size: int) -> Split:
        examples = own_build.examples(self._target, self._trained + HELD_OUT)
        return Split(examples.part(slice(self._trained)), examples.part(slice(self._trained, None)))
