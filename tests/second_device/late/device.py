"""The module `torch.late`, with the names that torch's own modules of devices have."""

import functools
import importlib
from types import SimpleNamespace
from typing import Any

import late_device as library
import torch
from torch import _tensor_str

Event = functools.partial(torch.Event, "late")
_LAYOUT = torch._C._conv_determine_backend_memory_format
_PRINTED = _tensor_str.tensor_totype


def _layout(images: torch.Tensor, weight: torch.Tensor, backend: Any) -> Any:
    """Say how a convolution lays out its answer. Torch's compiler asks it for its own devices alone."""
    last = [x.is_contiguous(memory_format=torch.channels_last) for x in (images, weight) if x.dim() == 4]
    if images.device.type == "late" and any(last):
        return torch.channels_last
    return _LAYOUT(images, weight, backend)


def _printed(tensor: torch.Tensor) -> torch.Tensor:
    """The dtype in which torch prints numbers: it knows of its own devices which have no float64."""
    return tensor.float() if tensor.device.type == "late" and not library.float64() else _PRINTED(tensor)


torch._C._conv_determine_backend_memory_format = _layout
_tensor_str.tensor_totype = _printed
# It has no fused attention, and torch would compute the plain one in float32.
torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(enabled=True)


def is_available() -> bool:
    return library.count() > 0


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None: ...


def init() -> None:
    if not is_available():
        raise RuntimeError("No late devices are available.")


def device_count() -> int:
    return int(library.count())


def current_device() -> int:
    return int(library.current())


def set_device(device: Any) -> None:
    library.choose(_index(device))


def synchronize(device: Any = None) -> None:
    library.wait(_index(device))


def get_device_name(device: Any = None) -> str:
    del device
    return "Late One"


def get_device_properties(device: Any = None) -> SimpleNamespace:
    del device
    return SimpleNamespace(
        name=get_device_name(), total_memory=library.capacity(), has_fp64=library.float64(), driver_version="1.0"
    )


def memory_allocated(device: Any = None) -> int:
    return int(library.held(_index(device)))


def max_memory_allocated(device: Any = None) -> int:
    return int(library.peak(_index(device)))


def max_memory_reserved(device: Any = None) -> int:
    return int(library.reserved(_index(device)))


def reset_peak_memory_stats(device: Any = None) -> None:
    library.reset_peak(_index(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    return int(library.capacity() - library.held(_index(device))), int(library.capacity())


def manual_seed(seed: int) -> None:
    """Do nothing: its random numbers are those of the host's generator, which torch seeds itself."""
    del seed


manual_seed_all = manual_seed


def get_rng_state(device: Any = None) -> torch.Tensor:
    del device
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    del device
    torch.set_rng_state(state)


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]


def _index(device: Any) -> int:
    if device is None:
        return current_device()
    return device if isinstance(device, int) else (torch.device(device).index or 0)


def __getattr__(name: str) -> Any:
    """Give inductor what writes code for the device. It asks for it by these names when it first compiles."""
    if name not in ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"):
        raise AttributeError(f"module 'torch.late' has no attribute '{name}'")
    return getattr(importlib.import_module("late.inductor"), name)
