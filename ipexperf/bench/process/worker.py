"""The protocol loop: JSON lines in, JSON lines out. The controller decides what happens when.

Requests: begin, prepare, environment, warm, sample, serve, usage, source, proof, fingerprint,
trace, accuracy, weights, quantise, footprint, imports, modules, machine, peaks, session, close. A reply is
one line with `ok` true or false; lines with `say` before it are progress. Requests and replies have their own
descriptors, so that output of torch and C++ only goes to the log.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from ipexperf.bench import declaration, lazy, loading, measure, precision, registry
from ipexperf.bench.api import Session, Workbench
from ipexperf.bench.cell import Settings
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.declaration import answer
from ipexperf.bench.device import Device
from ipexperf.bench.machine import facts, heap, placement, source
from ipexperf.bench.process import environment, guard
from ipexperf.bench.process.line import Line
from ipexperf.case import NetworkCase
from ipexperf.errors import WorkerError
from ipexperf.proof import fingerprint
from ipexperf.result import METRICS, Check
from ipexperf.variables import CONTROLLER

SETTLE_SECONDS = 0.5
"""The longest wait for work of its own that outlives a turn. It would slow the other arm's."""
RESTLESS = "goes on working after its steps, in threads or children of its own, which slows the other arm's turns too"


def workbench(request: dict[str, Any], say: Callable[[str], None]) -> Workbench:
    """Return the workbench for a request, after starting its stack and device in this process."""
    settings = Settings.of(request["settings"])
    loading.load(settings.load)
    case = NetworkCase.from_json(request["case"])
    device, stack = registry.devices.get(case.device), registry.stacks.get(case.stack)
    # The stack first: it may load an OpenMP runtime or XPU support, which the device needs.
    stack.start()
    device.start(settings)
    # Before anything is timed: the import of IPEX brings packages that a model on stock would import in its start.
    lazy.import_packages(registry.models.get(case.model).needs)
    return registry.workbench(case, settings, say)


def _started(name: str, settings: Settings) -> Device:
    """Return the device of this name, started in this process."""
    device = registry.devices.get(name)
    device.start(settings)
    return device


def started() -> str:
    """Return how this process was started. A forked one has the command line of its server."""
    return "fork" if re.search(rb"\0[^\0]*boot\.py\0server\0", Path("/proc/self/cmdline").read_bytes()) else "fresh"


def check_start(*, forked: bool) -> list[Check]:
    """Return the check that this process was forked or fresh, as requested. Empty if it is fresh, as by default."""
    expected, actual = "fork" if forked else "fresh", started()
    return [] if expected == actual == "fresh" else [Check("start", expected == actual, actual, expected)]


