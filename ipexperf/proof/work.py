"""The work of a step, independent of software: floating point operations.

It is counted on the host in the untouched network in fp32, because torch's counter sees nothing of packed or jitted
networks.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ipexperf.bench import shared
from ipexperf.bench.api import Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Tensors

Work = dict[str, int]
"""The counts of a step's work, by the names of their metrics."""


def counted_once(bench: Workbench, kind: str, make: Callable[[], Work]) -> Work:
    """Return `make()`. The first worker of a run counts the steps of this kind, the others load the result."""
    made_of = [kind, bench.mode.family, bench.case.batch, bench.case.knobs]
    return dict(shared.once(bench, "work", made_of, make))


def count(step: Callable[[], Any], network: Any) -> Work:
    """Count a step of an untouched network by torch's counter, and the elements of its parameters."""
    counter = importlib.import_module("torch.utils.flop_counter")
    flops = counter.FlopCounterMode(display=False, custom_mapping=_attention(counter))
    with torch.random.fork_rng(devices=[]), flops:
        step()
    parameters = sum(value.numel() for value in network.parameters())
    return {"step_flops": int(flops.get_total_flops()), "parameters": parameters}


def content(batch: Tensors) -> list[dict[str, Any]]:
    """Return what tells one batch from another: shape, mean and root mean square of each tensor."""
    values = [value.cpu().double() for value in batch]
    return [
        {"shape": [*value.shape], "mean": float(value.mean()), "rms": float(value.square().mean().sqrt())}
        for value in values
    ]


def _attention(counter: Any) -> dict[Any, Callable[..., int]]:
    """Formulas for the CPU's fused attention, which torch's counter lacks."""
    aten = torch.ops.aten

    def forward(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(counter.sdpa_flop_count(query, key, value))

    def backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(counter.sdpa_backward_flop_count(gradient, query, key, value))

    return {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,  # noqa: SLF001 - the name in the dispatcher
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,  # noqa: SLF001 - the same
    }
