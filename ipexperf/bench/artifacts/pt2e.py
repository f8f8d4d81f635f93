"""PT2E quantisation of exported graphs: find its tools, and save and load quantised programs.

The tools were part of torch until they moved to torchao.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import facts, variables

TENSORS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""Overrides the `weights_only=False` that torch passes to `torch.load` itself, which may run code of the file."""


def tools(device: str) -> tuple[Any, Any]:
    """Import the tools and the quantizer for a device. This registers the operators of quantised programs."""
    package, quantizer = home(device), f"quantizer.{registry.devices.get(device).quantizer}{facts.PT2E_QUANTIZER}"
    return importlib.import_module(f"{package}.{facts.PT2E_STEPS}"), importlib.import_module(f"{package}.{quantizer}")


def home(device: str) -> str:
    """Return the package that has the tools and the quantizer for a device."""
    return facts.pt2e_homes()[registry.devices.get(device).quantizer]


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


def load(path: str, device: str) -> Any:
    """Load a saved program and move it to the device. The process only needs its operators."""
    tools(device)
    with Path(path).open("rb") as file, variables.changed(TENSORS_ONLY, "1"):
        program = torch.export.load(file)
    if device != "cpu":
        program = importlib.import_module("torch.export.passes").move_to_device_pass(program, device)
    return module(program)
