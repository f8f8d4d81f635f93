"""The ranks of data-parallel training, seen from the worker: started by torch's elastic launcher, asked in parallel.

Each rank has a connection to the worker with one JSON document per line, like the worker to its controller. Gradients
are exchanged over torch.distributed, between the ranks only.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import math
import os
import selectors
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.bench.machine.placement import BINDING
from ipexperf.bench.modes import _rank
from ipexperf.bench.outcome import signal_name
from ipexperf.errors import WorkerError

POLL_SECONDS = 0.2
GRACE_SECONDS = 2.0
"""A rank may fail because another one died. Seconds to wait for news of that."""
END_SECONDS = 5.0


class Ranks:
    """Processes that train together. They are in the worker's session, and end with it."""

    def __init__(self, request: dict[str, Any], count: int, say: Callable[[str], None]) -> None:
        self._say = say
        self._death = ""
        self._lines: list[socket.socket] = []
        self._buffers: list[bytes] = [b""] * count
        # Needed until all have connected, then deleted, so that a worker that is killed leaves nothing behind.
        with scratch.folder("ranks") as folder, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "line"))
            listener.listen(count)
            self._launcher = threading.Thread(
                target=self._launch, args=(count, folder, json.dumps(request)), name="ranks", daemon=True
            )
            with _unbound():
                self._launcher.start()
                self._accept(listener, count)

    def _launch(self, count: int, folder: Path, request: str) -> None:
        """Run the launcher until every rank has ended. Keep the first failure."""
        elastic = importlib.import_module("torch.distributed.elastic.multiprocessing")
        launcher = importlib.import_module("torch.distributed.launcher.api")
        # We report how a rank ended in one sentence; the log is for the rank's own output.
        logging.getLogger("torch.distributed.elastic.multiprocessing.api").setLevel(logging.CRITICAL)
        config = launcher.LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id=uuid.uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            local_addr="127.0.0.1",
            max_restarts=0,
            monitor_interval=0.5,
            # A function, not a command: the launcher would start commands in sessions of their own, out of our reach.
            start_method="spawn",
            logs_specs=elastic.DefaultLogsSpecs(log_dir=str(folder / "elastic")),
        )
        try:
            launcher.elastic_launch(config, _rank.main)(str(folder / "line"), request)
        except Exception as error:  # noqa: BLE001 - in a thread: raised again in the thread that waits for the ranks
            self._death = _summary(error)

    def _accept(self, listener: socket.socket, count: int) -> None:
        """Wait until every rank has connected, in any order."""
        listener.settimeout(POLL_SECONDS)
        lines: dict[int, socket.socket] = {}
        while len(lines) < count:
            try:
                line, _ = listener.accept()
            except TimeoutError:
                if not self._launcher.is_alive():
                    raise self._dead() from None
                continue
            line.settimeout(None)
            lines[int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big")] = line
        self._lines = [lines[rank] for rank in range(count)]

    def ask(self, do: str, **request: Any) -> list[dict[str, Any]]:
        """Send a request to all ranks, and return their replies in the order of the ranks."""
        message = (json.dumps({"do": do, **request}) + "\n").encode()
        for line in self._lines:
            with contextlib.suppress(OSError):  # it has ended, which is found below
                line.sendall(message)
        return self.replies()

    def replies(self, seconds: float | None = None) -> list[dict[str, Any]]:
        """Wait for one reply of each rank. The death of a rank is reported before its consequences in others.

        Raises TimeoutError if they take longer.
        """
        replies: dict[int, dict[str, Any]] = {}
        failed: dict[int, dict[str, Any]] = {}
        until = None if seconds is None else time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for rank, line in enumerate(self._lines):
                selector.register(line, selectors.EVENT_READ, rank)
            while len(replies) + len(failed) < len(self._lines):
                left = None if until is None else max(0.0, until - time.monotonic())
                ready = selector.select(left)
                if not ready:
                    break  # one failed, and those that wait for it will never answer
                for key, _ in ready:
                    reply = self._read(key.data)
                    if reply is None:
                        continue
                    selector.unregister(self._lines[key.data])
                    (replies if reply.pop("ok") else failed)[key.data] = reply
                    if failed:
                        until = min(until or math.inf, time.monotonic() + GRACE_SECONDS)
        if failed:
            rank, reply = next(iter(failed.items()))
            raise WorkerError(reply["outcome"], f"rank {rank}: {reply['reason']}")
        if len(replies) < len(self._lines):
            raise TimeoutError
        return [replies[rank] for rank in range(len(self._lines))]

    def _read(self, rank: int) -> dict[str, Any] | None:
        """Return the rank's reply, or None if it is not complete yet. Pass on progress messages."""
        try:
            chunk = self._lines[rank].recv(1 << 16)
        except ConnectionResetError:
            chunk = b""  # it died before reading the request
        if not chunk:
            raise self._dead()
        *whole, self._buffers[rank] = (self._buffers[rank] + chunk).split(b"\n")
        for text in whole:
            document: dict[str, Any] = json.loads(text)
            if "say" not in document:
                return document
            self._say(document["say"])
        return None

    def _dead(self) -> WorkerError:
        """Return the launcher's error for a rank that ended unexpectedly."""
        self._launcher.join(2 * END_SECONDS)
        return WorkerError("crashed", self._death or "a rank closed its connection, and the launcher does not say why")

    def close(self) -> None:
        """Let the ranks end by themselves. Others end with the worker's session."""
        for line in self._lines:
            with contextlib.suppress(OSError):  # ended already
                line.sendall(b'{"do": "close"}\n')
        self._launcher.join(END_SECONDS)
        for line in self._lines:
            line.close()


@contextlib.contextmanager
def _unbound() -> Iterator[None]:
    """Return the environment without variables that bind OpenMP's threads: they list the cores of all ranks."""
    variables = {name: os.environ.pop(name) for name in BINDING if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(variables)


def _summary(error: Exception) -> str:
    """Summarise the launcher's error in one sentence: which rank ended first, and how."""
    if not hasattr(error, "get_first_failure"):
        return f"torch's launcher failed: {type(error).__name__}: {error}"
    rank, failure = error.get_first_failure()
    if failure.exitcode < 0:
        return f"rank {rank} was killed by {signal_name(-failure.exitcode)}"
    return f"rank {rank} ended with exit status {failure.exitcode}"
