"""Networks of the user's own, named where a model is: `module:callable`, `hf:NAME` or `timm:NAME`.

Here is what the plan must know of them. It imports none of them: what builds them is in `own_build`.
"""

from __future__ import annotations

import glob
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.subjects import Dataset, Examples, Model, Split
from ipexperf.errors import UsageError

HUBS = {"hf": "transformers", "timm": "timm"}
"""Prefixes of networks that a package builds, each with the package."""
FORMS = "module:callable, file.py:callable, hf:NAME or timm:NAME, each with @SHAPE behind it where that is needed"
_SHAPE = re.compile(r"\d+(?:x\d+)*(?:\+\d+(?:x\d+)*)*")
_UNTAUGHT = "nothing is known of what it is to learn: declare it with ipexperf.model, with data and a task"
BATCH = 32
HELD_OUT = 64
"""Examples that fidelity looks at, and as many others that int8 is calibrated on."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What a name on the command line means."""

    text: str
    hub: str
    """`hf`, `timm`, or an empty text."""
    where: str
    """A module, a file, or what the hub calls the network."""
    what: str
    """The callable in it; empty for a hub's."""
    shapes: tuple[Shape, ...]
    """Of one example of each input, where they were given."""

    @property
    def local(self) -> Path | None:
        """The hub's folder, where the network is named by one."""
        path = Path(os.path.expanduser(self.where))  # noqa: PTH111 - pathlib's raises where nobody is called so
        return path if self.hub and (self.where.startswith((".", "/", "~")) or path.is_dir()) else None

    @property
    def name(self) -> str:
        """What its cases are called: letters, digits, `_`, `.` and `-` alone, for files, for `-k` and for people."""
        if self.hub:
            parts = [self.hub, self.local.resolve().name if self.local else self.where]
        else:
            where = Path(self.where).stem if self.where.endswith(".py") else self.where
            parts = [where, self.what]
        parts += ["_".join("x".join(map(str, shape)) for shape in self.shapes)] if self.shapes else []
        return re.sub(r"[^\w.-]", "_", ".".join(part.replace("/", ".") for part in parts), flags=re.ASCII)


def is_target(text: str) -> bool:
    """Whether a model's name means a network of the user's own."""
    return ":" in text


def parse(text: str) -> Target:
    """Reads a target, or says in a sentence why it is none."""
    body, at, shape = text.rpartition("@")
    if not at:
        body, shape = text, ""
    if at and not _SHAPE.fullmatch(shape):
        raise UsageError(f"'{text}': expected a shape such as 3x224x224 behind @, got '{shape}'")
    where, _, what = body.partition(":") if body.partition(":")[0] in HUBS else body.rpartition(":")
    shapes = tuple(tuple(map(int, part.split("x"))) for part in shape.split("+")) if shape else ()
    if not (where and what) or any(0 in part for part in shapes):
        raise UsageError(f"'{text}' names no network: expected {FORMS}")
    if where in HUBS:
        return Target(text, where, what, "", shapes)
    if not what.isidentifier():
        raise UsageError(f"'{text}': '{what}' is no name of a callable: expected {FORMS}")
    return Target(text, "", where, what, shapes)


def register(text: str) -> str:
    """Makes a model of a target, without importing it, and returns the model's name."""
    target = parse(text)
    known = _registered().get(target.name)
    if known == text:
        return target.name
    if known is not None:
        raise UsageError(f"'{known}' and '{text}' would both be called {target.name}: name one of them in another way")
    _refuse_what_is_not_there(target)
    network = importlib.import_module("ipexperf.bench.own_build").network
    registry.datasets.add(target.name, OwnExamples(target))
    registry.models.add(
        target.name,
        Model(
            target.name,
            lambda: network(target),
            size=target.shapes[0][-1] if target.shapes else 1,
            batch_train=BATCH,
            batch_infer=BATCH,
            task="own",
            data=target.name,
            needs=("torch", *(HUBS[name] for name in [target.hub] if name)),
            trained=False,
            held_out=HELD_OUT,
            quantisation="dynamic" if target.hub == "hf" else "static",
            why_nots=dict.fromkeys(("train", "train_ddp"), _UNTAUGHT),
            target=text,
        ),
    )
    return target.name


def _registered() -> dict[str, str]:
    found = {name: registry.models.get(name).target for name in registry.models.names()}
    return {name: text or name for name, text in found.items()}


def _refuse_what_is_not_there(target: Target) -> None:
    """A file or folder that is named and is not there is a mistake; a module may be in the workers' interpreter."""
    if target.where.endswith(".py") and not target.hub and not Path(target.where).is_file():
        raise UsageError(f"'{target.text}': there is no file {target.where}")
    if target.local and not (target.local / "config.json").is_file():
        raise UsageError(f"'{target.text}': {target.where} is no folder of a saved network: it has no config.json")
    if target.hub == "hf" and not target.local and not list(_snapshots(target.where)):
        told = "is not in the local cache, and nothing is downloaded here"
        raise UsageError(f"'{target.text}' {told}: hf download {target.where}, or name a folder")


def _snapshots(name: str) -> Iterator[Path]:
    """Where Hugging Face's cache has a network, as its documentation says; looked at without its package."""
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    folder = glob.escape(f"models--{name.replace('/', '--')}")
    return cache.expanduser().glob(f"{folder}/snapshots/*/config.json")


def source(target: Target) -> Path:
    """What the network is made of, as far as that is known without importing it: it names what is made of it."""
    if target.local:
        return target.local
    if target.hub == "hf":
        return max(path.parent for path in _snapshots(target.where))
    if target.where.endswith(".py"):
        return Path(target.where)
    top, *rest = (target.hub or target.where).split(".")
    spec = importlib.util.find_spec(top)
    roots = list(spec.submodule_search_locations or []) if spec else []
    for root in roots:
        for path in (Path(root, *rest, "__init__.py"), Path(root, *rest).with_suffix(".py")):
            if path.is_file():
                return path
    return Path(spec.origin) if spec and spec.origin else Path(__file__)


def importable() -> None:
    """Lets modules of the folder that one stands in be imported, as `python -m` does: behind all others."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


class OwnExamples(Dataset):
    """What a network of the user's own is given: its `example()`, or numbers of the right shape."""

    def __init__(self, target: Target) -> None:
        self.name = target.name
        self._target = target

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        importable()
        return str(source(self._target)), None

    def read(self, path: str, size: int) -> Split:
        del path, size
        given = importlib.import_module("ipexperf.bench.own_build").inputs(self._target, 2 * HELD_OUT)
        examples = Examples(given, ())
        return Split(examples.part(slice(HELD_OUT)), examples.part(slice(HELD_OUT, None)))
