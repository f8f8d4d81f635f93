"""The protocol loop: JSON lines in, JSON lines out. The controller decides what happens when.

Requests: prepare, environment, warm, sample, memory, proof, accuracy, weights, close. A reply is one line with
`ok` true or false; lines with `say` before it are progress. Whatever torch and C++ print goes to standard error.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from typing import IO, Any

from ipexperf.bench import environment, measure, registry
from ipexperf.bench.kinds import Device, Session, Settings, Workbench
from ipexperf.case import Case
from ipexperf.errors import UsageError, WorkerError

_PR_SET_PDEATHSIG = 1


class Worker:
    """One case in one process."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._session: Session | None = None
        self._device: Device | None = None
        self._block = 1

    @property
    def _ready(self) -> tuple[Session, Device]:
        if self._session is None or self._device is None:
            raise UsageError("nothing is prepared")
        return self._session, self._device

    def _bench(self, request: dict[str, Any]) -> Workbench:
        settings = Settings(**{**request["settings"], "load": tuple(request["settings"]["load"])})
        registry.load(settings.load)
        case = Case.from_json(request["case"])
        device, stack = registry.devices.get(case.device), registry.stacks.get(case.stack)
        # The stack first: what it loads (an OpenMP runtime, XPU support) decides what the device then finds.
        stack.start()
        device.start(settings)
        model, dataset = registry.models.get(case.model), registry.datasets.get(case.data)
        return Workbench(case, model, device, stack, dataset, settings, self._say)

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Builds the case and makes it ready to be stepped."""
        begin = time.perf_counter()
        bench = self._bench(request)
        imported = time.perf_counter() - begin
        bench.device.reset_peak_memory()
        begin = time.perf_counter()
        self._session = registry.modes.get(bench.case.mode).open(bench)
        self._device = bench.device
        bench.device.synchronise()
        return {"import_time": imported, "prepare_time": time.perf_counter() - begin}

    def weights(self, request: dict[str, Any]) -> dict[str, Any]:
        """Trains the case's model and saves its weights where the controller said."""
        from ipexperf.bench.weights import train

        return train(self._bench(request), request["path"])

    def warm(self, _: dict[str, Any]) -> dict[str, Any]:
        session, device = self._ready
        told = measure.warm(session.step, device.synchronise)
        self._block = int(told["block"])
        gc.collect()
        gc.freeze()  # what was built is not looked at again by a collection in the middle of a sample
        return told

    def sample(self, request: dict[str, Any]) -> dict[str, Any]:
        session, device = self._ready
        block = int(request.get("block", self._block))
        return {"samples": measure.sample(session.step, device.synchronise, request["count"], block), "block": block}

    def memory(self, _: dict[str, Any]) -> dict[str, Any]:
        """The peak since the case began to be built: asked for before the accuracy pass adds its own."""
        return {"peak_memory": self._ready[1].peak_memory()}

    def proof(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"checks": [asdict(check) for check in self._ready[0].proof()]}

    def accuracy(self, _: dict[str, Any]) -> dict[str, Any]:
        metrics, checks = self._ready[0].accuracy()
        return {"metrics": metrics, "checks": [asdict(check) for check in checks]}

    def environment(self, _: dict[str, Any]) -> dict[str, Any]:
        return environment.document(self._ready[1])


def outcome_of(error: BaseException) -> str:
    """Which of the launch's outcomes an exception is."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, WorkerError):
        return error.outcome
    if isinstance(error, MemoryError) or "OutOfMemory" in text or "can't allocate memory" in text:
        return "out_of_memory"
    if isinstance(error, ImportError):
        return "import_error"
    return "error"


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answers until the controller says close or goes away."""

    def write(document: dict[str, Any]) -> None:
        replies.write(json.dumps(document, allow_nan=False) + "\n")
        replies.flush()

    worker = Worker(lambda text: write({"say": text}))
    write({"ok": True, "pid": os.getpid(), "python": sys.executable})
    for line in requests:
        request = json.loads(line)
        if request["do"] == "close":
            write({"ok": True})
            return
        try:
            write({"ok": True, **getattr(worker, request["do"])(request)})
        except Exception as error:  # noqa: BLE001 - every failure becomes an outcome of this launch, with its reason
            traceback.print_exc()
            reason = str(error) or type(error).__name__
            if not isinstance(error, (UsageError, WorkerError)):
                reason = f"{type(error).__name__}: {reason}"
            write({"ok": False, "outcome": outcome_of(error), "reason": reason})


def main() -> None:
    """Keeps the protocol's pipe to itself, and dies with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if str(os.getppid()) != os.environ.get("IPEXPERF_CONTROLLER", str(os.getppid())):
            return  # the controller was gone before we could ask to be told of its end
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    quiet = os.open(os.devnull, os.O_RDONLY)
    os.dup2(quiet, 0)
    os.dup2(2, 1)
    serve(requests, replies)
    replies.flush()
    # No interpreter shutdown: torch's and OpenMP's destructors are known to hang, and nothing is left to save.
    os._exit(0)


if __name__ == "__main__":
    main()
