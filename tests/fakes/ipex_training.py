"""Trains small networks with IPEX: with each optimizer, and through torch.compile. Prints checks as JSON."""

import importlib
import json
import sys
import types
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ipexperf.bench.api import Workbench
from ipexperf.bench.cell import Settings
from ipexperf.bench.machine import facts
from ipexperf.bench.modes.train import TrainSession
from ipexperf.bench.modes.train_compile import CompiledTraining
from ipexperf.bench.optimizers import RATES
from ipexperf.bench.process.worker import workbench
from ipexperf.case import NetworkCase
from ipexperf.zoo.datasets.digits import Digits

SMALL = Path(__file__).parent / "small_training.py"


def bench(model: str, mode: str, dtype: str, **knobs: str) -> Workbench:
    path, _ = Digits().find(None)
    settings = Settings(load=(str(SMALL),), threads=1, data_file=path, train_steps=100)
    case = NetworkCase(model, "cpu", dtype, mode, "ipex", 16, 8, 1, "digits", tuple(sorted(knobs.items())))
    return workbench({"case": case.to_json(), "settings": asdict(settings)}, lambda _: None)


def opened(dtype: str, **knobs: str) -> TrainSession:
    if dtype == "bf16":
        knobs["weights_prepack"] = "off"  # packing is what needs AVX-512
    return TrainSession(bench("small", "train", dtype, **knobs))


def checks_of(session: TrainSession, *, learn: bool = True) -> dict[str, tuple[bool, str]]:
    session.sample(lambda: None, 2, 2)
    checks = [*session.proof(), *(session.accuracy()[1] if learn else [])]
    return {check.name: (check.ok, check.found) for check in checks}


def trained(dtype: str, **knobs: str) -> dict[str, Any]:
    """Checks of a whole training, by name, and its notes."""
    session = opened(dtype, **knobs)
    return {"checks": checks_of(session), "notes": session.notes()}


class OfStock(CompiledTraining):
    """Compiles with torch's own backend."""

    def for_steps(self, network: Any) -> Any:
        compiled: Any = importlib.import_module("torch").compile(network)
        return compiled


def compiled(dtype: str, kind: type[CompiledTraining] = CompiledTraining, **knobs: str) -> dict[str, tuple[bool, str]]:
    return checks_of(kind(bench("flat", "train_compile", dtype, **knobs)), learn=kind is CompiledTraining)


def unfused(optimizer: Any) -> None:
    """Puts the step back that the optimizer had before IPEX replaced it."""
    optimizer.step = optimizer._original_step


def fused(optimizer: Any) -> None:
    """Gives an optimizer that IPEX leaves alone the step of another, which it fuses."""
    functional = importlib.import_module("intel_extension_for_pytorch.optim._functional")
    optimizer.params_attr, optimizer.fused = {}, True
    optimizer.step = types.MethodType(functional.adam_step, optimizer)


def whole(optimizer: Any) -> None:
    """Forgets of every weight that half of it lies here."""
    for attributes in optimizer.params_attr.values():
        if attributes.split:
            attributes.parameter_trail = None


def caught(dtype: str, name: str, lie: Callable[[Any], None]) -> list[str]:
    """The checks that fail after the optimizer was tampered with."""
    session = opened(dtype, optimizer=name)
    lie(session.optimizer)
    checks = session.bench.stack.proof_of_training(session.optimised, session.optimizer, session.bench)
    return [check.name for check in checks if not check.ok]


if __name__ == "__main__":
    results: dict[str, Any] = {
        f"{name}-{dtype}": trained(dtype, optimizer=name) for name in RATES for dtype in ("fp32", "bf16")
    }
    results["unfused"] = trained("fp32", optimizer="adam", fuse_update_step="off")
    by_name = {"level": "O0", "fuse_update_step": "on"}
    results["O0"] = trained("bf16", level="O0")
    results["O0, fused"] = trained("bf16", **by_name)
    results["O0, split"] = trained("bf16", **by_name, split_master_weight="on")
    results["liars"] = {
        "unfused adam": caught("fp32", "adam", unfused),
        "fused adamw": caught("fp32", "adamw", fused),
        "whole sgd": caught("bf16", "sgd", whole),
    }
    if facts.gather().compiler:
        results["compiled"] = {
            "sgd-fp32": compiled("fp32"),
            "adam-bf16": compiled("bf16", optimizer="adam"),
            "of stock": compiled("fp32", OfStock),
        }
    json.dump(results, sys.stdout)
