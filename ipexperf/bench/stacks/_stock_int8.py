"""Stock PyTorch's int8: FX graph mode quantisation for static, module swapping for dynamic."""

from __future__ import annotations

import importlib
import json
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Quantised, Workbench
from ipexperf.bench.artifacts.artifact import ENGINE
from ipexperf.bench.cell import Cell
from ipexperf.bench.lazy import torch


def why_not(cell: Cell) -> str | None:
    """Return why stock PyTorch cannot do this, or why it is not supported here, or None."""
    if not registry.devices.get(cell.device).quantizer:
        able = [name for name in registry.devices.names() if registry.devices.get(name).quantizer]
        return f"stock int8 is for {' and '.join(able)}: there is no PT2E quantizer for {cell.device}"
    if cell.device != "cpu" and registry.modes.get(cell.mode).artifact not in ("program", ""):
        return f"stock int8 on {cell.device} goes through torch.compile: use infer_compile"
    return None


def quantise(network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
    """Convert as documented by PyTorch for servers: the default engine with its qconfig."""
    torch.backends.quantized.engine = ENGINE
    quantization = importlib.import_module("torch.ao.quantization")
    if bench.knob("quantisation") == "dynamic":
        converted = quantization.quantize_dynamic(network, dtype=torch.qint8)
        return Quantised(converted, _scales(converted, "dynamic"), f"engine {ENGINE}, linear layers alone")
    fx = importlib.import_module("torch.ao.quantization.quantize_fx")
    prepared = fx.prepare_fx(network, _mapping(quantization, bench.model.answers), example)
    with torch.no_grad():
        for batch in batches:
            prepared(*batch)
    converted = fx.convert_fx(prepared)
    text = f"engine {ENGINE}, activations in 7 bits" + (", answers in 8" if bench.model.answers else "")
    return Quantised(converted, _scales(converted, "static"), text)


def _mapping(quantization: Any, answers: tuple[str, ...]) -> Any:
    """Return PyTorch's default mapping, except that answers keep 8 bits and a scale of their own."""
    mapping = quantization.get_default_qconfig_mapping(ENGINE)
    if answers:
        observer_of_8_bits = quantization.HistogramObserver.with_args(reduce_range=False)
        qconfig = quantization.QConfig(activation=observer_of_8_bits, weight=mapping.global_qconfig.weight)
        mapping.set_module_name_regex(rf"({'|'.join(answers)})\b.*", qconfig)
        # A quantised concatenation has one scale for all its inputs.
        mapping.set_object_type(torch.cat, None)
    return mapping


def _scales(converted: Any, quantisation: str) -> str:
    """Return engine, scales and zero points as JSON. Stock PyTorch has no file format for them."""
    scales = {
        name: value.tolist()
        for name, value in converted.state_dict().items()
        if isinstance(value, torch.Tensor) and ("scale" in name or "zero_point" in name) and not value.is_quantized
    }
    return (
        json.dumps({"engine": ENGINE, "quantisation": quantisation, "parameters": scales}, indent=1, sort_keys=True)
        + "\n"
    )
