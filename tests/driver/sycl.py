"""torch's C++ for Intel GPUs, with the cards that SYCL finds: what Intel's driver tells of them, our commands hear.

Loaded by `--perf-load`. Computing is the fake card's: the driver runs without a card, and executes nothing.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import dpctl
import dpctl.utils
import pytest
from fake_card import Ways
from fake_xpu import Properties, install


@dataclass(frozen=True)
class Card(Properties):
    is_integrated_gpu: bool = False


def integrated() -> bool:
    """Whether the first device is part of the processor. SYCL does not tell."""
    ze = ctypes.CDLL("libze_loader.so.1")
    one, driver, device = ctypes.c_uint32(1), ctypes.c_void_p(), ctypes.c_void_p()
    told = (ctypes.c_uint32 * 256)(3)  # ze_device_properties_t and its kind: eight words before what we do not read
    calls = (
        ze.zeInit(0),
        ze.zeDriverGet(ctypes.byref(one), ctypes.byref(driver)),
        ze.zeDeviceGet(driver, ctypes.byref(one), ctypes.byref(device)),
        ze.zeDeviceGetProperties(device, ctypes.byref(told)),
    )
    if any(calls):
        raise RuntimeError(f"Level Zero answers {calls}")
    return bool(told[7] & 1)


def properties(device: Any) -> Card:
    return Card(
        name=device.name,
        driver_version=device.driver_version,
        total_memory=device.global_mem_size,
        max_compute_units=device.max_compute_units,
        has_fp16=device.has_aspect_fp16,
        has_fp64=device.has_aspect_fp64,
        is_integrated_gpu=integrated(),
    )


found = dpctl.get_devices(backend="level_zero", device_type="gpu")
card = install(pytest.MonkeyPatch(), len(found))
card.others = [properties(device) for device in found]
if found:
    card.properties, *card.others = card.others
Ways(card).__enter__()
