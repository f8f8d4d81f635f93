"""What the tests of several rooms share: the fakes' file, and a look at whether a process is over."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from ipexperf.bench import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest_plugins = "pytester"

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("ipexperf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ipexperf")

FAKE = Path(__file__).parent / "fakes" / "fake.py"
REGISTRIES = (registry.devices, registry.stacks, registry.modes, registry.models, registry.datasets)


def _over(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"  # dead, and nobody has asked for its exit status yet


@pytest.fixture
def fake() -> str:
    """The file that registers the fakes, for `--perf-load` and Settings.load."""
    return str(FAKE)


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Whether a process ends within a few seconds."""

    def gone(pid: int, within: float = 8.0) -> bool:
        until = time.monotonic() + within
        while not _over(pid) and time.monotonic() < until:
            time.sleep(0.02)
        return _over(pid)

    return gone


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registries as they are shipped; what a test registers or loads is forgotten at its end."""
    loaded = set(sys.modules)
    for kind in REGISTRIES:
        kind.names()
        monkeypatch.setattr(kind, "_items", dict(kind._items))
    yield
    for name in set(sys.modules) - loaded:
        if name.startswith("ipexperf_loaded_"):
            del sys.modules[name]
