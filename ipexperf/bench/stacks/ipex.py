"""Intel Extension for PyTorch: `ipex.optimize` as the vendor's guide writes it."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from ipexperf.bench import proof, registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Stack
from ipexperf.bench.lazy import torch
from ipexperf.bench.precision import torch_dtype
from ipexperf.errors import WorkerError
from ipexperf.result import Check

PACKAGE = "intel-extension-for-pytorch"
_AVX512 = {"avx512bw", "avx512vl", "avx512dq"}
_FUSED = {"SGD": "sgd_step", "Adagrad": "adagrad_step", "Adam": "adam_step", "Lamb": "lamb_step"}
_PREPACKED = "ipex_prepack::"


def version_mismatch(torch_version: str, ipex_version: str) -> str | None:
    """IPEX works with the torch of its own minor version; with another it ends in an unreadable AttributeError."""
    want, have = ipex_version.split(".")[:2], torch_version.split(".")[:2]
    if want == have:
        return None
    return f"IPEX {ipex_version} is built for torch {'.'.join(want)}, and torch {torch_version} is installed"


class Ipex(Stack):
    name = "ipex"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        absent = facts.missing("torch", PACKAGE)
        if absent:
            return absent
        mismatch = version_mismatch(str(facts.packages["torch"]), str(facts.packages[PACKAGE]))
        if mismatch:
            return mismatch
        if cell.device == "cuda":
            return "IPEX optimises for cpu and xpu, not for cuda"
        if cell.dtype == "int8":
            return "IPEX int8 quantisation is not built yet"
        return self._lacking(cell, facts.cpu_flags) if cell.device == "cpu" else None

    def _lacking(self, cell: Cell, flags: frozenset[str]) -> str | None:
        """What IPEX's weight prepacking demands of the CPU; without it `ipex.optimize` raises."""
        if "avx2" not in flags:
            return "IPEX needs a CPU with AVX2"
        if cell.dtype == "bf16" and not (flags >= _AVX512 or "avx_ne_convert" in flags):
            return "IPEX bf16 needs a CPU with AVX-512 (bw, vl, dq) or avx_ne_convert"
        if cell.dtype == "fp16" and not flags & {"avx512_fp16", "amx_fp16", "avx_ne_convert"}:
            return "IPEX fp16 needs a CPU with avx512_fp16 or avx_ne_convert"
        if cell.dtype == "fp16" and cell.mode == "train":
            return "fp16 training on a CPU skips every step of its gradient scaler: use bf16"
        return None

    def start(self) -> None:
        # The import's warnings go to the launch's log, which is where standard error and logging end in a worker.
        for name in ("torch.utils.cpp_extension", "IPEX"):
            logging.getLogger(name).setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module="intel_extension_for_pytorch.*")
        mismatch = version_mismatch(torch.__version__, importlib.metadata.version(PACKAGE))
        if mismatch:
            raise WorkerError("version_mismatch", mismatch)
        self._ipex = importlib.import_module("intel_extension_for_pytorch")

    def for_inference(self, network: Any, dtype: str, example: Any) -> Any:
        """Given an example, weights are packed for its shape: without one, eager fp32 was far slower than stock."""
        return self._ipex.optimize(network, dtype=torch_dtype(dtype), sample_input=example)

    def for_training(self, network: Any, optimizer: Any, dtype: str) -> tuple[Any, Any]:
        optimised, fused = self._ipex.optimize(network, optimizer=optimizer, dtype=torch_dtype(dtype))
        return optimised, fused

    def kernel_dtypes(self, step: Callable[[], Any], device: str) -> Counter[str]:
        """On the CPU from oneDNN's log, for prepacked weights hide the inputs from torch's profiler."""
        if device != "cpu":
            return proof.profiled_dtypes(step)
        module = importlib.import_module("intel_extension_for_pytorch.cpu.utils.verbose")
        return proof.logged_dtypes(step, module.verbose(module.VERBOSE_ON))

    def proof_of_inference(self, network: Any, dtype: str) -> list[Check]:
        del dtype
        packed = [m for m in network.modules() if type(m).__name__.startswith("_IPEX")]
        left = [m for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d)]
        return [
            Check("weights_prepack", bool(packed), f"{len(packed)} prepacked modules", "at least 1"),
            Check("conv_bn_folding", not left, f"{len(left)} BatchNorm modules", "0"),
        ]

    def proof_of_graph(self, graph: str, dtype: str) -> list[Check]:
        del dtype
        nodes = graph.count(_PREPACKED) - graph.count("_prepack_run")
        fused, alone = graph.count("_relu_run"), graph.count("aten::relu")
        return [
            Check("graph_prepack", nodes > 0, f"{nodes} {_PREPACKED} nodes", "at least 1"),
            Check("graph_fusion", fused > 0 or not alone, f"{fused} relu fused, {alone} alone", "relu fused, if any"),
        ]

    def proof_of_training(self, network: Any, optimizer: Any, dtype: str) -> list[Check]:
        del network
        step = getattr(getattr(optimizer.step, "__func__", None), "__qualname__", "a stock step")
        expected = _FUSED.get(type(optimizer).__name__, "")
        checks = [Check("fused_optimizer", step == expected, step, expected)]
        if dtype == "bf16":
            split = bool(getattr(optimizer, "params_attr", None))
            checks.append(Check("split_master_weight", split, "split" if split else "not split", "split"))
        return checks


registry.stacks.add("ipex", Ipex())
