"""The ranks of data-parallel training: processes that train together, and answer the worker that started them.

The worker asks all of them in parallel, over a pipe each. Gradients are exchanged over torch.distributed, between the
ranks only.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import importlib
import math
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import timedelta
from multiprocessing import connection
from pathlib import Path
from typing import Any

from ipexperf.bench import lazy, measure, outcome
from ipexperf.bench.api import Workbench
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import placement
from ipexperf.bench.modes import _curve
from ipexperf.bench.modes.train import TrainSession
from ipexperf.errors import UsageError, WorkerError
from ipexperf.proof import fingerprint
from ipexperf.result import Check

HERE = "127.0.0.1"
PATIENCE = timedelta(hours=6)
"""How long a rank waits for the others: longer than any run, because the controller ends hangs by its timeout."""
MEETING_SECONDS = 180
"""Ranks that have not exchanged a number by then never will. Each imports torch first."""
GRACE_SECONDS = 2.0
"""A rank may fail because another one died. Seconds to wait for news of that."""
END_SECONDS = 5.0


class RankSession(TrainSession):
    """Training of one process among several, which share batches in turns and exchange gradients."""

    def __init__(self, bench: Workbench, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        super().__init__(bench)

    def order(self) -> Iterator[Any]:
        return _curve.order(self.bench, self.split, self.rank, self.ranks)

    def for_steps(self, network: Any) -> Any:
        return torch.nn.parallel.DistributedDataParallel(network)

    def without_update(self) -> AbstractContextManager[Any]:
        quiet: AbstractContextManager[Any] = self.network.no_sync()
        return quiet

    def spans(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, ...]]:
        """Return begin and end of each block on the machine's clock, with this rank's CPU time and run delay."""
        spans: list[tuple[float, ...]] = []
        with self.updates.sampling(count * block):
            for _ in range(count):
                torch.distributed.barrier()
                before = measure.threads.look()
                synchronise()
                begin = perf_counter()
                measure.timed(self.step, synchronise, block)
                end = perf_counter()
                spans.append((begin, end, *measure.threads.sampled(before, measure.threads.look(), end - begin)))
        return spans

    def digest(self) -> str:
        """Return a hash of all weights."""
        digest = hashlib.sha256()
        for value in self.trained:
            flat = value.detach().cpu().flatten().contiguous()
            digest.update(ctypes.string_at(flat.data_ptr(), flat.nbytes))
        return digest.hexdigest()


class Rank:
    """What the worker can ask of a rank: each method is a request."""

    def __init__(self, rank: int, ranks: int, request: dict[str, Any], say: Callable[[str], None]) -> None:
        self._rank, self._ranks, self._request, self._say = rank, ranks, request, say
        self._settled = False

    def join(self, port: int) -> None:
        """Start the stack and the device, join the other ranks, and exchange a number with them."""
        from ipexperf.bench.process.worker import workbench

        settings = self._request["settings"]
        if settings["cards"]:
            os.environ.update(settings["cards"][self._rank])
        each = len(self._request["cores"]) // self._ranks
        cores = self._request["cores"][self._rank * each : (self._rank + 1) * each]
        pin(cores)
        threads = max(1, settings["threads"] // self._ranks) if settings["threads"] else len(cores)
        self._bench = workbench({**self._request, "settings": {**settings, "threads": threads}}, self._say)
        self._device = self._bench.device
        backend = self._request["backend"]
        if backend == "ccl":
            importlib.import_module("oneccl_bindings_for_pytorch")  # its import registers it
        if backend == "gloo":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine: no network card needed
        os.environ.update({"MASTER_ADDR": HERE, "MASTER_PORT": str(port)})
        store = torch.distributed.TCPStore(HERE, port, is_master=False)
        torch.distributed.init_process_group(
            backend, timeout=PATIENCE, store=store, rank=self._rank, world_size=self._ranks
        )
        torch.distributed.all_reduce(self._device.put(torch.ones(1)))
        self._device.synchronise()

    def build(self) -> None:
        self._device.reset_memory()
        mode: Any = self._bench.mode
        self._session: RankSession = mode.rank(self._bench, self._rank, self._ranks)
        self._device.synchronise()

    def step(self) -> None:
        self._session.step()
        self._device.synchronise()

    def sample(self, count: int, block: int) -> list[tuple[float, ...]]:
        if not self._settled:
            gc.collect()
            gc.freeze()
            self._settled = True
        return self._session.spans(self._device.synchronise, count, block)

    def memory(self) -> dict[str, float]:
        return self._session.memory(self._device)

    def proof(self, block: int) -> dict[str, Any]:
        """Return the evidence of this process, and the values that the worker compares between ranks."""
        checks = [*self._device.proof(self._session.step, block), *self._session.proof()]
        effect = placement.effect()
        return {
            "checks": checks,
            "ranks": torch.distributed.get_world_size(),
            "rank": torch.distributed.get_rank(),
            "backend": torch.distributed.get_backend(),
            "cores": effect["cores"],
            "threads": effect["threads"],
            "weights": self._session.digest(),
            "loss": float(self._session.losses[0]),
            "pid": os.getpid(),
        }

    def fingerprint(self) -> dict[str, Any] | None:
        return fingerprint.of(self._session, self._device)

    def metrics(self) -> dict[str, float]:
        return self._session.metrics()

    def notes(self) -> list[str]:
        return [*self._session.notes(), *self._device.notes()]

    def accuracy(self) -> dict[str, Any]:
        """Train on in all ranks. The first rank then predicts the held-out examples."""
        self._session.train_on()
        metrics: dict[str, float] = {}
        checks: list[Check] = []
        if self._rank == 0:
            metrics, checks = self._session.learned()
        return {
            "metrics": metrics,
            "checks": checks,
            "losses": _curve.first_losses(self._session.losses),
            "skipped": self._session.skipped(),
        }

    def close(self) -> None:
        self._session.close()
        torch.distributed.destroy_process_group()


def pin(cores: list[int]) -> None:
    """Bind all current threads of this process. Later threads inherit the affinity."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it ended while we looked
            os.sched_setaffinity(int(task.name), cores)


