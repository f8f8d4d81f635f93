"""PT2E quantisation of exported graphs: find its tools, and save and load quantised programs.

The tools were part of torch until they moved to torchao.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch

HOMES = ("torch.ao.quantization", "torchao.quantization.pt2e")
"""Packages that have the tools. Torch's own first; later versions lack it."""
STEPS, QUANTIZER = "quantize_pt2e", "quantizer.x86_inductor_quantizer"


def home() -> str:
    """Return the package that has the tools, or an empty text. Looks at files only and imports nothing."""
    return next((name for name in HOMES if _is_file(f"{name}.{STEPS}") and _is_file(f"{name}.{QUANTIZER}")), "")


def _is_file(module: str) -> bool:
    package, *inside = module.split(".")
    try:
        found = importlib.util.find_spec(package)
    except ImportError:  # raised by custom finders only, never by Python's own
        return False
    places = (found and found.submodule_search_locations) or ()
    return any(Path(place, *inside).with_suffix(".py").is_file() for place in places)


def tools() -> tuple[Any, Any]:
    """Import the tools and the quantizer for x86. This registers the operators of quantised programs."""
    place = home()
    return importlib.import_module(f"{place}.{STEPS}"), importlib.import_module(f"{place}.{QUANTIZER}")


def exported(network: Any, example: Any) -> Any:
    """Export the network as one graph for the quantizer.

    Strict, because in torch 2.8 the quantizer finds layers by metadata that only strict export records. Otherwise it
    would silently annotate nothing.
    """
    return module(torch.export.export(network, example, strict=True))


def module(program: Any) -> Any:
    """Return the callable module of a program, without the guards of later torch versions, which add a second frame."""
    unguarded = {"check_guards": False} if "check_guards" in inspect.signature(program.module).parameters else {}
    return program.module(**unguarded)


def save(network: Any, example: Any, path: str) -> None:
    """Export a quantised network and save it."""
    with Path(path).open("wb") as file:
        torch.export.save(torch.export.export(network, example), file)


def load(path: str) -> Any:
    """Load a saved program. The process only needs its operators."""
    tools()
    with Path(path).open("rb") as file:
        return module(torch.export.load(file))
