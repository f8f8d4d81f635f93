"""The protocol loop: JSON lines in, JSON lines out. The controller decides what happens when.

Requests: prepare, yardstick, environment, warm, sample, serve, memory, proof, metrics, fingerprint, accuracy, weights,
quantise, footprint, imports, ceilings, pulse, close. A reply is one line with `ok` true or false; lines with `say`
before it are progress. Both have descriptors of their own, so that whatever torch and C++ print is in the log alone.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from ipexperf.bench import environment, facts, guard, heap, injections, measure, outcome, placement, precision, registry
from ipexperf.bench.kinds import Device, Session, Settings
from ipexperf.bench.workbench import Workbench
from ipexperf.case import Case
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Check

START = "start"
"""The knob of a case that says how its workers begin."""


def workbench(request: dict[str, Any], say: Callable[[str], None]) -> Workbench:
    """Everything that a request to prepare names, with the stack and the device started in this process."""
    settings = Settings(**{**request["settings"], "load": tuple(request["settings"]["load"])})
    registry.load(settings.load)
    case = Case.from_json(request["case"])
    device, stack = registry.devices.get(case.device), registry.stacks.get(case.stack)
    # The stack first: what it loads (an OpenMP runtime, XPU support) decides what the device then finds.
    stack.start()
    device.start(settings)
    model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
    return Workbench(case, model, device, mode, stack, registry.datasets.get(case.data), settings, say)


def started() -> str:
    """How this process began, as the kernel tells it: a forked one has the command line of its server."""
    return "fork" if re.search(rb"\0[^\0]*boot\.py\0server\0", Path("/proc/self/cmdline").read_bytes()) else "fresh"


def check_start(case: Case, *, forked: bool = False) -> list[Check]:
    """Check how this process began against what was asked. Nothing to check for a fresh one that should be fresh."""
    asked, found = "fork" if forked else dict(case.knobs).get(START, "fresh"), started()
    return [] if asked == found == "fresh" else [Check(START, asked == found, found, asked)]


class Worker:
    """One case in one process."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._session: Session | None = None
        self._device: Device | None = None
        self._block = 1
        self._cold = False
        self._placement: Mapping[str, Any] | None = None
        self._emulated: list[str] = []
        self._bench: Workbench | None = None
        self._pulses: dict[str, Any] = {}
        self._faults = heap.Faults()

    @property
    def _ready(self) -> tuple[Session, Device]:
        if self._session is None or self._device is None:
            raise UsageError("nothing is prepared")
        return self._session, self._device

    def _workbench(self, request: dict[str, Any]) -> Workbench:
        """The workbench of this process, which is placed first: what it imports finds the cores that it was given."""
        self._placement = request["settings"].get("placement")
        placement.apply(self._placement)
        self._bench = workbench(request, self._say)
        return self._bench

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Builds the case and makes it ready to be stepped."""
        begin = time.perf_counter()
        bench = self._workbench(request)
        imported = time.perf_counter() - begin
        bench.device.reset_peak_memory()
        begin = time.perf_counter()
        with injections.opening(bench.settings.injected):
            self._session = bench.mode.open(bench)
        injections.slow(self._session, bench.device.synchronise, bench.settings.injected)
        self._device = bench.device
        self._cold = bench.mode.cold
        self._emulated = precision.emulated(bench.case.device, bench.case.dtype, facts.cpu_flags())
        bench.device.synchronise()
        prepared = time.perf_counter() - begin
        heap.trim()
        return {
            # A forked worker had imported before it began: it has no such time.
            **({"import_time": imported} if started() == "fresh" else {}),
            "prepare_time": prepared,
            "items": self._session.items(bench.case.batch),
            "cold": bench.mode.cold,
        }

    def yardstick(self, request: dict[str, Any]) -> dict[str, Any]:
        """Becomes the yardstick that takes turns with a case, and says what it is made of."""
        from ipexperf.bench import yardstick

        placement.apply(request["placement"])
        threads = request["threads"] or len(placement.allowed())
        self._session = yardstick.Yardstick(request["work"], request["dtype"], threads)
        self._device = registry.devices.get("cpu")
        found = yardstick.packages()
        told = {"python": platform.python_version(), "packages": [name for name, _ in found]}
        return {"content": yardstick.content(found), **told}

    def imports(self, request: dict[str, Any]) -> dict[str, Any]:
        """Imports what any case of a stack on a device needs, and no more."""
        registry.load(tuple(request["load"]))
        registry.stacks.get(request["stack"]).start()
        registry.devices.get(request["device"]).start(Settings())
        return {}

    def weights(self, request: dict[str, Any]) -> dict[str, Any]:
        """Trains the case's model and saves its weights where the controller said."""
        from ipexperf.bench.weights import train

        return train(self._workbench(request), request["path"])

    def quantise(self, request: dict[str, Any]) -> dict[str, Any]:
        """Quantises the case's network and saves it where the controller said, with what it was made of beside it."""
        from ipexperf.bench.artifact import make

        return make(self._workbench(request), request["path"])

    def footprint(self, request: dict[str, Any]) -> dict[str, Any]:
        """Says what the case's network takes, without running the case."""
        from ipexperf.bench.footprint import look

        return dict(look(self._workbench(request)))

    def ceilings(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measures what this machine can do, on a device, without any case."""
        from ipexperf.bench import ceilings

        ceilings.free()
        settings = Settings(**{**request["settings"], "load": tuple(request["settings"]["load"])})
        registry.load(settings.load)
        placement.apply(settings.placement)
        device = registry.devices.get(request["device"])
        device.start(settings)
        return {"ceilings": device.ceilings(self._say)}

    def pulse(self, request: dict[str, Any]) -> dict[str, Any]:
        """Says how quick a device is just now, without any case. Its kernels are made when they are first asked for."""
        from ipexperf.bench.pulse import Pulse

        dtype = request["dtype"]
        if self._device is None:
            placement.apply(request["placement"])
            registry.load(tuple(request["load"]))
            device = registry.devices.get(request["device"])
            device.start(Settings(threads=request["threads"]))
            self._device = device
        if dtype not in self._pulses:
            self._pulses[dtype] = Pulse(self._device, dtype)
        return {"seconds": self._pulses[dtype].read()}

    def warm(self, _: dict[str, Any]) -> dict[str, Any]:
        session, device = self._ready
        told = measure.warm(session.step, device.synchronise)
        self._block = int(told["block"])
        gc.collect()
        gc.freeze()  # what was built is not looked at again by a collection in the middle of a sample
        return told

    def sample(self, request: dict[str, Any]) -> dict[str, Any]:
        """Times blocks of steps, after `warm` steps that count for nothing: another worker had the caches."""
        session, device = self._ready
        if warm := int(request.get("warm", 0)):
            session.sample(device.synchronise, 1, warm)
        block = int(request.get("block", self._block))
        with self._faults.watch(request["count"] * block):
            samples = session.sample(device.synchronise, request["count"], block)
        return {"samples": samples, "block": block}

    def serve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answers request after request from one moment to another, beside other workers that do the same."""
        session, device = self._ready
        return measure.serve(session.step, device.synchronise, request["at"], request["seconds"])

    def memory(self, _: dict[str, Any]) -> dict[str, Any]:
        """The peak of memory since the case began to be built, and the page faults per step.

        Asked for before the accuracy pass adds its own.
        """
        session, device = self._ready
        # Steps that run in other processes have their page faults there.
        faults = {} if session.elsewhere or not self._faults.steps else {"page_faults": self._faults.per_step}
        return {"peak_memory": session.peak_memory(device), **faults}

    def metrics(self, _: dict[str, Any]) -> dict[str, Any]:
        session, device = self._ready
        metrics = session.metrics()
        # What a device tells of warm steps says nothing of a cold start.
        if not (session.elsewhere or self._cold):
            metrics = {**metrics, **device.metrics(session.step, self._block)}
        faults = [] if session.elsewhere or self._cold else filter(None, [self._faults.note])
        return {"metrics": metrics, "notes": [*session.notes(), *device.notes(), *self._emulated, *faults]}

    def proof(self, _: dict[str, Any]) -> dict[str, Any]:
        session, device = self._ready
        # The device first: what a session's proof does on the device is no step of the case.
        checks = [] if session.elsewhere else device.proof(session.step, self._block)
        # Before the session's own: what that does to its threads is no part of what was measured.
        placed = [*placement.checks(self._placement), *self._start()]
        found = {} if self._placement is None else {"placement": placement.effect()}
        return {"checks": [asdict(check) for check in (*placed, *session.proof(), *checks)], **found}

    def _start(self) -> list[Check]:
        """Whether this process began as it was asked to."""
        return check_start(self._bench.case, forked=self._bench.settings.forked) if self._bench else []

    def fingerprint(self, _: dict[str, Any]) -> dict[str, Any]:
        """What ran: asked for in a pass of its own, when everything is measured and proven."""
        session, device = self._ready
        return {"fingerprint": session.fingerprint(device)}

    def accuracy(self, _: dict[str, Any]) -> dict[str, Any]:
        metrics, checks = self._ready[0].accuracy()
        return {"metrics": metrics, "checks": [asdict(check) for check in checks]}

    def environment(self, _: dict[str, Any]) -> dict[str, Any]:
        placed = {"placement": placement.effect()} if self._placement is not None else {}
        return {**environment.document(self._ready[1]), **placed}

    def flaw(self) -> str:
        """What is wrong with the network itself, after something failed, or an empty text."""
        from ipexperf.bench import trial

        return trial.flaw(self._bench) if self._bench else ""

    def close(self) -> None:
        """Ends what the session started, if there ever was one."""
        if self._session is not None:
            self._session.close()


def outcome_of(error: BaseException) -> str:
    """Which of the launch's outcomes an exception is."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, WorkerError):
        return error.outcome
    if isinstance(error, MemoryError):
        return "out_of_memory"
    if named := outcome.told(text):
        return named
    return "import_error" if isinstance(error, ImportError) else "error"


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
            worker.close()
            write({"ok": True})
            return
        try:
            write({"ok": True, **getattr(worker, request["do"])(request)})
        except Exception as error:  # noqa: BLE001 - every failure becomes an outcome of this launch, with its reason
            reason = str(error)
            if not isinstance(error, (UsageError, WorkerError)):
                traceback.print_exc()
                reason = outcome.sentence(error)
                if outcome_of(error) == "error":
                    reason = worker.flaw() or reason
            write({"ok": False, "outcome": outcome_of(error), "reason": reason})


def live(requests: int, replies: int, parent: str) -> None:
    """Has a guard beside it, answers over these descriptors, and dies with its parent: controller or fork server."""
    for descriptor in (requests, replies):
        os.set_inheritable(descriptor, False)  # what a worker starts must neither read nor answer
    if sys.platform == "linux":
        guard.die_with_parent(signal.SIGKILL)
        if str(os.getppid()) != parent:
            return  # the parent was gone before we could ask to be told of its end
        guard.start()  # now, while this process is small and has one thread
    serve(os.fdopen(requests, "r", encoding="utf-8"), os.fdopen(replies, "w", encoding="utf-8"))
    # No interpreter shutdown: torch's and OpenMP's destructors are known to hang, and nothing is left to save.
    os._exit(0)


def main() -> None:
    """Takes the descriptors that the controller opened for it."""
    live(int(sys.argv[1]), int(sys.argv[2]), os.environ.get("IPEXPERF_CONTROLLER", str(os.getppid())))


if __name__ == "__main__":
    main()
