"""Registries of devices, stacks, modes, models, tasks and datasets. Each is a file in a folder; there is no list."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ipexperf.bench import declaration
from ipexperf.bench.api import Execution, Mode, Stack, Workbench
from ipexperf.bench.cell import Settings
from ipexperf.bench.device import Device
from ipexperf.bench.model import Dataset, Model, Task
from ipexperf.case import Case, NetworkCase
from ipexperf.errors import AbsentError, UsageError
from ipexperf.sentences import few

T = TypeVar("T")
PACKAGES = ("ipexperf.bench", "ipexperf.zoo")
"""The packages whose folders have leaves: `devices`, `models` and so on."""
ALIKE = 0.8
"""The least similarity of a suggested option. It is high because most options begin with `--perf-`."""
CHOICES = 8
"""So many names are listed where none is near."""


class Registry(Generic[T]):
    """The leaves of one kind by name. The files of its folder are imported on first use."""

    def __init__(self, kind: str, base: type) -> None:
        self.kind = kind
        self.base = base
        self._items: dict[str, T] = {}
        self._searched = False

    def add(self, name: str, item: T) -> T:
        """Register a leaf. Raise UsageError if the name is taken, or if a declared value has the wrong type."""
        declaration.check(self.kind, self.base, name, item)
        if name in self._items:
            raise UsageError(f"the {self.kind} '{name}' is registered twice: give one of them another name")
        self._items[name] = item
        return item

    def _search(self) -> None:
        if not self._searched:
            self._searched = True
            folders = [f"{package}.{self.kind}s" for package in PACKAGES]
            for folder in filter(importlib.util.find_spec, folders):
                for module in pkgutil.iter_modules(importlib.import_module(folder).__path__):
                    if not module.name.startswith("_"):
                        importlib.import_module(f"{folder}.{module.name}")

    def names(self) -> tuple[str, ...]:
        """Return all names in alphabetical order."""
        self._search()
        return tuple(sorted(self._items))

    def get(self, name: str) -> T:
        """Return the leaf with this name. Raise AbsentError with the nearest name if there is none."""
        if name not in self._items:
            self._search()
        if name not in self._items:
            raise AbsentError(unknown(self.kind, name, self.names()))
        return self._items[name]

    def called(self, name: str) -> list[str]:
        """Return the leaves that list this as another name."""
        return [leaf for leaf in self.names() if name.lower() in getattr(self._items[leaf], "called", ())]


def unknown(kind: str, name: str, allowed: Iterable[str]) -> str:
    """Return the error message for an unknown name, with a hint to what may be meant."""
    allowed = tuple(allowed)
    near = KINDS[kind].called(name) if kind in KINDS else []
    hint = f": did you mean {' or '.join(near)}?" if near else nearest(name, allowed)
    return f"unknown {kind} '{name}'{hint or f': choose from {few(allowed, CHOICES)}'}"


def nearest_option(words: Iterable[str], flags: Iterable[str]) -> str:
    """Return a hint to the option that one of these unknown words was meant to be, or an empty text."""
    options = list(flags)
    hints = (nearest(word.partition("=")[0], options, ALIKE) for word in words if word.startswith("--"))
    return next(filter(None, hints), "")


def nearest(name: str, names: Iterable[str], cutoff: float = 0.54) -> str:
    """Return a hint to the most similar known name, or an empty text."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return f": did you mean {near[0]}?" if near else ""


devices: Registry[Device] = Registry("device", Device)
stacks: Registry[Stack] = Registry("stack", Stack)
modes: Registry[Mode] = Registry("mode", Mode)
models: Registry[Model] = Registry("model", Model)
tasks: Registry[Task] = Registry("task", Task)
datasets: Registry[Dataset] = Registry("dataset", Dataset)
KINDS: dict[str, Registry[Any]] = {
    registry.kind: registry for registry in (devices, stacks, modes, models, tasks, datasets)
}

CALLED = Execution()
"""How functions run."""


def execution(case: Case) -> Execution:
    """Return how a case runs. Of a network its mode says it."""
    return modes.get(case.mode) if isinstance(case, NetworkCase) else CALLED


def used_accelerator() -> str:
    """Return the accelerator that this process has used, or an empty text."""
    torch = sys.modules.get("torch")
    for name in devices.names():
        module: Any = getattr(torch, name, None) if devices.get(name).accelerator else None
        if module is not None and getattr(module, "is_initialized", bool)():
            return name
    return ""


def model(name: str, **attributes: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function that builds a model: `@ipexperf.model("mynet", size=32, ...)`."""

    if not isinstance(name, str):
        raise UsageError(f"@model has no arguments: write @model({name.__name__!r}, size=..., batch_train=..., ...)")

    def register(build: Callable[[], Any]) -> Callable[[], Any]:
        try:
            declared = Model(name=name, build=build, **attributes)
        except TypeError as error:
            raise UsageError(f"the model '{name}': {str(error).removeprefix('Model.__init__() ')}") from None
        models.add(name, declared)
        return build

    return register


def workbench(case: NetworkCase, settings: Settings, say: Callable[[str], None]) -> Workbench:
    """Return the workbench of a case, with its leaves."""
    chosen = models.get(case.model)
    leaves = (chosen, devices.get(case.device), modes.get(case.mode), stacks.get(case.stack), datasets.get(case.data))
    return Workbench(case, *leaves, tasks.get(chosen.task), settings, say)
