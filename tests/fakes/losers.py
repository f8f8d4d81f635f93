"""A device that gets lost, and models that lose it. Loaded after fake.py, whose mode and stack they use."""

import os
import resource
import sys
from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry

LOST = "level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"
FULL = "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"


class Lossy(type(registry.devices.get("fake"))):  # type: ignore[misc]
    """An accelerator, as far as the controller knows."""

    name = "lossy"
    accelerator = True


registry.devices.add("lossy", Lossy())


def model(name: str) -> Callable[[Any], Any]:
    return registry.model(name, size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)


def _abort(words: str) -> None:
    """Ends as C++ does that lets an exception go."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stderr.write(f"terminate called after throwing an instance of 'sycl::_V1::exception'\n  what():  {words}\n")
    sys.stderr.flush()
    os.abort()


@model("loses")
def loses() -> Any:
    def step() -> int:
        raise RuntimeError(LOST)

    return step


@model("aborts_lost")
def aborts_lost() -> Any:
    return lambda: _abort(LOST)


@model("aborts_full")
def aborts_full() -> Any:
    return lambda: _abort(FULL)
