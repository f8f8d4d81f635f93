"""IPEX's runtime extension: a batch is split over streams, each a thread with its own cores."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ipexperf.errors import WorkerError


def over(network: Any, cores: Sequence[int], streams: int) -> Any:
    """Return streams as in the vendor's guide: the batch is split, and outputs are joined, along the images."""
    runtime = importlib.import_module("intel_extension_for_pytorch.cpu.runtime")
    if not runtime.is_runtime_ext_enabled():
        raise WorkerError(
            "error",
            "IPEX's runtime extension is off: Intel's OpenMP was not preloaded, and a launcher has to",
        )
    return runtime.MultiStreamModule(
        network,
        num_streams=streams,
        cpu_pool=runtime.CPUPool(list(cores)),
        input_split_hint=runtime.MultiStreamModuleHint(0),
        output_concat_hint=runtime.MultiStreamModuleHint(0),
    )


def parts(network: Any) -> list[int]:
    """Return the sizes that the module last gave to its streams. A single stream records nothing."""
    if network.get_stream_number() == 1:
        return []
    return [len(images) for (images,) in network.args_streams_input[: network.used_num_streams]]
