"""Small networks, and each of them spoilt in one way: prints the fingerprint of every one as JSON. Needs torch.

`injected.py stock`, `injected.py plain` for the first of its networks, or `injected.py ipex`: the import of IPEX
changes stock PyTorch, so each has a process of its own.
"""

import dataclasses
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.append(str(Path(__file__).parents[1] / "bench"))

import bench_cases
import torch

from ipexperf.bench import registry
from ipexperf.bench.api import Session
from ipexperf.bench.cell import Settings
from ipexperf.bench.modes import _inference
from ipexperf.proof import fingerprint

nn = torch.nn
SETTLED = 4
"""Steps after which a traced graph and oneDNN's caches stand."""


def layers(*between: Any) -> Callable[[], Any]:
    """Two convolutions with BatchNorm and relu, with something between them."""

    def build() -> Any:
        return nn.Sequential(
            *(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()),
            *between,
            *(nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(16 * 16, 10)),
        )

    return build


class Does(nn.Module):  # type: ignore[misc] # torch has no types here
    """A layer that does what it is given."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        super().__init__()
        self.work = work

    def forward(self, images: Any) -> Any:
        return self.work(images)


def turned(images: Any) -> Any:
    """A view that is not contiguous."""
    return images.transpose(2, 3)


def opened(
    stack: str, mode: str = "infer", build: Callable[[], Any] | None = None, dtype: str = "fp32", **knobs: str
) -> Session:
    knobs = {"channels_last": "on", **knobs}
    made = bench_cases.bench(build or layers(), mode, registry.devices.get("cpu"), stack, **knobs)
    made = dataclasses.replace(made, case=dataclasses.replace(made.case, dtype=dtype))
    return made.mode.open(made)


def capture(session: Session) -> dict[str, Any]:
    """The fingerprint of a settled session."""
    for _ in range(SETTLED):
        session.step()
    captured = fingerprint.of(session, registry.devices.get("cpu"))
    session.close()
    assert captured is not None
    return captured


def stepped(step: Callable[[], Any]) -> dict[str, Any]:
    """The fingerprint of a step that belongs to no case."""
    for _ in range(SETTLED):
        step()
    return fingerprint.capture(fingerprint.of_step(step, registry.devices.get("cpu")))


def quantised() -> tuple[dict[str, Any], dict[str, Any]]:
    """An int8 network, and the same with an observer that was left in it."""
    from torch.ao.quantization import MinMaxObserver, get_default_qconfig_mapping, quantize_fx

    images = torch.randn(16, 3, 8, 8)
    prepared = quantize_fx.prepare_fx(layers()().eval(), get_default_qconfig_mapping("x86"), (images,))
    prepared(images)
    network = quantize_fx.convert_fx(prepared)
    observed = nn.Sequential(MinMaxObserver(), network)

    def step(network: Any) -> Callable[[], Any]:
        def forward() -> Any:
            with torch.no_grad():
                return network(images)

        return forward

    return stepped(step(network)), stepped(step(observed))


def spoilt(stack: str, spoiling: AbstractContextManager[Any], caught: str) -> Session:
    """A session that is opened while something of it is lost, and whose proof says so."""
    with spoiling:
        session = opened(stack, "infer_jit")
    session.step()
    assert caught in [check.name for check in session.proof() if not check.ok]
    return session


def unfrozen() -> AbstractContextManager[Any]:
    return mock.patch.object(torch.jit, "freeze", lambda network, *_, **__: network)


def not_cast() -> dict[str, Any]:
    """A case in bf16 whose autocast was lost on the way."""
    with mock.patch.object(_inference, "autocast", return_value=nullcontext()):
        return capture(opened("stock", dtype="bf16"))


def of_stock() -> dict[str, Any]:
    plain, observed = quantised()
    return {
        "plain": capture(opened("stock")),
        "jit": capture(opened("stock", "infer_jit")),
        "not frozen": capture(spoilt("stock", unfrozen(), "jit")),
        "channels_last off": capture(opened("stock", channels_last="off")),
        "turned": capture(opened("stock", build=layers(Does(turned)))),
        "turned, contiguous": capture(opened("stock", build=layers(Does(lambda images: turned(images).contiguous())))),
        "cast": capture(
            opened("stock", build=layers(Does(lambda images: images.to(torch.bfloat16).to(torch.float32))))
        ),
        "bf16": capture(opened("stock", dtype="bf16")),
        "bf16, autocast off": not_cast(),
        "int8": plain,
        "int8, observed": observed,
    }


def of_plain() -> dict[str, Any]:
    return {"plain": capture(opened("stock"))}


def of_ipex() -> dict[str, Any]:
    ipex = sys.modules["intel_extension_for_pytorch"]
    fingerprints = {
        "plain": capture(opened("ipex")),
        "jit": capture(opened("ipex", "infer_jit")),
        "weights_prepack off": capture(opened("ipex", weights_prepack="off")),
        "conv_bn_folding off": capture(opened("ipex", conv_bn_folding="off")),
    }
    ipex.enable_onednn_fusion(enabled=False)  # last, for it is of the whole process
    return {**fingerprints, "fusion off": capture(spoilt("ipex", nullcontext(), "graph_fusion"))}


def main() -> None:
    word = sys.argv[1]
    registry.stacks.get("ipex" if word == "ipex" else "stock").start()
    registry.devices.get("cpu").start(Settings(threads=1))
    torch.manual_seed(0)
    print(json.dumps({"stock": of_stock, "plain": of_plain, "ipex": of_ipex}[word]()))


if __name__ == "__main__":
    main()
