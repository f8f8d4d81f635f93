"""Models for hosts of a fleet: one kills the process that measures it, one waits.

Loaded behind `fake.py`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from ipexperf.bench import registry

PATIENCE = 60.0


def model(name: str) -> Callable[[Callable[[], Callable[[], int]]], Callable[[], Callable[[], int]]]:
    return registry.model(name, size=1, batch_train=1, batch_infer=1, version=1, data="none", needs=(), trained=False)


def host() -> int:
    """The process that measures on this host: an ancestor of this worker."""
    pid = os.getpid()
    while b"ipexperf.tools.fleet.worker" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid


def step() -> int:
    return sum(number * number for number in range(2_000))


@model("fatal")
def fatal() -> Callable[[], int]:
    """The first host that measures it dies; `always` in the variable: each one."""
    mark = Path(os.environ["FLEET_MARK"])
    if os.environ.get("FLEET_FATAL") == "always" or not mark.exists():
        mark.write_text(str(host()))
        os.kill(host(), signal.SIGKILL)
        time.sleep(PATIENCE)
    return step


@model("patient")
def patient() -> Callable[[], int]:
    """Says that it began, and waits until it may go on."""
    mark, go = Path(os.environ["FLEET_MARK"]), Path(os.environ["FLEET_MARK"] + ".go")
    mark.write_text(str(host()))
    until = time.monotonic() + PATIENCE
    while not go.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return step
