"""A rank of data-parallel training: a process that trains with the others and answers the worker."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import importlib
import json
import os
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from ipexperf.bench import lazy, measure, outcome
from ipexperf.bench.api import Workbench
from ipexperf.bench.clocks import perf_counter, process_time
from ipexperf.bench.evidence import fingerprint
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import placement
from ipexperf.bench.modes import _curve
from ipexperf.bench.modes.train import TrainSession
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Check

PATIENCE = timedelta(hours=6)
"""Seconds that a rank waits for the others: longer than any run, because the controller ends hangs by its timeout."""
MODESTY_SECONDS = 1.5
"""Seconds to wait after a failure. If another rank died first, the launcher ends this one meanwhile."""


class RankSession(TrainSession):
    """Training of one process among several, which share batches in turns and exchange gradients."""

    def __init__(self, bench: Workbench, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        super().__init__(bench)

    def order(self) -> Iterator[Any]:
        return _curve.order(self.bench, self.split, self.rank, self.ranks)

    def joined(self, network: Any) -> Any:
        return torch.nn.parallel.DistributedDataParallel(network)

    def apart(self) -> AbstractContextManager[Any]:
        quiet: AbstractContextManager[Any] = self.network.no_sync()
        return quiet

    def spans(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, ...]]:
        """Return begin and end of each block on the machine's clock, with this rank's CPU time and run delay."""
        spans: list[tuple[float, ...]] = []
        before = self.ledger.read()
        for _ in range(count):
            torch.distributed.barrier()
            delay, cpu = measure.run_delay(), process_time()
            synchronise()
            begin = perf_counter()
            for _ in range(block):
                self.step()
            synchronise()
            end = perf_counter()
            spans.append((begin, end, process_time() - cpu, measure.run_delay() - delay))
        self.ledger.enter(before, self.ledger.read(), count * block)
        return spans

    def digest(self) -> str:
        """Return a hash of all weights."""
        digest = hashlib.sha256()
        for value in self.trained:
            flat = value.detach().cpu().flatten().contiguous()
            digest.update(ctypes.string_at(flat.data_ptr(), flat.nbytes))
        return digest.hexdigest()


class Rank:
    """Requests of the worker to a rank."""

    def __init__(self, request: dict[str, Any], say: Callable[[str], None]) -> None:
        """Join the other ranks, and exchange a number with them."""
        from ipexperf.bench.process.worker import workbench

        self._rank, self._ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        settings = request["settings"]
        if settings["cards"]:
            os.environ.update(settings["cards"][self._rank])
        cores = share(request["cores"], self._rank, self._ranks)
        pin(cores)
        threads = max(1, settings["threads"] // self._ranks) if settings["threads"] else len(cores)
        bench = workbench({**request, "settings": {**settings, "threads": threads}}, say if self._rank == 0 else _quiet)
        self._device, self._threads = bench.device, threads
        join(request["backend"])
        torch.distributed.all_reduce(bench.device.put(torch.ones(1)))
        bench.device.synchronise()
        self._bench, self._settled = bench, False
        self._built: RankSession | None = None

    def build(self, _: dict[str, Any]) -> dict[str, Any]:
        self._device.reset_peak_memory()
        mode: Any = self._bench.mode
        self._built = mode.rank(self._bench, self._rank, self._ranks)
        self._device.synchronise()
        return {}

    @property
    def _session(self) -> RankSession:
        assert self._built is not None  # noqa: S101 - the worker asks to build first
        return self._built

    def step(self, _: dict[str, Any]) -> dict[str, Any]:
        self._session.step()
        self._device.synchronise()
        return {}

    def sample(self, request: dict[str, Any]) -> dict[str, Any]:
        if not self._settled:
            gc.collect()
            gc.freeze()
            self._settled = True
        return {"spans": self._session.spans(self._device.synchronise, request["count"], request["block"])}

    def memory(self, _: dict[str, Any]) -> dict[str, Any]:
        peak, current = self._session.peak_memory(self._device), self._session.held_memory(self._device)
        return {"peak_memory": peak, "held_memory": current}

    def proof(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the evidence of this process, and the values that the worker compares between ranks."""
        checks = [*self._device.proof(self._session.step, request["block"]), *self._session.proof()]
        effect = placement.effect()
        return {
            "checks": [asdict(check) for check in checks],
            "ranks": torch.distributed.get_world_size(),
            "rank": torch.distributed.get_rank(),
            "backend": torch.distributed.get_backend(),
            "cores": effect["cores"],
            "threads": effect["threads"],
            "weights": self._session.digest(),
            "loss": float(self._session.losses[0]),
            "pid": os.getpid(),
        }

    def fingerprint(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"fingerprint": fingerprint.of(self._session, self._device)}

    def metrics(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"metrics": self._session.metrics()}

    def notes(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"notes": [*self._session.notes(), *self._device.notes()]}

    def accuracy(self, _: dict[str, Any]) -> dict[str, Any]:
        """Train on in all ranks. The first rank then predicts the held-out examples."""
        self._session.train_on()
        metrics: dict[str, float] = {}
        checks: list[Check] = []
        if self._rank == 0:
            metrics, checks = self._session.learned()
        return {
            "metrics": metrics,
            "checks": [asdict(check) for check in checks],
            "losses": _curve.first_losses(self._session.losses),
            "skipped": self._session.skipped(),
        }

    def close(self) -> None:
        if self._built is not None:
            self._built.close()
        torch.distributed.destroy_process_group()


