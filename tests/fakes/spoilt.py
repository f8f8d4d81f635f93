"""A small jitted network on IPEX under each injection: prints the checks of its proof that did not hold."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "bench"))

import bench_cases
import torch

from ipexperf.bench import registry
from ipexperf.bench.api import Settings
from ipexperf.bench.process import injections


def failed(injected: str) -> list[str]:
    made = bench_cases.bench(bench_cases.network, "infer_jit", registry.devices.get("cpu"), "ipex")
    with injections.opening(injected):
        session = made.mode.open(made)
    session.step()
    wrong = [check.name for check in session.proof() if not check.ok]
    session.close()
    return wrong


def main() -> None:
    registry.stacks.get("ipex").start()
    registry.devices.get("cpu").start(Settings(threads=1))
    freeze = torch.jit.freeze
    found = {name: failed(name) for name in ("", "unfrozen")}
    found["freeze"] = ["restored" if torch.jit.freeze is freeze else "lost"]
    found["unfused"] = failed("unfused")
    importlib.import_module("intel_extension_for_pytorch").enable_onednn_fusion(enabled=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
