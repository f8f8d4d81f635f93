"""PT2E, the quantisation of exported graphs: where its tools are, and how a quantised program is saved and loaded.

Torch had the tools itself until they moved to torchao, a package of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch

HOMES = ("torch.ao.quantization", "torchao.quantization.pt2e")
"""The packages that have the tools, torch's own first: later ones do without it."""
STEPS, QUANTIZER = "quantize_pt2e", "quantizer.x86_inductor_quantizer"


def home() -> str:
    """The package that has the tools here, or an empty text. Only files are looked at: nothing is imported."""
    return next((name for name in HOMES if _is_file(f"{name}.{STEPS}") and _is_file(f"{name}.{QUANTIZER}")), "")


def _is_file(module: str) -> bool:
    package, *inside = module.split(".")
    try:
        found = importlib.util.find_spec(package)
    except ImportError:  # somebody's own finder: none of Python's says so
        return False
    places = (found and found.submodule_search_locations) or ()
    return any(Path(place, *inside).with_suffix(".py").is_file() for place in places)


def tools() -> tuple[Any, Any]:
    """The steps, and the quantizer for x86. Their import registers the operators of a quantised program."""
    place = home()
    return importlib.import_module(f"{place}.{STEPS}"), importlib.import_module(f"{place}.{QUANTIZER}")


def exported(network: Any, example: Any) -> Any:
    """The network as one graph, as the quantizer wants it.

    Strict, for in torch 2.8 the quantizer finds layers by marks that only this way of exporting leaves: it would
    annotate nothing, and say nothing.
    """
    return module(torch.export.export(network, example, strict=True))


def module(program: Any) -> Any:
    """What can be called of a program, without the guards that later torch puts in front: they are a second frame."""
    unguarded = {"check_guards": False} if "check_guards" in inspect.signature(program.module).parameters else {}
    return program.module(**unguarded)


def save(network: Any, example: Any, path: str) -> None:
    """Exports what was quantised, and saves it."""
    with Path(path).open("wb") as file:
        torch.export.save(torch.export.export(network, example), file)


def load(path: str) -> Any:
    """What was saved, in a process that knows nothing of how it was made but its operators."""
    tools()
    with Path(path).open("rb") as file:
        return module(torch.export.load(file))
