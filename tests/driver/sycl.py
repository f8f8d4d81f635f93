"""torch's C++ for Intel GPUs, with the cards that SYCL finds: what Intel's driver tells of them, our commands hear.

Loaded by `--perf-load`. Computing is the fake card's: the driver runs without a card, and executes nothing.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import dpctl
import dpctl.utils
import pytest
from fake_xpu import Properties, install


@dataclass(frozen=True)
class Card(Properties):
    is_integrated_gpu: bool = False


class _LevelZero(ctypes.Structure):
    """The beginning of ze_device_properties_t, with room for the rest."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("type", ctypes.c_uint32),
        ("vendor", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("rest", ctypes.c_char * 512),
    )


def integrated() -> bool:
    """Whether the first device is part of the processor. SYCL does not tell."""
    ze = ctypes.CDLL("libze_loader.so.1")
    one, driver, device, told = ctypes.c_uint32(1), ctypes.c_void_p(), ctypes.c_void_p(), _LevelZero(kind=3)
    calls = (
        ze.zeInit(0),
        ze.zeDriverGet(ctypes.byref(one), ctypes.byref(driver)),
        ze.zeDeviceGet(driver, ctypes.byref(one), ctypes.byref(device)),
        ze.zeDeviceGetProperties(device, ctypes.byref(told)),
    )
    if any(calls):
        raise RuntimeError(f"Level Zero answers {calls}")
    return bool(told.flags & 1)


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
