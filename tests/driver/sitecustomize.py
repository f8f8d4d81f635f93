"""Whoever imports torch has SYCL's cards below it: Python imports this file at its start, in workers too."""

import importlib.util
import sys
from typing import Any


class Torch:
    @staticmethod
    def find_spec(name: str, *_: Any) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(Torch)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        loader: Any = spec and spec.loader
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            import sycl  # noqa: F401

        loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Torch)  # type: ignore[arg-type]
