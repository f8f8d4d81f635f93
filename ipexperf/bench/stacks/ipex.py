"""Intel Extension for PyTorch: `ipex.optimize` as in the vendor's guide."""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import logging
import re
import warnings
from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, EXPORTED, Kernel, Quantised, Stack, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.precision import torch_dtype
from ipexperf.bench.stacks import (
    _ipex_int8,
    _ipex_knobs,
    _ipex_script,
    _ipex_weights,
)
from ipexperf.dtypes import quantised
from ipexperf.errors import WorkerError
from ipexperf.proof import compilation, label
from ipexperf.result import Check

PACKAGE = "intel-extension-for-pytorch"
_AVX512 = {"avx512bw", "avx512vl", "avx512dq"}
_PREPACKED = "ipex_prepack::"
_FUSED_ON_XPU = re.compile(r"\b(?:xpu|torch_ipex)::\w*relu\w*")
_PACKED_LINEAR = "_IPEXLinear"


def version_mismatch(torch_version: str, ipex_version: str) -> str | None:
    """Return an error if torch has another minor version than IPEX, which would fail with an obscure AttributeError."""
    want, have = ipex_version.split(".")[:2], torch_version.split(".")[:2]
    if want == have:
        return None
    return f"IPEX {ipex_version} is built for torch {'.'.join(want)}, and torch {torch_version} is installed"


