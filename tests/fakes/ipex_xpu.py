"""IPEX's own code for xpu on the fake card, in one process. Prints checks as JSON.

The wheel for CPUs has the Python side of `ipex.optimize` for xpu, and none of its kernels: fused steps of xpu are not
there. Fake tensors cannot follow a parameter whose data is replaced, so IPEX folds and casts nothing here. It does not
say that folding failed: our check has to.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

for folder in (".", "../bench"):
    sys.path.append(str(Path(__file__).parent / folder))

import bench_cases
import fake_card
import fake_xpu
import pytest

from ipexperf.bench import lazy, registry
from ipexperf.bench.api import Settings, Workbench
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.bench.stacks.ipex import Ipex

Checks = dict[str, tuple[bool, str]]

INFERENCE: dict[str, tuple[str, dict[str, str]]] = {
    "infer fp32": ("fp32", {}),
    "infer fp32, O0": ("fp32", {"level": "O0"}),
    "infer fp32, not folded": ("fp32", {"conv_bn_folding": "off"}),
    "infer fp32, packed": ("fp32", {"weights_prepack": "on", "conv_bn_folding": "off"}),
}
TRAINING: dict[str, tuple[str, dict[str, str]]] = {
    "train fp32 sgd, not fused": ("fp32", {"fuse_update_step": "off"}),
}


class DoesLess(Ipex):
    """Claims the default and leaves out what the names say."""

    def __init__(self, *left_out: str) -> None:
        super().__init__()
        self._left_out = dict.fromkeys(left_out, False)

    def _prepared(self, bench: Workbench) -> dict[str, Any]:
        return {**super()._prepared(bench), **self._left_out}


def bench(device: Xpu, mode: str, dtype: str, knobs: dict[str, str], stack: Ipex | None = None) -> Workbench:
    made = bench_cases.bench(bench_cases.network, mode, device, "ipex", **knobs)
    case = dataclasses.replace(made.case, dtype=dtype)
    return dataclasses.replace(made, case=case, stack=stack or made.stack)


def checks_of(workbench: Workbench, device: Xpu) -> Checks:
    """All that a session proves on the card, and its accuracy."""
    workbench.stack.start()
    session = workbench.mode.open(workbench)
    session.sample(device.synchronise, 2, 1)
    return bench_cases.told([*session.proof(), *device.proof(session.step, 1), *session.accuracy()[1]])


def main() -> None:
    os.environ["ZE_AFFINITY_MASK"] = "0"
    registry.stacks.get("ipex").start()  # IPEX looks at the real torch.xpu when it is imported
    card = fake_xpu.install(pytest.MonkeyPatch())
    lazy.torch.xpu.has_2d_block_array = lambda: False  # IPEX asks; torch has no such function
    device = Xpu()
    device.telemetry = Telemetry(Path(tempfile.gettempdir()), lambda _: None)
    device.start(Settings())
    results: dict[str, Any] = {}
    with fake_card.Ways(card):
        for scenes, mode in ((INFERENCE, "infer"), (TRAINING, "train")):
            for name, (dtype, knobs) in scenes.items():
                results[name] = checks_of(bench(device, mode, dtype, knobs), device)
        results["folds nothing"] = checks_of(bench(device, "infer", "fp32", {}, DoesLess("conv_bn_folding")), device)
        results["fuses nothing"] = checks_of(bench(device, "train", "fp32", {}, DoesLess("fuse_update_step")), device)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