def share(cores: list[int], rank: int, ranks: int) -> list[int]:
    """Return the cores of one rank: equal, contiguous parts."""
    each = len(cores) // ranks
    return cores[rank * each : (rank + 1) * each]


def pin(cores: list[int]) -> None:
    """Bind all current threads of this process. Later threads inherit the affinity."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it ended while we looked
            os.sched_setaffinity(int(task.name), cores)


def join(backend: str) -> None:
    """Join the process group of all ranks, using the variables of the launcher."""
    if backend == "ccl":
        importlib.import_module("oneccl_bindings_for_pytorch")  # its import registers it
    if backend == "gloo":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine, so no network card is needed
    torch.distributed.init_process_group(backend, timeout=PATIENCE)


def _quiet(_: str) -> None:
    """Ignore progress: one rank reports for all."""


def main(address: str, request: str) -> None:
    """The entry point of a rank: answer requests until the worker closes it or ends."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)
        line.sendall(int(os.environ["RANK"]).to_bytes(4, "big"))
        with line.makefile("r", encoding="utf-8") as requests, line.makefile("w", encoding="utf-8") as replies:
            serve(json.loads(request), requests, replies)


def serve(request: dict[str, Any], requests: IO[str], replies: IO[str]) -> None:
    from ipexperf.bench.outcome import outcome_of

    def write(document: dict[str, Any]) -> None:
        replies.write(json.dumps(document) + "\n")
        replies.flush()

    def answer(work: Callable[[], dict[str, Any]]) -> None:
        try:
            reply = work()
            lazy.remove_leftovers()
            write({"ok": True, **reply})
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any failure becomes an outcome, with its reason
            time.sleep(MODESTY_SECONDS)
            reason = str(error)
            if not isinstance(error, (UsageError, WorkerError)):
                traceback.print_exc()
                reason = outcome.sentence(error)
            write({"ok": False, "outcome": outcome_of(error), "reason": reason})

    ranks: list[Rank] = []

    def meet() -> dict[str, Any]:
        ranks.append(Rank(request, lambda text: write({"say": text})))
        return {}

    answer(meet)
    for text in requests:
        message = json.loads(text)
        if message["do"] == "close":
            for rank in ranks:
                rank.close()
            return
        answer(lambda message=message: getattr(ranks[0], message["do"])(message))  # type: ignore[misc]