class Ipex(Stack):
    name = "ipex"
    packs = ("int8", "int4")
    _pairs = 0
    """Number of linear layers followed by BatchNorm before optimising."""
    _norms = 0
    """Number of BatchNorm modules for images before optimising."""
    knobs = _ipex_knobs.KNOBS
    scripts = _ipex_script.METHODS
    replaces_on = ("cpu",)  # merged bags and the interaction are in the build for CPUs alone

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        absent = facts.missing("torch", PACKAGE)
        if absent:
            return absent
        installed = str(facts.packages[PACKAGE])
        if mismatch := version_mismatch(str(facts.packages["torch"]), installed):
            return mismatch
        if cell.device not in _ipex_knobs.FUSED:
            return f"IPEX optimises for {' and '.join(_ipex_knobs.FUSED)}, not for {cell.device}"
        if not installed.endswith(_ipex_knobs.BUILDS.get(cell.device, "")):
            index = "https://pytorch-extension.intel.com/release-whl/stable/xpu/us/"
            return f"IPEX {installed} is the build for CPUs: install that for GPUs from {index}"
        if registry.modes.get(cell.mode).graph == EXPORTED:
            return "IPEX has no export path of its own: torch.export of a network is stock PyTorch's"
        if quantised(cell.dtype):
            return artifact.why_not(cell, facts) or _ipex_int8.why_not(cell, self.knobs)
        if registry.modes.get(cell.mode).trains and (cell.device, cell.dtype) in _ipex_knobs.UNTRAINED:
            return _ipex_knobs.UNTRAINED[cell.device, cell.dtype]
        packed = cell.knob("weights") in self.packs
        if packed and registry.modes.get(cell.mode).graph == COMPILED:
            return "packed weights of IPEX are not built for torch.compile: its graph would break at every layer"
        if packed and (unpacked := _unpacks(cell, facts.cpu_flags)):
            return unpacked
        lacking = self._lacking(cell, facts.cpu_flags) if cell.device == "cpu" else None
        return lacking or _why_no_knob_of_linear_layers(cell)

    def _lacking(self, cell: Cell, flags: frozenset[str]) -> str | None:
        """Return what the CPU lacks for IPEX's weight prepacking, without which `ipex.optimize` raises."""
        if "avx2" not in flags:
            return "IPEX needs a CPU with AVX2"
        if registry.modes.get(cell.mode).trains and not _ipex_knobs.on(cell, "weights_prepack"):
            return None
        if registry.modes.get(cell.mode).graph == COMPILED and cell.dtype == "bf16":
            return None
        if cell.dtype == "bf16" and not (flags >= _AVX512 or "avx_ne_convert" in flags):
            return "IPEX bf16 needs a CPU with AVX-512 (bw, vl, dq) or avx_ne_convert"
        if cell.dtype == "fp16" and not flags & {"avx512_fp16", "amx_fp16", "avx_ne_convert"}:
            return "IPEX fp16 needs a CPU with avx512_fp16 or avx_ne_convert"
        return None

    def start(self) -> None:
        # Warnings of the import go to the launch's log, like all standard error and logging in a worker.
        for name in ("torch.utils.cpp_extension", "IPEX"):
            logging.getLogger(name).setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module="intel_extension_for_pytorch.*")
        mismatch = version_mismatch(torch.__version__, importlib.metadata.version(PACKAGE))
        if mismatch:
            raise WorkerError("version_mismatch", mismatch)
        self._ipex = importlib.import_module("intel_extension_for_pytorch")

    def _prepared(self, bench: Workbench) -> dict[str, Any]:
        """Return the arguments of `ipex.optimize` for the knobs that this case sets."""
        if not bench.channels_last:
            # IPEX converts every network to channels last by default.
            self._ipex.disable_auto_channels_last()
        arguments: dict[str, Any] = {}
        for knob in self.knobs:
            if bench.turned(knob.name):
                value = bench.knob(knob.name)
                name = _ipex_script.ARGUMENTS.get(knob.name, knob.name)
                arguments[name] = value if knob.name == "level" else value == "on"
        return arguments

    def _on(self, name: str, bench: Workbench) -> bool:
        """Return True if the case asks `ipex.optimize` to do this."""
        if any(bench.mode.lacks(knob) for knob in self.knobs if knob.name == name):
            return False
        return bench.knob(name) == "on"

    def for_inference(self, network: Any, example: Any, bench: Workbench) -> Any:
        """Optimise with an example, to pack weights for its shape: without, eager fp32 was far slower than stock."""
        turned = self._prepared(bench)
        # Graph mode packs weights itself and does not accept an example.
        if bench.knob("graph_mode") == "off":
            turned["sample_input"] = example
        self._pairs, self._norms = _pairs(network), _norms(network)
        return self._ipex.optimize(network, dtype=torch_dtype(bench.case.dtype), **turned)

    def compiled(self, network: Any, example: Any, bench: Workbench) -> Any:
        """Compile as in the vendor's guide, without packed weights, at which the graph would break."""
        self._pairs, self._norms = _pairs(network), _norms(network)
        arguments = {"dtype": torch_dtype(bench.case.dtype), "weights_prepack": False, **self._prepared(bench)}
        return self.compiled_training(self._ipex.optimize(network, **arguments), bench)

    def compiled_training(self, network: Any, bench: Workbench) -> Any:
        return torch.compile(network, backend="ipex")

    def proof_of_compiled_training(self, network: Any, bench: Workbench) -> list[Check]:
        return self._proof_of_backend(network, bench)

    def proof_of_code(self, network: Any, code: str, arguments: int, bench: Workbench) -> list[Check]:
        checks = self._proof_of_backend(network, bench)
        return [*checks, *self.proof_of_inference(network._orig_mod, bench)]  # noqa: SLF001 - documented by torch

    def _proof_of_backend(self, network: Any, bench: Workbench) -> list[Check]:
        """Check that the backend is IPEX's and lowers through inductor, not TorchScript."""
        backend = compilation.backend(network)
        checks = [Check("compile_backend", backend.startswith(self._ipex.__name__), backend, "IPEX's own")]
        if bench.case.device == "cpu":
            way = self._ipex._get_compiler_backend()  # noqa: SLF001 - IPEX has no public API for it
            checks.append(Check("lowering", way == "inductor", way, "inductor"))
        return checks

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        return _ipex_int8.quantise(network, example, batches, bench)

    def weight_only(self, network: Any, example: Any, bench: Workbench) -> Any:
        return _ipex_weights.pack(network, example, bench)

    def proof_of_weights(self, network: Any, step: Callable[[], Any], expected: int, bench: Workbench) -> list[Check]:
        return _ipex_weights.proof(network, step, expected, bench)

    def for_training(self, network: Any, optimizer: Any, bench: Workbench) -> tuple[Any, Any]:
        arguments = {"dtype": torch_dtype(bench.case.dtype), **self._prepared(bench)}
        if bench.mode.graph == COMPILED:
            arguments["weights_prepack"] = False  # the graph would break at every packed layer
        return tuple(self._ipex.optimize(network, optimizer=optimizer, **arguments))

    def kernels(self, step: Callable[[], Any], bench: Workbench) -> list[Kernel]:
        """Return kernels from oneDNN's log on the CPU: prepacked weights hide the inputs from torch's profiler.

        Those of the profiler too: what another library computes, such as MKL or torch itself, is in no log.
        """
        profiled = label.profiled(step)
        if bench.case.device != "cpu":
            return profiled
        module = importlib.import_module("intel_extension_for_pytorch.cpu.utils.verbose")
        return [*label.logged(step, module.verbose(module.VERBOSE_ON)), *profiled]

    def proof_of_inference(self, network: Any, bench: Workbench) -> list[Check]:
        if quantised(bench.case.dtype):
            return []  # `ipex.optimize` was not used
        packed = sum(type(module).__name__.startswith("_IPEX") for module in network.modules())
        remaining_norms = _norms(network)
        text = f"{packed} prepacked modules"
        if bench.case.device == "cpu" and self._on("weights_prepack", bench):
            checks = [Check("weights_prepack", packed > 0, text, "at least 1")]
        else:
            checks = [Check("weights_prepack", packed == 0, text, "0: it is off")]
        if bench.case.device == "cpu":
            captured, expected = hasattr(network.forward, "__wrapped__"), self._on("graph_mode", bench)
            text = "forward is captured" if captured else "forward is the network's own"
            checks.append(Check("graph_mode", captured == expected, text, "on" if expected else "off"))
        if self._on("conv_bn_folding", bench):
            checks.append(Check("conv_bn_folding", remaining_norms == 0, f"{remaining_norms} BatchNorm modules", "0"))
        else:
            text = f"{remaining_norms} of {self._norms} BatchNorm modules are left"
            checks.append(Check("conv_bn_folding", remaining_norms == self._norms, text, "all: it is off"))
        # Torch's folding of convolutions includes linear layers.
        folds = self._on("linear_bn_folding", bench) or self._on("conv_bn_folding", bench)
        checks += _check_folding(network, self._pairs, bench, on=folds)
        return [*checks, *_check_kernels(network, bench, on=self._on("auto_kernel_selection", bench))]

    def proof_of_graph(self, graph: str, bench: Workbench) -> list[Check]:
        if quantised(bench.case.dtype):
            return []  # layers are fusions of oneDNN's graph compiler, which the mode counts
        if bench.case.device in _ipex_knobs.UNPACKED:
            # The names are from IPEX's sources: we have not run such a graph.
            fused, alone = len(_FUSED_ON_XPU.findall(graph)), graph.count("aten::relu")
            text = f"{fused} relu fused, {alone} alone"
            return [Check("graph_fusion", fused > 0 or not alone, text, "relu fused, if any")]
        nodes = graph.count(_PREPACKED) - graph.count("_prepack_run")
        fused, alone, plain = graph.count("_relu_run"), graph.count("aten::relu"), graph.count("mkl_sgemm_run")
        text = f"{fused} relu fused, {alone} alone" + (f", {plain} layers in MKL, which fuses none" if plain else "")
        return [
            Check("graph_prepack", nodes > 0, f"{nodes} {_PREPACKED} nodes", "at least 1"),
            Check("graph_fusion", fused > 0 or alone <= plain, text, "relu fused, if any"),
        ]

    def proof_of_training(self, network: Any, optimizer: Any, bench: Workbench) -> list[Check]:
        kind, kind_of = type(optimizer).__name__, _ipex_knobs.fused(bench.case.device)
        step = _function(optimizer.step)
        fuses = self._on("fuse_update_step", bench) and kind in kind_of
        if fuses:
            checks = [Check("fused_optimizer", step == kind_of[kind], f"{kind}: {step}", kind_of[kind])]
        else:
            # With master weights the step is a wrapper; the wrapped step must not be fused either.
            inner = _function(getattr(optimizer, "_original_step", optimizer.step))
            text = f"{kind}: {step}" if inner == step else f"{kind}: {step} around {inner}"
            alone = not {step, inner} & {*kind_of.values()}
            checks = [Check("fused_optimizer", alone, text, "a step that is not fused")]
        if bench.case.dtype == "bf16":
            # Every parameter that IPEX cast to bf16 is either split in two halves or has a master copy in fp32.
            attributes = getattr(optimizer, "params_attr", {}).values()
            cast = [parameter for parameter in attributes if getattr(parameter, "split", None) is not None]
            halves = sum(parameter.split and parameter.parameter_trail is not None for parameter in cast)
            masters = sum(not parameter.split and parameter.master_parameter is not None for parameter in cast)
            text = f"{halves} of {len(cast)} cast parameters split, {masters} with a master copy"
            if fuses and kind in _ipex_knobs.SPLIT[bench.case.device] and self._on("split_master_weight", bench):
                checks.append(Check("split_master_weight", 0 < halves == len(cast), text, "all split"))
            else:
                checks.append(Check("split_master_weight", 0 < masters == len(cast), text, "all with a master copy"))
        return [*checks, *_check_kernels(network, bench, on=self._on("auto_kernel_selection", bench))]

    def notes(self, bench: Workbench) -> list[str]:
        ignored = [knob.name for knob in self.knobs if bench.case.device in knob.ignored]
        if not ignored:
            return []
        text = ", ".join([*ignored, "sample_input"])
        return [f"IPEX takes {text} on {bench.case.device} and does nothing with them; it optimises in place"]

    def notes_of_training(self, optimizer: Any, bench: Workbench) -> list[str]:
        kind, device = type(optimizer).__name__, bench.case.device
        if kind in _ipex_knobs.fused(device):
            return []
        return [f"IPEX fuses no {kind} on {device}: its updates are stock PyTorch's"]


