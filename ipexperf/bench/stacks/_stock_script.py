"""The lines of a user's script that use stock PyTorch, for each method of the stack."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell

_CALIBRATE = ("with torch.no_grad():", "    for batch in calibration:", "        prepared(*batch)")


def compiled(cell: Cell) -> tuple[str, ...]:
    """Return how a script compiles. Freezing is enabled globally: as an option of compile it has no effect."""
    frozen = cell.knob("freezing") != "off"
    imports = ("import torch._inductor.config", "torch._inductor.config.freezing = True") if frozen else ()
    return (*imports, *compiled_training(cell))


def compiled_training(cell: Cell) -> tuple[str, ...]:
    mode = ', mode="max-autotune-no-cudagraphs"' if cell.knob("max_autotune") == "on" else ""
    return (f"model = torch.compile(model{mode})",)


def quantise(cell: Cell) -> tuple[str, ...]:
    if artifact.quantisation_of(cell) == "dynamic" and registry.modes.get(cell.mode).artifact != "program":
        return (
            "from torch.ao.quantization import quantize_dynamic",
            "model = quantize_dynamic(model, dtype=torch.qint8)",
        )
    if registry.modes.get(cell.mode).artifact == "program":
        return _program(cell)
    return (
        "from torch.ao.quantization import get_default_qconfig_mapping",
        "from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx",
        f'torch.backends.quantized.engine = "{artifact.ENGINE}"',
        f'prepared = prepare_fx(model, get_default_qconfig_mapping("{artifact.ENGINE}"), inputs)',
        *_CALIBRATE,
        "model = convert_fx(prepared)",
    )


def _program(cell: Cell) -> tuple[str, ...]:
    tools = registry.devices.get(cell.device).quantizer
    arguments = "is_dynamic=True" if artifact.quantisation_of(cell) == "dynamic" else ""
    return (
        "from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e",
        f"from torchao.quantization.pt2e.quantizer import {tools}_inductor_quantizer as {tools}",
        f"configuration = {tools}.get_default_{tools}_inductor_quantization_config({arguments})",
        f"quantizer = {tools}.{tools.upper()}InductorQuantizer().set_global(configuration)",
        "prepared = prepare_pt2e(torch.export.export(model, inputs, strict=True).module(), quantizer)",
        *_CALIBRATE,
        "model = convert_pt2e(prepared)",
    )


METHODS = {
    "compiled": compiled,
    "compiled_training": compiled_training,
    "quantise": quantise,
}
"""The methods of the stack for which a script needs a line."""
