"""torch and torchvision, imported on first use: the plan imports modules whose functions need torch."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

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