class Worker:
    """One case in one process."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._say = line.say
        self._session: Session | None = None
        self._device: Device | None = None
        self._block = 1
        self._placement: Mapping[str, Any] | None = None
        self._bench: Workbench | None = None
        self._usage = heap.StepUsage()
        self._growth = heap.Growth()
        self._settles = True
        """Whether its process has nothing left to do soon after each turn."""
        self._alone = True
        """Whether its case is all that the process runs."""
        self._forked = False
        """Whether its process is to be forked."""

    @property
    def _begun(self) -> Workbench:
        assert self._bench is not None  # noqa: S101 - the controller asks `begin` first
        return self._bench

    @property
    def _ready(self) -> tuple[Session, Device]:
        assert self._session is not None and self._device is not None  # noqa: PT018, S101 - after `prepare`
        return self._session, self._device

    def _workbench(self, request: dict[str, Any]) -> Workbench:
        """Apply the placement, then return the workbench: imports must see the assigned cores."""
        self._placement = request["settings"].get("placement")
        placement.apply(self._placement)
        self._bench = workbench(request, self._say)
        self._forked = self._bench.settings.forked
        return self._bench

    def begin(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import what the case needs, and start its device. Workers may do this side by side."""
        begin = perf_counter()
        self._workbench(request)
        # The server of a forked worker has imported everything before.
        return {"metrics": {"import_time": perf_counter() - begin} if started() == "fresh" else {}}

    def prepare(self, _: dict[str, Any]) -> dict[str, Any]:
        """Build the case and make it ready to run steps. It takes all cores, so workers do this one at a time."""
        bench = self._begun
        heap.shake()
        bench.device.reset_memory()
        begin = perf_counter()
        session = bench.mode.open(bench)
        if not isinstance(session, Session):
            whose = declaration.whose(bench.mode, "open")
            raise WorkerError("error", f"{whose} returned {session!r}, expected a Session")
        declaration.check_session(session)
        self._session, self._device = session, bench.device
        bench.device.synchronise()
        metrics = {"prepare_time": perf_counter() - begin}
        if session.compile_time is not None:
            metrics["compile_time"] = session.compile_time
        heap.trim()
        return {
            "metrics": metrics,
            "items": answer(Session, session, "items", bench.case.batch),
            "cold": bench.mode.cold,
        }

    def session(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a session of pytest, which stands still in each test that measures a function."""
        if importlib.util.find_spec("pytest") is None:
            # An environment that was made from a lock has what is measured, and not what measures.
            sys.path += request["tools"]
        from ipexperf.bench.process import session

        self._placement = request["settings"].get("placement")
        placement.apply(self._placement)
        loading.load(request["settings"]["load"])  # the device may be one of the user's own
        return session.run(request, self._line, self._standing)

    def _standing(self, session: Session, device: Device) -> Worker:
        """A worker for one test of a session of pytest."""
        measure.threads.begin()
        worker = Worker(self._line)
        worker._session, worker._device = session, device
        worker._placement, worker._alone = self._placement, False
        return worker

    def imports(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import what any case of a stack on a device needs."""
        loading.load(request["load"])
        registry.stacks.get(request["stack"]).start()
        _started(request["device"], Settings())
        return {}

    def machine(self, request: dict[str, Any]) -> dict[str, Any]:
        """Describe the machine as the cases of a device will report it, without any case."""
        loading.load(request["load"])
        return dict(environment.document(_started(request["device"], Settings()))["hardware"])

    def modules(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say where these modules and the tree's come from, the copies of what changed in it, and what is lent."""
        copied = source.copied(request["changed"])
        return {"modules": source.modules(request["names"]), "copied": copied, "lent": source.lent()}

    def source(self, _: dict[str, Any]) -> dict[str, Any]:
        """Say which of the user's files the process has by now: a step may import, load and read some too."""
        return source.document()

    def weights(self, request: dict[str, Any]) -> dict[str, Any]:
        """Train the case's model and save its weights."""
        from ipexperf.bench.artifacts.weights import train

        return train(self._workbench(request), request["path"])

    def quantise(self, request: dict[str, Any]) -> dict[str, Any]:
        """Quantise the case's network and save it with its recipe."""
        from ipexperf.bench.artifacts.artifact import make

        return make(self._workbench(request), request["path"])

    def footprint(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the footprint of the case's network, without running the case."""
        from ipexperf.bench.artifacts import footprint

        return asdict(footprint.measure(self._workbench(request)))

    def peaks(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measure the peak rates of a device. Needs no case."""
        from ipexperf.proof import peaks

        peaks.free()
        settings = Settings.of(request["settings"])
        loading.load(settings.load)
        placement.apply(settings.placement)
        device = _started(request["device"], settings)
        return {"peaks": device.peaks() or peaks.measure(device)}

    def warm(self, _: dict[str, Any]) -> dict[str, Any]:
        session, device = self._ready
        reply = measure.warm(session.step, device.synchronise, session.warm_limit)
        device.warmed()
        self._block = int(reply["block"])
        gc.collect()
        if self._alone:
            gc.freeze()  # keep garbage collections during samples short
        room = device.room()
        return {**reply, "taken": device.taken(), **({} if room is None else {"room": room})}

    def sample(self, request: dict[str, Any]) -> dict[str, Any]:
        """Time blocks of steps, after `warm` untimed steps, because another worker has filled the caches.

        Steps of one thread stay on the `core` that is given, if one is.
        """
        session, device = self._ready
        block = int(request.get("block", self._block))
        steps = request["count"] * block
        with placement.on(request.get("core") if measure.threads.alone else None):
            if warm := int(request.get("warm", 0)):
                session.sample(device.synchronise, 1, warm)
            with self._usage.watch(steps):
                samples = session.sample(device.synchronise, request["count"], block)
        self._settles = self._settles and measure.threads.settle(SETTLE_SECONDS)
        self._growth.after(steps)
        return {"samples": samples, "block": block, "alone": measure.threads.alone}

    def serve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer requests in a window of time, at the same time as other workers."""
        session, device = self._ready
        return measure.serve(session.step, device.synchronise, request["at"], request["seconds"])

    def usage(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return the memory since the case began to be built, and what the kernel counted in its steps."""
        session, device = self._ready
        # If other processes run the steps, the kernel counts there.
        counted = {} if session.elsewhere else self._usage.metrics
        # Asked directly, so that an error names the device's method and not the session's that calls it.
        if type(session).memory is Session.memory:
            memory = registered(device, "memory", answer(Device, device, "memory"))
        else:
            memory = registered(session, "memory", answer(Session, session, "memory", device))
        return {"metrics": {**memory, **counted}}

    def _of_mode_and_device(self) -> dict[str, Any]:
        """Return what the mode and the device measure beside the steps, and notes for readers of the numbers."""
        session, device = self._ready
        cold = emulated = False
        if self._bench is not None:  # a function is called many times, and promises no dtype
            case = self._bench.case
            cold, emulated = self._bench.mode.cold, precision.emulated(case.device, case.dtype, facts.cpu_flags())
        metrics = registered(session, "metrics", answer(Session, session, "metrics"))
        # Metrics of warm steps say nothing about a cold start, and other processes may run the steps.
        steps_here = not (session.elsewhere or cold)
        if steps_here:
            of_device = answer(Device, device, "metrics", session.step, self._block)
            metrics = {**metrics, **registered(device, "metrics", of_device)}
        faults = filter(None, [self._usage.note, self._growth.note]) if steps_here else []
        restless = [] if self._settles else [RESTLESS]
        notes = [*answer(Session, session, "notes"), *answer(Device, device, "notes"), *faults, *restless]
        if emulated:
            notes.append(f"emulated its dtype: this CPU has no instructions for {case.dtype}")
        return {"metrics": metrics, "notes": notes, "emulated": emulated}

    def proof(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return the evidence that the case ran as its label says, and what is measured beside the steps."""
        session, device = self._ready
        # The device first: the session's proof runs other work on it.
        checks = [] if session.elsewhere else answer(Device, device, "proof", session.step, self._block)
        # Before the session's proof, which may change threads.
        placed = [*placement.checks(self._placement), *check_start(forked=self._forked), *source.checks()]
        effect = {} if self._placement is None else {"placement": placement.effect()}
        evidence = [asdict(check) for check in (*placed, *answer(Session, session, "proof"), *checks)]
        return {"checks": evidence, **effect, **self._of_mode_and_device()}

    def fingerprint(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return the fingerprint, in a separate pass after measurement and proof, with the metrics of that step."""
        seen = fingerprint.of(*self._ready)
        return {"fingerprint": seen, "metrics": fingerprint.metrics(seen)}

    def trace(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write what some steps did, call by call, into a folder."""
        from ipexperf.proof import tracing

        session, device = self._ready
        return {"missing": tracing.write(session, device, Path(request["folder"]))}

    def accuracy(self, _: dict[str, Any]) -> dict[str, Any]:
        session, _device = self._ready
        metrics, checks = answer(Session, session, "accuracy")
        return {
            "metrics": registered(session, "accuracy", metrics),
            "checks": [asdict(check) for check in checks],
            "answers": answer(Session, session, "answers"),
            "notes": answer(Session, session, "notes"),  # with what only this request could find out
        }

    def environment(self, _: dict[str, Any]) -> dict[str, Any]:
        placed = {"placement": placement.effect()} if self._placement is not None else {}
        return {**environment.document(self._ready[1]), **placed}

    def flaw(self) -> str:
        """Return what is wrong with the network itself, after something failed, or an empty text."""
        from ipexperf.bench.networks import flaws

        return flaws.flaw(self._bench) if self._bench else ""

    def close(self) -> None:
        """End what the session started, if there is one."""
        if self._session is not None:
            self._session.close()


def registered(owner: object, method: str, metrics: dict[str, float]) -> dict[str, float]:
    """Return these metrics of a method. Raise WorkerError for one that nobody registered: no report would show it."""
    if unknown := next((name for name in metrics if name not in METRICS), None):
        advice = f'register(Metric("{unknown}", ...)) makes it known'
        raise WorkerError(
            "error", f"{declaration.whose(owner, method)} returned the unknown metric '{unknown}': {advice}"
        )
    return metrics


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer requests until the controller closes the worker or ends."""
    line = Line(requests, replies)
    worker = Worker(line)
    line.write({"ok": True, "pid": os.getpid(), "python": sys.executable})
    if line.answer(worker, "close"):
        worker.close()
        line.write({"ok": True})


def live(requests: int, replies: int, parent: str) -> None:
    """Start a guard, answer over these descriptors, and die with the parent: the controller or fork server."""
    for descriptor in (requests, replies):
        os.set_inheritable(descriptor, False)  # children of a worker must not inherit them
    guard.die_with_parent(signal.SIGKILL)
    if str(os.getppid()) != parent:
        return  # the parent ended before we could ask for a signal
    guard.start()  # now, while this process is small and has one thread only
    serve(os.fdopen(requests, "r", encoding="utf-8"), os.fdopen(replies, "w", encoding="utf-8"))
    # No interpreter shutdown: destructors of torch and OpenMP are known to hang, and there is nothing to save.
    os._exit(0)


def main() -> None:
    """Take the descriptors that the controller opened."""
    live(int(sys.argv[1]), int(sys.argv[2]), os.environ.get(CONTROLLER, str(os.getppid())))


if __name__ == "__main__":
    main()
