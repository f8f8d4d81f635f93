"""Stock PyTorch: autocast and TorchScript, nothing else. IPEX is never imported here: the import alone changes it."""

from __future__ import annotations

import sys
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Stack
from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError
from ipexperf.result import Check


class Stock(Stack):
    name = "stock"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        if cell.dtype == "int8":
            return "stock int8 quantisation is not built yet"
        if cell.dtype == "fp16" and cell.mode == "train" and cell.device == "cpu":
            return "fp16 training on a CPU skips every step of its gradient scaler: use bf16"
        return facts.missing("torch")

    def start(self) -> None:
        if "intel_extension_for_pytorch" in sys.modules:
            raise WorkerError("error", "IPEX is already imported, which changes stock PyTorch in this process")
        torch.get_num_threads()

    def for_inference(self, network: Any, dtype: str, example: Any) -> Any:
        del dtype, example
        return network

    def for_training(self, network: Any, optimizer: Any, dtype: str) -> tuple[Any, Any]:
        del dtype
        return network, optimizer

    def _untouched(self) -> list[Check]:
        found = "intel_extension_for_pytorch" in sys.modules
        return [Check("stack", not found, "IPEX imported" if found else "no IPEX in the process", "stock PyTorch")]

    def proof_of_inference(self, network: Any, dtype: str) -> list[Check]:
        del network, dtype
        return self._untouched()

    def proof_of_training(self, network: Any, optimizer: Any, dtype: str) -> list[Check]:
        del network, optimizer, dtype
        return self._untouched()


registry.stacks.add("stock", Stock())
