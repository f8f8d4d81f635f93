"""Trains a small network through torch.compile on IPEX, and prints what every check found as JSON."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ipexperf.bench.api import Settings, Workbench
from ipexperf.bench.modes.train_compile import CompiledTraining
from ipexperf.bench.process.worker import workbench
from ipexperf.case import Case
from ipexperf.zoo.datasets.digits import Digits

SMALL = Path(__file__).parent / "small_training.py"


def bench(dtype: str, **knobs: str) -> Workbench:
    path, _ = Digits().find(None)
    settings = Settings(load=(str(SMALL),), threads=1, data_file=path, train_steps=100)
    case = Case("flat", "cpu", dtype, "train_compile", "ipex", 16, 8, 1, "digits", tuple(sorted(knobs.items())))
    return workbench({"case": case.to_json(), "settings": asdict(settings)}, lambda _: None)


class OfStock(CompiledTraining):
    """Compiles with torch's own backend."""

    def joined(self, network: Any) -> Any:
        compiled: Any = importlib.import_module("torch").compile(network)
        return compiled


def checks(session: CompiledTraining, *, learn: bool = True) -> dict[str, tuple[bool, str]]:
    session.sample(lambda: None, 2, 2)
    found = [*session.proof(), *(session.accuracy()[1] if learn else [])]
    return {check.name: (check.ok, check.found) for check in found}


def caught(kind: Callable[[Workbench], CompiledTraining]) -> list[str]:
    return [name for name, (ok, _) in checks(kind(bench("fp32")), learn=False).items() if not ok]


def main() -> None:
    found = {
        "sgd-fp32": checks(CompiledTraining(bench("fp32"))),
        "adam-bf16": checks(CompiledTraining(bench("bf16", optimizer="adam"))),
        "of stock": caught(OfStock),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