def _unpacks(cell: Cell, flags: frozenset[str]) -> str | None:
    """Return why IPEX's packed weights save nothing on this CPU, as was seen in traces of IPEX 2.8."""
    unpacks = f"IPEX unpacks weights={cell.knob('weights')} in each step, and multiplies in"
    if not flags >= _AVX512:
        return f"without AVX-512 {unpacks} {cell.dtype}"
    if cell.dtype == "bf16" and "amx_bf16" not in flags:
        return f"without AMX {unpacks} fp16"
    return None


def _norms(network: Any) -> int:
    """Count the modules of exactly torch's own classes: subclasses, which may do more, are not folded."""
    return sum(type(module) is torch.nn.BatchNorm2d for module in network.modules())


def _function(method: Any) -> str:
    """Return the name of the function behind a bound method, which IPEX replaces."""
    return str(getattr(getattr(method, "__func__", None), "__qualname__", type(method).__name__))


def _why_no_knob_of_linear_layers(cell: Cell) -> str | None:
    """Return why a knob of linear layers would have no effect in this cell, or None."""
    if _ipex_knobs.on(cell, "conv_bn_folding") and cell.knob("linear_bn_folding") == "off":
        return "linear_bn_folding=off changes nothing beside conv_bn_folding=on, which folds linear layers too"
    if cell.knob("auto_kernel_selection") == "on" and not _ipex_knobs.on(cell, "weights_prepack"):
        unpacked = "weights_prepack=off" if cell.knob("weights_prepack") else "level=O0"
        return f"auto_kernel_selection chooses the kernels of packed layers, and with {unpacked} there are none"
    return None


