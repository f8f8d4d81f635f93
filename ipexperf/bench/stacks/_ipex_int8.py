"""IPEX's int8: prepare, calibrate, convert. After tracing, oneDNN's graph compiler provides the kernels."""

from __future__ import annotations

import importlib
import json
from typing import Any

from ipexperf import scratch
from ipexperf.bench import registry
from ipexperf.bench.api import Quantised, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.knob import Knob
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import cpu_flags


def why_not(cell: Cell, knobs: tuple[Knob, ...]) -> str | None:
    """Return why IPEX cannot do this in int8, or why it is not supported here, or None."""
    if cell.device != "cpu":
        through = f"IPEX int8 on {cell.device} goes through torch's quantize_jit"
        return f"{through}, which is not supported here: int8 is for cpu"
    turned = [knob.name for knob in knobs if cell.knob(knob.name)]
    if turned:
        return f"int8 does not go through ipex.optimize: it has no knob {turned[0]}"
    kind = registry.modes.get(cell.mode).artifact
    if kind == "program":
        return f"IPEX int8 in {cell.mode} is not built: use infer_jit, or the stack stock"
    if kind == "state" and artifact.quantisation_of(cell) == "static":
        return "IPEX int8 computes in fp32 until it is traced: use infer_jit"
    return None


def quantise(network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
    """Convert with the vendor's qconfig, or on a CPU without VNNI with 7-bit activations, like stock PyTorch."""
    quantization = importlib.import_module("intel_extension_for_pytorch.quantization")
    if bench.knob("quantisation") == "dynamic":
        mapping = quantization.default_dynamic_qconfig_mapping
        converted = quantization.convert(quantization.prepare(network, mapping, example_inputs=example))
        observers = json.dumps({"quantisation": "dynamic", "qconfig": str(mapping.global_qconfig)}, indent=1) + "\n"
        return Quantised(converted, observers, "IPEX, linear layers alone")
    mapping, text = quantization.default_static_qconfig_mapping, "activations in 8 bits"
    if not cpu_flags() & artifact.VNNI:
        # 8 bits overflow if two products are added in 16 bits.
        ao = importlib.import_module("torch.ao.quantization")
        activation = ao.HistogramObserver.with_args(reduce_range=True)
        seven_bits = ao.QConfig(activation=activation, weight=mapping.global_qconfig.weight)
        mapping, text = ao.QConfigMapping().set_global(seven_bits), "no VNNI: activations in 7 bits"
    prepared = quantization.prepare(network, mapping, example_inputs=example)
    with torch.no_grad():
        for batch in batches:
            prepared(*batch)
    with scratch.folder("qconf") as folder:
        path = folder / "qconf.json"
        prepared.save_qconf_summary(str(path))
        observers = path.read_text()
    return Quantised(quantization.convert(prepared), observers, f"IPEX, {text}")
