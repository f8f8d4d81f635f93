"""Intel GPUs (Arc, Flex, Max, Battlemage, Core Ultra), through torch's own XPU support or IPEX's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.devices import _fallbacks
from ipexperf.bench.devices._accelerator import Accelerator
from ipexperf.bench.devices._telemetry import XPU_SMI
from ipexperf.bench.machine import diagnosis, energy
from ipexperf.bench.machine import facts as facts_of_machine
from ipexperf.bench.machine.facts import Facts
from ipexperf.result import Check


class Xpu(Accelerator):
    name = "xpu"
    called = ("gpu", "intel", "arc")
    variable = "ZE_AFFINITY_MASK"
    vendor = diagnosis.INTEL
    properties = (
        "platform_name",
        "vendor",
        "type",
        "version",
        "device_id",
        "uuid",
        "architecture",
        "is_integrated_gpu",
        "max_compute_units",
        "gpu_eu_count",
        "gpu_subslice_count",
        "max_work_group_size",
        "max_num_sub_groups",
        "sub_group_sizes",
        "local_mem_size",
        "last_level_cache_size",
        "memory_clock_rate",
        "memory_bus_width",
        "has_fp64",
        "has_fp16",
        "has_bfloat16_conversions",
        "has_atomic64",
        "has_subgroup_matrix_multiply_accumulate",
        "has_subgroup_matrix_multiply_accumulate_tensor_float32",
        "has_subgroup_2d_block_io",
    )
    tool = XPU_SMI
    quantizer = "xpu"
    collective = "xccl"
    oneccl = True
    apart = "a container needs --cap-add SYS_PTRACE and -v /dev/dri:/dev/dri for oneCCL"

    def uncompiled(self, facts: Facts) -> str | None:
        """Triton builds its driver for Intel GPUs when it is first used."""
        return super().uncompiled(facts) or facts.lacks_header(facts_of_machine.HEADERS[0], "libze-dev and intel-ocloc")

    def energy_of(self, card: str | None, root: Path = Path("/")) -> energy.EnergyCounter | str:
        return energy.intel_card(card, root)

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        """Also check for operators that torch's XPU backend leaves to the CPU."""
        return [*super().proof(step, block), _fallbacks.check(_fallbacks.of_step(step))]


registry.devices.add("xpu", Xpu())
