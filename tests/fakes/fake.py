"""A device, a stack, a mode, a dataset and models that need no torch, each model with a fault of its own.

Loaded with `--perf-load=tests/fakes/fake.py`, in the controller and in every worker.
"""

import ctypes
import importlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Mode, Session, Stack, Workbench
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Dataset, Examples, Split
from ipexperf.result import Check

Step = Callable[[], int]
TERMS = 2_000
"""A fraction of a millisecond of arithmetic: a round takes hundreds of steps that nobody times."""
SQUARES = (TERMS - 1) * TERMS * (2 * TERMS - 1) // 6
PEAK_MEMORY = 64 * 2**20


class FakeDevice(Device):
    name = "fake"

    def why_not(self, facts: Facts) -> str | None:
        return None

    def synchronise(self) -> None:
        """Nothing is ever left to do."""

    def put(self, value: Any) -> Any:
        return value

    def reset_memory(self) -> None:
        """The peak is a constant."""

    def memory(self) -> dict[str, float]:
        """What it holds is all of the peak, so many times."""
        held = int(PEAK_MEMORY * float(os.environ.get("FAKE_MEMORY", "1")))
        return {"peak_memory": float(PEAK_MEMORY), "held_memory": held}

    def peaks(self) -> dict[str, float]:
        if os.environ.get("FAKE_PEAKS") == "none":
            raise RuntimeError("no peak today")
        return {"fp32": float(os.environ.get("FAKE_PEAK", "1e12"))}


class PlainStack(Stack):
    name = "plain"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return None if cell.device == "fake" else "the plain stack runs on the fake device"

    def for_inference(self, network: Any, example: Any, bench: Workbench) -> Any:
        return network

    def for_training(self, network: Any, optimizer: Any, bench: Workbench) -> tuple[Any, Any]:
        return network, optimizer


class NoData(Dataset):
    name = "none"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        return __file__, None

    def read(self, path: str, size: int) -> Split:
        return Split(Examples((), ()), Examples((), ()))


class SpinSession(Session):
    """Calls what the model built, and holds its answer against the closed formula."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.answer: Step = bench.model.build()

    def step(self) -> None:
        self.answer()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        found = self.answer()
        error = abs(found - SQUARES) / SQUARES
        right = float(found == SQUARES)
        metrics = {"accuracy": right, "agreement": right, "fidelity": error}
        return metrics, [Check("fidelity", error <= 1e-12, f"{error:.2e}", "at most 1e-12")]

    def proof(self) -> list[Check]:
        ok = self.bench.case.model != "unproven"
        return [Check("dtype", ok, self.bench.case.dtype if ok else "a dtype nobody asked for", self.bench.case.dtype)]


class Spin(Mode):
    name = "spin"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return None if cell.device == "fake" else "spinning is for the fake device"

    def open(self, bench: Workbench) -> Session:
        return SpinSession(bench)


registry.devices.add("fake", FakeDevice())
registry.stacks.add("plain", PlainStack())
registry.modes.add("spin", Spin())
registry.datasets.add("none", NoData())


def model(name: str, *, version: int = 1) -> Callable[[Callable[[], Step]], Callable[[], Step]]:
    return registry.model(
        name, size=1, batch_train=1, batch_infer=1, version=version, data="none", needs=(), trained=False
    )


def spin() -> int:
    total = 0
    for number in range(TERMS):
        total += number * number
    return total


for name in ("tiny", "other", "unproven"):
    model(name)(lambda: spin)


def hang() -> int:
    while True:
        time.sleep(1000)


def tell_pids(*pids: int) -> None:
    """Writes the worker's pid and those given, in one step, where the test will look."""
    path = os.environ.get("FAKE_PID_FILE")
    if path:
        part = Path(f"{path}.part")
        part.write_text(" ".join(map(str, (os.getpid(), *pids))))
        part.replace(path)


@model("paced")
def paced() -> Step:
    """As slow as the installed version of a package says."""
    times = importlib.import_module("pace").TIMES

    def step() -> int:
        return [sum(number * number for number in range(TERMS)) for _ in range(times)][-1]

    return step


@model("wrong")
def wrong() -> Step:
    return lambda: spin() + 1_000_000_000


@model("hang")
def hanging() -> Step:
    def step() -> int:
        tell_pids()
        return hang()

    return step


@model("parent")
def parent() -> Step:
    def step() -> int:
        child = subprocess.Popen(["sleep", "1000"])
        tell_pids(child.pid)
        return hang()

    return step


@model("leader")
def leader() -> Step:
    """Its child leaves the worker's process group, as a shell's jobs do."""

    def step() -> int:
        child = subprocess.Popen(["sleep", "1000"], preexec_fn=os.setpgrp)  # noqa: PLW1509 - no thread is here yet
        tell_pids(child.pid)
        return hang()

    return step


@model("orphans")
def orphans() -> Step:
    """Dies of SIGKILL and leaves two children behind."""

    def step() -> int:
        children = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
        tell_pids(*(child.pid for child in children))
        os.kill(os.getpid(), signal.SIGKILL)
        return hang()

    return step


@model("daemon")
def daemon() -> Step:
    """Dies of SIGKILL and leaves a copy of itself behind, descriptors and all, in a session of its own."""

    def step() -> int:
        child = os.fork()
        if not child:
            os.setsid()
            time.sleep(1000)
            os._exit(0)
        tell_pids(child)
        os.kill(os.getpid(), signal.SIGKILL)
        return hang()

    return step


@model("hungry_child")
def hungry_child() -> Step:
    """Takes little itself; its child takes 256 MiB."""

    def step() -> int:
        child = subprocess.Popen([sys.executable, "-c", "import time; held = b'x' * 2**28; time.sleep(1000)"])
        tell_pids(child.pid)
        return hang()

    return step


def _die(number: int) -> Step:
    def step() -> int:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), number)
        return hang()

    return step


model("segfault")(lambda: _die(signal.SIGSEGV))
model("killed")(lambda: _die(signal.SIGKILL))


@model("eater")
def eater() -> Step:
    def step() -> int:
        raise MemoryError

    return step


@model("import_error")
def import_error() -> Step:
    importlib.import_module("a_module_that_nobody_has")
    return spin


@model("slow")
def slow() -> Step:
    def step() -> int:
        time.sleep(0.03)
        return spin()

    return step


@model("hoarding")
def hoarding() -> Step:
    """Keeps 1 MiB of each step."""
    kept: list[bytes] = []

    def step() -> int:
        kept.append(b"x" * 2**20)
        return spin()

    return step


@model("noisy_stdout")
def noisy_stdout() -> Step:
    os.write(1, b'{"ok": false, "outcome": "error", "reason": "garbage of C"}\ngarbage without an end')
    ctypes.CDLL(None).puts(b"garbage of libc")
    print("garbage of Python")
    sys.stdout.flush()
    return spin
