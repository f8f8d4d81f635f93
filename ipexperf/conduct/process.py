"""The environment in which processes of ours run: what they inherit, what they are given, and where they begin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ipexperf import bench
from ipexperf.bench.environment import VARIABLES

BOOT = Path(bench.__file__).parent / "boot.py"
LAST_LINES = 15
LAST_BYTES = 2**16
"""So much of a log's end is looked at for its last lines."""
WAITING = {
    # A thread that waits must not burn the core of the worker whose turn it is (measured: 3 to 9 times slower). For a
    # moment it may: code of many short parallel regions was 8 times slower where it slept at once.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "30000",
    "KMP_BLOCKTIME": "1",
}
"""How threads of a worker wait, where nobody names a policy."""
QUIET = {
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    # IPEX imports inductor, which starts a process to compile with: seconds of another core beside the first samples.
    "TORCH_WARM_POOL": "0",
}

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""Whatever the shell says: a worker that waits for a download is no measurement, and nothing comes in silence."""


def variables_for(python: str | None, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process of ours: another interpreter must not find our packages in place of its own."""
    kept = {name: value for name, value in os.environ.items() if not (python and name == "PYTHONPATH")}
    return {**kept, **(variables or {})}


def quiet(told: Mapping[str, str]) -> dict[str, str]:
    """What keeps a worker still beside what it is told: whoever names a policy of waiting gets the whole of it."""
    return QUIET if "OMP_WAIT_POLICY" in told else {**WAITING, **QUIET}


def environment_of(python: str | None, variables: Mapping[str, str] | None, *, bare: bool = False) -> dict[str, str]:
    """The whole environment of a worker, or of the server that it is forked from.

    A bare one has none of the shell's variables that tune libraries: what they change would change it too.
    """
    found = variables_for(python, variables)
    kept = {name: value for name, value in found.items() if not (bare and VARIABLES.match(name))}
    return {**quiet(kept), **kept, **OFFLINE, "IPEXPERF_CONTROLLER": str(os.getpid())}


def last_lines(log: IO[bytes]) -> str:
    """The end of a log that others write."""
    # Without moving: they write where this file's one position is.
    size = os.fstat(log.fileno()).st_size
    told = os.pread(log.fileno(), LAST_BYTES, max(0, size - LAST_BYTES))
    return "\n".join(told.decode(errors="replace").splitlines()[-LAST_LINES:])
