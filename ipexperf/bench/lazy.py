"""torch and torchvision, imported on first use: the plan imports modules whose functions need torch."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

_MODULES = {"pillow": "PIL"}
"""Packages whose module has another name than theirs."""


def import_packages(names: Iterable[str]) -> None:
    """Import these packages, as far as they are installed."""
    for name in names:
        module = _MODULES.get(name, name.replace("-", "_"))
        if importlib.util.find_spec(module):
            importlib.import_module(module)


if TYPE_CHECKING:
    import torch as torch
    import torchvision as torchvision
else:

    class _Lazy(ModuleType):
        """A module that is imported when an attribute is first accessed."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    torch = _Lazy("torch")
    torchvision = _Lazy("torchvision")