def _check_kernels(network: Any, bench: Workbench, *, on: bool) -> list[Check]:
    """Check that packed layers call oneDNN. If off, they call MKL in fp32; training then packs no such layers."""
    if bench.case.device != "cpu":
        return []
    packed = [module for module in network.modules() if type(module).__name__ == _PACKED_LINEAR]
    if not packed and not bench.turned("auto_kernel_selection"):
        return []
    in_onednn = sum(bool(module.use_dnnl) for module in packed)
    text = f"{in_onednn} of {len(packed)} packed linear layers call oneDNN"
    if on or bench.case.dtype != "fp32":
        return [Check("auto_kernel_selection", 0 < in_onednn == len(packed), text, "all, and at least 1")]
    return [Check("auto_kernel_selection", in_onednn == 0, text, "none: it is off")]


def _pairs(network: Any) -> int:
    """Count the BatchNorm modules that directly follow a linear layer in the order of the modules."""
    leaves = [module for module in network.modules() if not any(True for _ in module.children())]
    norms = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
    return sum(
        "Linear" in type(before).__name__ and isinstance(after, norms) for before, after in itertools.pairwise(leaves)
    )


def _check_folding(network: Any, untouched_pairs: int, bench: Workbench, *, on: bool) -> list[Check]:
    """Check that no pair of the untouched network remains, or that all remain if folding is off."""
    if not untouched_pairs and not bench.turned("linear_bn_folding"):
        return []
    remaining = _pairs(network)
    text = f"{remaining} of {untouched_pairs} BatchNorm modules behind a linear layer are left"
    if on:
        return [Check("linear_bn_folding", remaining == 0, text, "0")]
    return [Check("linear_bn_folding", 0 < remaining == untouched_pairs, text, "all, and at least 1: it is off")]


registry.stacks.add("ipex", Ipex())
