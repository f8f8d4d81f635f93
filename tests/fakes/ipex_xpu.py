"""IPEX's own code for xpu on the fake card, in one process. Prints checks as JSON.

The wheel for CPUs has the Python side of `ipex.optimize` for xpu, and none of its kernels: fused steps of xpu are not
there. Fake tensors cannot follow a parameter whose data is replaced, so IPEX folds and casts nothing here.
"""

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
from ipexperf.bench.api import Workbench
from ipexperf.bench.cell import Settings
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu

Checks = dict[str, tuple[bool, str]]

SCENES: dict[str, tuple[str, dict[str, str]]] = {
    "infer": ("infer", {}),
    "infer, O0": ("infer", {"level": "O0"}),
    "infer, not folded": ("infer", {"conv_bn_folding": "off"}),
    "infer, packed": ("infer", {"weights_prepack": "on", "conv_bn_folding": "off"}),
    "train, not fused": ("train", {"fuse_update_step": "off"}),
}
"""The mode of each, and its knobs."""


def checks_of(workbench: Workbench, device: Xpu) -> Checks:
    """All that a session proves on the card, and its accuracy."""
    workbench.stack.start()
    session = workbench.mode.open(workbench)
    session.sample(device.synchronise, 2, 1)
    return bench_cases.as_json([*session.proof(), *device.proof(session.step, 1), *session.accuracy()[1]])


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
        for name, (mode, knobs) in SCENES.items():
            results[name] = checks_of(bench_cases.bench(bench_cases.network, mode, device, "ipex", **knobs), device)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
