"""Silent slowdowns, injected into workers by the variable INJECTED. Loaded with --perf-load.

Each is a small change of what the suite does. Without the variable nothing changes.
"""

import importlib
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.modes import _inference
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.bench.modes.infer_jit import JitSession


def not_frozen() -> None:
    """Keep the weights outside of the traced graph."""
    trace = JitSession.trace

    def traced(self: JitSession, network: Any, example: Any) -> Any:
        frozen, torch.jit.freeze = torch.jit.freeze, lambda network: network
        try:
            return trace(self, network, example)
        finally:
            torch.jit.freeze = frozen

    JitSession.trace = traced


def fusion_off() -> None:
    """Turn off IPEX's fusion in graphs."""
    trace = JitSession.trace

    def traced(self: JitSession, network: Any, example: Any) -> Any:
        importlib.import_module("intel_extension_for_pytorch").enable_onednn_fusion(enabled=False)
        return trace(self, network, example)

    JitSession.trace = traced


def _behind_first_relu(work: Callable[[Any], Any]) -> None:
    """Do additional work on the output of the first relu."""
    placed = InferenceSession.placed

    def with_hook(self: InferenceSession) -> Any:
        network = placed(self)
        relu = next(module for module in network.modules() if isinstance(module, torch.nn.ReLU))
        relu.register_forward_hook(lambda _, __, answer: work(answer))
        return network

    InferenceSession.placed = with_hook


def copy() -> None:
    """Copy images to another layout and back."""
    _behind_first_relu(lambda images: images.contiguous().contiguous(memory_format=torch.channels_last))


def cast() -> None:
    """Cast images to bf16 and back."""
    _behind_first_relu(lambda images: images.to(torch.bfloat16).to(torch.float32))


def observer() -> None:
    """Observe the range of values."""

    def watched(images: Any) -> Any:
        images.aminmax()
        return images

    _behind_first_relu(watched)


def reloading() -> None:
    """Load the weights in each step."""
    step = InferenceSession.step

    def loading(self: Any) -> None:
        if not hasattr(self, "kept"):
            self.kept = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.network.load_state_dict(self.kept)
        step(self)

    InferenceSession.step = loading


def autocast_off() -> None:
    """Compute a bf16 case in fp32."""
    _inference.autocast = lambda *_, **__: nullcontext()


INJECTIONS = {one.__name__: one for one in (not_frozen, fusion_off, copy, cast, observer, reloading, autocast_off)}

if "INJECTED" in os.environ:
    INJECTIONS[os.environ["INJECTED"]]()
