"""torchao: its quantised weights for decoders. It optimises nothing else on a CPU."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.stacks.stock import Stock
from ipexperf.errors import WorkerError

PACKAGE = "torchao"
OLDEST = (0, 13)
"""The first version whose layouts for CPUs we support."""


def version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    major, minor, *_ = text.split(".")
    return int(major), int(minor)


class Torchao(Stock):
    """Stock PyTorch whose linear layers torchao has quantised."""

    name = "torchao"
    by_name = True
    packs = ("int8", "int4", "da8w4")

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        kind = cell.knob("weights") or ""
        if kind not in self.packs:
            return f"torchao is here to quantise weights: choose how with --perf-knobs weights={','.join(self.packs)}"
        if kind == "int8" and registry.modes.get(cell.mode).graph != COMPILED:
            return (
                "torchao has no kernel for weights=int8 outside torch.compile and converts them in each step: "
                "choose the modes decode_compile and prefill_compile, or weights=int4"
            )
        if kind == "int8" and cell.dtype != "bf16":
            return f"inductor finds torchao's int8 weights in bf16 only, and converts them in each step in {cell.dtype}"
        absent = facts.missing("torch", PACKAGE)
        if absent:
            return absent
        installed = str(facts.packages[PACKAGE])
        if version(installed) < OLDEST:
            return f"torchao {installed} is too old: install torchao {'.'.join(map(str, OLDEST))} or later"
        return None

    def start(self) -> None:
        super().start()
        try:
            importlib.import_module("torchao.quantization")
        except Exception as error:
            torch_version = sys.modules["torch"].__version__
            reason = f"torchao cannot be imported beside torch {torch_version}: {error}"
            raise WorkerError("version_mismatch", f"{reason}: install the torchao of this torch") from error

    def _packing(self) -> Any:
        return importlib.import_module("ipexperf.bench.stacks._torchao_weights")


registry.stacks.add("torchao", Torchao())
