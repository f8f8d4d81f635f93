"""Stock PyTorch: autocast and TorchScript. IPEX is never imported, because its import alone changes torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, TRAINING, Quantised, Stack, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.knob import Knob
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.stacks import _stock_int8, _stock_pt2e, _stock_script
from ipexperf.dtypes import DTYPES, needs_scaler, quantised
from ipexperf.errors import WorkerError
from ipexperf.proof import compilation
from ipexperf.result import Check

KNOBS = (
    Knob(
        "freezing",
        "weights become constants of the compiled code",
        modes=(COMPILED,),
        # Inductor lowers the patterns of int8 only where weights are constants.
        dtypes=tuple(name for name in DTYPES if not quantised(name)),
        barred={TRAINING: "training changes the weights, so they are no constants"},
    ),
    Knob("max_autotune", "inductor times several kernels and takes the fastest", ("off", "on"), modes=(COMPILED,)),
)


class Stock(Stack):
    name = "stock"
    called = ("pytorch", "torch", "eager", "inductor")
    knobs = KNOBS
    scripts = _stock_script.METHODS
    packs: tuple[str, ...] = ("int8", "int4")

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        if quantised(cell.dtype):
            why = _stock_int8.why_not(cell) or artifact.why_not(cell, facts) or facts.missing("torch")
            return why or _stock_pt2e.why_not(cell, facts)
        scaler = needs_scaler(cell.dtype) and registry.modes.get(cell.mode).trains
        if scaler and not facts.float64(cell.device):
            dtype, device = cell.dtype, cell.device
            return f"{dtype} training needs float64 for its gradient scaler, which this {device} lacks: use bf16"
        return facts.missing("torch")

    def start(self) -> None:
        if "intel_extension_for_pytorch" in sys.modules:
            raise WorkerError("error", "IPEX is already imported, which changes stock PyTorch in this process")
        torch.get_num_threads()

    def for_inference(self, network: Any, example: Any, bench: Workbench) -> Any:
        return network

    def compiled(self, network: Any, example: Any, bench: Workbench) -> Any:
        """Compile with inductor and freezing, which is enabled globally: as an option of compile it has no effect."""
        configuration: Any = importlib.import_module("torch._inductor.config")
        configuration.freezing = bench.knob("freezing") == "on"
        return self.compiled_training(network, bench)

    def compiled_training(self, network: Any, bench: Workbench) -> Any:
        mode = "max-autotune-no-cudagraphs" if bench.knob("max_autotune") == "on" else None
        return torch.compile(network, mode=mode)

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        quantise = _stock_pt2e.quantise if bench.mode.artifact == "program" else _stock_int8.quantise
        return quantise(network, example, batches, bench)

    def _packing(self) -> Any:
        """Import the module that packs weights, which imports torch."""
        return importlib.import_module("ipexperf.bench.stacks._stock_weights")

    def weight_only(self, network: Any, example: Any, bench: Workbench) -> Any:
        return self._packing().pack(network, bench.knob("weights"), int(bench.knob("weight_group")))

    def proof_of_weights(self, network: Any, step: Callable[[], Any], expected: int, bench: Workbench) -> list[Check]:
        return [*self._untouched(), *self._packing().proof(network, step, bench.knob("weights"), expected)]

    def for_training(self, network: Any, optimizer: Any, bench: Workbench) -> tuple[Any, Any]:
        return network, optimizer

    def _untouched(self) -> list[Check]:
        imported = "intel_extension_for_pytorch" in sys.modules
        return [
            Check("stack", not imported, "IPEX imported" if imported else "no IPEX in the process", "stock PyTorch")
        ]

    def proof_of_inference(self, network: Any, bench: Workbench) -> list[Check]:
        return self._untouched()

    def proof_of_code(self, network: Any, code: str, arguments: int, bench: Workbench) -> list[Check]:
        frozen = compilation.frozen(code, arguments, wanted=bench.knob("freezing") == "on")
        return [*self._untouched(), frozen, *self._tuned(network, bench)]

    def proof_of_compiled_training(self, network: Any, bench: Workbench) -> list[Check]:
        return self._tuned(network, bench)

    def _tuned(self, network: Any, bench: Workbench) -> list[Check]:
        """Return evidence that inductor was told to time kernels, if the case asks for it."""
        return [compilation.autotuned(network)] if bench.knob("max_autotune") == "on" else []

    def proof_of_training(self, network: Any, optimizer: Any, bench: Workbench) -> list[Check]:
        return self._untouched()


registry.stacks.add("stock", Stock())