def main(number: int, count: int, line: connection.Connection, request: dict[str, Any]) -> None:
    """The entry point of a rank: answer requests until the worker closes it or ends."""
    variables = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    os.environ.update({name: str(value) for name, value in variables.items()})  # as torch's own launcher sets them

    def say(text: str) -> None:
        if number == 0:  # one rank reports for all
            line.send(("say", text))

    rank = Rank(number, count, request, say)
    with contextlib.suppress(EOFError):  # the worker has ended
        while True:
            method, arguments = line.recv()
            if method == "close":
                rank.close()
                return
            try:
                reply = getattr(rank, method)(**arguments)
                lazy.remove_leftovers()
                line.send(("reply", reply))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - any failure becomes an outcome, with its reason
                reason = str(error)
                if not isinstance(error, (UsageError, WorkerError)):
                    traceback.print_exc()
                    reason = outcome.sentence(error)
                line.send(("failure", (outcome.outcome_of(error), f"rank {number}: {reason}")))


class Ranks:
    """Processes that train together. They are in the worker's session, and end with it."""

    def __init__(self, bench: Workbench, count: int, backend: str, cores: list[int]) -> None:
        self._say = bench.say
        request = {
            "case": bench.case.to_json(),
            "settings": asdict(bench.settings),
            "backend": backend,
            "cores": cores,
        }
        spawning = multiprocessing.get_context("spawn")
        self._lines: list[connection.Connection] = []
        self._processes = []
        with _unbound():
            for number in range(count):
                ours, theirs = spawning.Pipe()
                process = spawning.Process(target=main, args=(number, count, theirs, request))
                process.start()
                theirs.close()  # so that its end is seen here
                self._lines.append(ours)
                self._processes.append(process)
        self._meeting = torch.distributed.TCPStore(HERE, 0, is_master=True, wait_for_workers=False)

    def meet(self) -> None:
        """Let the ranks join one another. Raises TimeoutError if they cannot."""
        self._send("join", port=self._meeting.port)
        self._replies(MEETING_SECONDS)

    def ask(self, method: str, **arguments: Any) -> list[Any]:
        """Send a request to all ranks, and return their replies in the order of the ranks."""
        self._send(method, **arguments)
        return self._replies(math.inf)

    def _send(self, method: str, **arguments: Any) -> None:
        for line in self._lines:
            with contextlib.suppress(OSError):  # it has ended, which is found when it should reply
                line.send((method, arguments))

    def _replies(self, seconds: float) -> list[Any]:
        """Wait for one reply of each rank. The death of a rank is reported before its consequences in others."""
        replies: dict[connection.Connection, Any] = {}
        failure: tuple[str, str] | None = None
        until = time.monotonic() + seconds
        while waiting := [line for line in self._lines if line not in replies]:
            left = max(0.0, until - time.monotonic())
            ready = connection.wait(waiting, None if math.isinf(left) else left)
            if not ready:
                break  # one failed, and those that wait for it will never answer
            for line in waiting:
                if line not in ready:
                    continue
                try:
                    kind, content = line.recv()
                except (EOFError, ConnectionResetError):
                    raise self._dead(self._lines.index(line)) from None
                if kind == "say":
                    self._say(content)
                    continue
                replies[line] = content
                if kind == "failure":
                    failure = failure or content
                    until = min(until, time.monotonic() + GRACE_SECONDS)
        if failure:
            raise WorkerError(*failure)
        if waiting:
            raise TimeoutError
        return [replies[line] for line in self._lines]

    def _dead(self, number: int) -> WorkerError:
        """Return the error for a rank that ended unexpectedly."""
        process = self._processes[number]
        process.join(END_SECONDS)
        status = process.exitcode or 0
        how = f"was killed by {outcome.signal_name(-status)}" if status < 0 else f"ended with exit status {status}"
        return WorkerError("crashed", f"rank {number} {how}")

    def close(self) -> None:
        """Let the ranks end by themselves. Others end with the worker's session."""
        self._send("close")
        until = time.monotonic() + END_SECONDS
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))


@contextlib.contextmanager
def _unbound() -> Iterator[None]:
    """Start processes without the variables that bind OpenMP's threads: these list the cores of all ranks."""
    variables = {name: os.environ.pop(name) for name in placement.BINDING if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(variables)
