"""Inductor's real code for cards that are not here: graphs are lowered on fake tensors; nothing is compiled or run."""

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
import torch.utils._triton
from torch._inductor import config, decomposition, scheduler, select_algorithm
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime.hints import DeviceProperties
from torch._inductor.virtualized import V
from torch._subclasses import fake_tensor
from torch.fx.experimental.proxy_tensor import make_fx

LIMITS = {
    "multi_processor_count": 132,
    "major": 8,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
    "warp_size": 32,
}
CARD = SimpleNamespace(**LIMITS, minor=0, total_memory=2**34, gpu_subslice_count=32, max_work_group_size=1024, name="")


def generated(device: str, network: Callable[..., Any], *shapes: tuple[int, ...], templates: bool = False) -> str:
    """The Python code that inductor writes for these inputs. `templates`: it takes its own for products of matrices."""
    pytest.importorskip("triton")
    hints = DeviceProperties(type=device, index=0, cc=80, **LIMITS)
    api = getattr(torch, device)
    told: dict[Any, dict[str, Any]] = {
        fake_tensor: {"init_gpu_context": lambda *_: None},
        torch.utils._triton: {"triton_hash_with_backend": lambda: ""},
        scheduler: {"has_triton": lambda: True},
        DeviceProperties: {"create": classmethod(lambda *_: hints)},
        api: {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "get_device_properties": lambda *_: CARD,
            "get_device_capability": lambda *_: (8, 0),
            "_lazy_init": lambda: None,
        },
    }
    wanted = {"max_autotune_gemm": templates, "max_autotune_gemm_backends": "TRITON" if templates else "ATEN"}
    if templates:  # which of them is quickest cannot be tried here
        told[select_algorithm.AlgorithmSelectorCache] = {
            "__call__": lambda _, __, many, *___, **____: many[0].output_node()
        }
    with contextlib.ExitStack() as stack:
        for owner, names in told.items():
            for name, value in names.items():
                stack.enter_context(mock.patch.object(owner, name, value))
        stack.enter_context(config.patch(**wanted))
        mode = stack.enter_context(fake_tensor.FakeTensorMode())
        inputs = [torch.empty(shape, device=device) for shape in shapes]
        traced = make_fx(network, decomposition_table=decomposition.select_decomp_table())(*inputs)
        graph = GraphLowering(traced, example_inputs=inputs)
        for handler in (V.set_graph_handler(graph), V.set_fake_mode(mode), V.set_debug_handler(DebugContext())):
            stack.enter_context(handler)
        graph.run(*inputs)
        return str(graph.codegen()[0].value)
