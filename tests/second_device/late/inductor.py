"""How inductor writes code for the device: as for the CPU, because its memory is the host's."""

from typing import Any

import torch
from torch._dynamo import device_interface
from torch._inductor import config
from torch._inductor.codegen import common
from torch._inductor.codegen.cpp import CppScheduling as Scheduling
from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu as CppWrapperCodegen
from torch._inductor.codegen.cpu_device_op_overrides import CpuDeviceOpOverrides
from torch._inductor.codegen.wrapper import PythonWrapperCodegen as Plain
from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

__all__ = ["CppWrapperCodegen", "PythonWrapperCodegen", "Scheduling", "WrapperFxCodegen"]


class PythonWrapperCodegen(Plain):  # type: ignore[misc] # torch is not followed
    """Calls kernels as those of the CPU are called, without a stream."""

    @staticmethod
    def create(is_subgraph: bool, *more: Any) -> Any:  # noqa: FBT001 - torch's
        return Plain.create(is_subgraph, *more) if is_subgraph else PythonWrapperCodegen()

    def generate_kernel_call(self, *words: Any, **more: Any) -> None:
        super().generate_kernel_call(*words, **{**more, "device": torch.device("cpu")})


# Which code there is for a device of somebody's own, torch looks up under CUDA's name.
config.cuda_backend = "cpp"
# Code for CPUs is not reordered after fusion; torch asks the device's name, and later versions fail for ours.
for _name in ("loop_ordering_after_fusion", "loop_reindexing_after_fusion"):
    if hasattr(config, _name):
        setattr(config, _name, False)
device_interface.register_interface_for_device("late", device_interface.CpuInterface)
common.register_device_op_overrides("late", CpuDeviceOpOverrides())
