"""Prove what IPEX did to linear layers: which library's kernels it chose, and whether it folded BatchNorm into them."""

from __future__ import annotations

import itertools
from typing import Any

from ipexperf.bench.api import Cell, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.stacks import _ipex_knobs
from ipexperf.result import Check

PACKED = "_IPEXLinear"


def why_not(cell: Cell) -> str | None:
    """Return why a knob of linear layers would have no effect in this cell, or None."""
    if _ipex_knobs.on(cell, "conv_bn_folding") and cell.knob("linear_bn_folding") == "off":
        return "linear_bn_folding=off changes nothing beside conv_bn_folding=on, which folds linear layers too"
    if cell.knob("auto_kernel_selection") == "on" and not _ipex_knobs.on(cell, "weights_prepack"):
        unpacked = "weights_prepack=off" if cell.knob("weights_prepack") else "level=O0"
        return f"auto_kernel_selection chooses the kernels of packed layers, and with {unpacked} there are none"
    return None


def check_kernels(network: Any, bench: Workbench, *, on: bool) -> list[Check]:
    """Check that packed layers call oneDNN. If off, they call MKL in fp32; training then packs no such layers."""
    packed = [module for module in network.modules() if type(module).__name__ == PACKED]
    if not packed and not bench.turned("auto_kernel_selection"):
        return []
    in_onednn = sum(bool(module.use_dnnl) for module in packed)
    text = f"{in_onednn} of {len(packed)} packed linear layers call oneDNN"
    if on or bench.case.dtype != "fp32":
        return [Check("auto_kernel_selection", 0 < in_onednn == len(packed), text, "all, and at least 1")]
    return [Check("auto_kernel_selection", in_onednn == 0, text, "none: it is off")]


def pairs(network: Any) -> int:
    """Count the BatchNorm modules that directly follow a linear layer in the order of the modules."""
    leaves = [module for module in network.modules() if not any(True for _ in module.children())]
    norms = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
    return sum(
        "Linear" in type(before).__name__ and isinstance(after, norms) for before, after in itertools.pairwise(leaves)
    )


def check_folding(network: Any, untouched_pairs: int, bench: Workbench, *, on: bool) -> list[Check]:
    """Check that no pair of the untouched network remains, or that all remain if folding is off."""
    if not untouched_pairs and not bench.turned("linear_bn_folding"):
        return []
    remaining = pairs(network)
    text = f"{remaining} of {untouched_pairs} BatchNorm modules behind a linear layer are left"
    if on:
        return [Check("linear_bn_folding", remaining == 0, text, "0")]
    return [Check("linear_bn_folding", 0 < remaining == untouched_pairs, text, "all, and at least 1: it is off")]
