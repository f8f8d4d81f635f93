"""torch and torchvision, imported on first use: the plan imports modules whose functions need torch."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any


def import_packages(names: Iterable[str]) -> None:
    """Import those of these packages that are installed."""
    for name in names:
        for module in _modules(name):
            importlib.import_module(module)


def _modules(package: str) -> list[str]:
    """Return the modules of a package: the one of its name, or those that it installed (pillow: PIL)."""
    module = package.replace("-", "_")
    if importlib.util.find_spec(module):
        return [module]
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return []
    return sorted({file.parts[0] for file in files if len(file.parts) == 2 and file.name == "__init__.py"})


def remove_leftovers() -> None:
    """Remove the temporary folder that torch's remote modules made when they were imported, as IPEX and dynamo do.

    Torch removes it when the interpreter exits, but a worker exits without that. Its files are imported already.
    """
    folder = getattr(sys.modules.get("torch.distributed.nn.jit.instantiator"), "_TEMP_DIR", None)
    if folder is not None:
        folder.cleanup()


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
