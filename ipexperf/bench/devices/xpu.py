"""Intel GPUs (Arc, Flex, Max, Battlemage, Core Ultra), through torch's own XPU support or IPEX's.

Operators that fall back from the card to the CPU are detected: torch warns about them at most once.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.devices._accelerator import Accelerator
from ipexperf.bench.devices._telemetry import XPU_SMI
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import cards, diagnosis
from ipexperf.bench.machine.facts import LEVEL_ZERO_H, Facts
from ipexperf.proof import profiler
from ipexperf.result import Check

_TO_CPU = "aten::_to_cpu"
"""The operator that torch's CPU fallback calls first on any backend, visible in the profiler."""
_NAMED = re.compile(r"The operator '(?P<op>[\w:.]+?)'?(?: is not currently supported)? ?on the XPU backend")
_UNNAMED = re.compile(r"fallback from XPU to CPU")
"""Warnings of torch-xpu-ops and of IPEX. The second appears once per process and names no operator."""
_SELECTOR, _NUMBERS = "ONEAPI_DEVICE_SELECTOR", re.compile(r"level_zero:(\d+(?:,\d+)*)")
"""SYCL's own choice of cards, and its form that names them by number."""
_HIERARCHY, _ORDER = "ZE_FLAT_DEVICE_HIERARCHY", "ZE_ENABLE_PCI_ID_DEVICE_ORDER"


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
    unreachable = "a container needs --cap-add SYS_PTRACE and -v /dev/dri:/dev/dri for oneCCL"

    def variables(self, index: int, environment: Mapping[str, str]) -> dict[str, str]:
        """Also let the selector select what the mask leaves: its numbers count those cards alone."""
        chosen = super().variables(index, environment)
        return {**chosen, _SELECTOR: "level_zero:*"} if _selected(environment) else chosen

    def allowed(self, environment: Mapping[str, str]) -> tuple[str, list[str]] | None:
        masked, numbers = super().allowed(environment), _selected(environment)
        if masked and _composite(environment):
            of_cards = itertools.groupby(masked[1], lambda name: name.partition(".")[0])
            masked = masked[0], [",".join(tiles) for _, tiles in of_cards]
        if not numbers:
            return masked
        names = dict(enumerate(masked[1])) if masked else {number: str(number) for number in numbers}
        return _SELECTOR, [names[number] for number in numbers if number in names]

    def card_number(self, chosen: str, environment: Mapping[str, str]) -> str:
        """Return the card that has the tile, where tiles are devices: they share its power and its clocks.

        The driver counts cards by their PCI addresses, and those in the processor last unless _ORDER is set.
        """
        number, found = super().card_number(chosen, environment), cards.intel_cards(self.telemetry.root)
        usual = sorted(found, key=lambda address: (cards.integrated(address), address))
        order = sorted(found) if environment.get(_ORDER, "0") != "0" else usual
        if not _composite(environment):
            order = [address for address in order for _ in range(cards.tiles(address, found[address]))]
        known = number.isdecimal() and int(number) < len(order)
        return str(usual.index(order[int(number)])) if known else number

    def uncompiled(self, facts: Facts) -> str | None:
        """Triton builds its driver for Intel GPUs when it is first used."""
        return super().uncompiled(facts) or facts.lacks_header(LEVEL_ZERO_H)

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        """Also check for operators that torch's XPU backend leaves to the CPU."""
        return [*super().proof(step, block), check_fallbacks(fallen_back(step))]


def _composite(environment: Mapping[str, str]) -> bool:
    """Whether the tiles of a card are one device."""
    return environment.get(_HIERARCHY) == "COMPOSITE"


def _selected(environment: Mapping[str, str]) -> list[int]:
    """The cards that SYCL's selector names by number."""
    match = _NUMBERS.fullmatch(environment.get(_SELECTOR, ""))
    return [int(number) for number in match[1].split(",")] if match else []


def warned(messages: list[str]) -> Counter[str]:
    """Return the operators that warnings name as fallen back, and a placeholder for unnamed ones."""
    counts: Counter[str] = Counter()
    for message in messages:
        if named := _NAMED.search(message):
            counts[named.group("op")] += 1
        elif _UNNAMED.search(message):
            counts["an operator without a name"] += 1
    return counts


def fallen_back(step: Callable[[], Any]) -> Counter[str]:
    """Run one step with the profiler and all warnings enabled. Return the operators that fell back, with counts."""
    with _every_warning() as messages, profiler.running("cpu") as profile:
        step()
    profiled = Counter(_owner(event) for event in profile.function_events if event.name == _TO_CPU)
    counts = warned([str(message.message) for message in messages])
    # Warnings tell less, or the same again: use them only if the profiler saw nothing.
    return profiled or counts


def _owner(event: Any) -> str:
    """Return the operator around the fallback in the profiler's trace."""
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if "::" in event.name:
            return str(event.name)
    return "an operator without a name"


@contextmanager
def _every_warning() -> Iterator[list[warnings.WarningMessage]]:
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as messages:
            warnings.simplefilter("always")
            yield messages
    finally:
        torch.set_warn_always(always)
        for message in messages:
            if not (_NAMED.search(str(message.message)) or _UNNAMED.search(str(message.message))):
                warnings.warn_explicit(message.message, message.category, message.filename, message.lineno)


def check_fallbacks(counts: Counter[str]) -> Check:
    text = ", ".join(f"{name} x{count}" for name, count in counts.most_common())
    return Check("fallbacks", not counts, f"on the CPU: {text}" if counts else "0", "0")


registry.devices.add("xpu", Xpu())
