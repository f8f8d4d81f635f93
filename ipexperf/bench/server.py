"""The fork server: imports once what its workers need, runs nothing of theirs, and is forked for each launch.

It is asked over a socket, one JSON document a message: `check`, `fork` with the descriptors of a new worker (requests,
replies, log), and `wait` for one that has ended. It ends when the socket does.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from ipexperf.bench import guard, registry, worker

CARDS = ("cuda", "xpu")
MESSAGE = 1 << 16
_WARM_POOL = "TORCH_WARM_POOL"


@contextlib.contextmanager
def _no_pool() -> Iterator[None]:
    """Importing inductor, as IPEX does, would start a process to compile with and a thread to hear of it."""
    kept = os.environ.get(_WARM_POOL)
    os.environ[_WARM_POOL] = "0"
    try:
        yield
    finally:
        del os.environ[_WARM_POOL]
        if kept is not None:
            os.environ[_WARM_POOL] = kept


def imports(stack: str, load: Sequence[str], needs: Sequence[str]) -> None:
    """Imports the leaves, the stack, and what a model needs and is called as its package is."""
    with _no_pool():
        registry.load(load)
        for kind in registry.KINDS.values():
            kind.names()
        registry.stacks.get(stack).start()
        for name in needs:
            if importlib.util.find_spec(name.replace("-", "_")):
                importlib.import_module(name.replace("-", "_"))
    settle()


def settle() -> None:
    """Forks once for nothing: a library that is made to be forked, such as OpenBLAS, ends its threads for it."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def unsafe() -> str:
    """Why this process must not be forked as it is, or an empty text."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - they are numbers, not paths
    if threads != 1:
        known = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        told = f" ({', '.join(known)})" if known else ""
        return f"the imports left {threads} threads, and a fork takes one alone{told}"
    torch = sys.modules.get("torch")
    for name in CARDS:
        card: Any = getattr(torch, name, None)
        if card is not None and card.is_initialized():
            return f"the imports left {name} initialised, and a card's runtime does not survive a fork"
    return ""


def serve(line: socket.socket) -> None:
    """Answers until the controller closes the line or is gone."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, MESSAGE, 3)
        if not message:
            return
        request = json.loads(message)
        if request["do"] == "wait":
            _, status = os.waitpid(request["pid"], 0)
            reply: dict[str, Any] = {"status": os.waitstatus_to_exitcode(status)}
        else:
            reply = {"unsafe": unsafe()}
        if request["do"] == "fork" and not reply["unsafe"]:
            reply["pid"] = _fork(line, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        line.send(json.dumps(reply).encode())


def _fork(line: socket.socket, descriptors: Sequence[int]) -> int:
    """The worker's number; the worker itself never returns from here."""
    # What C has not written yet would be written by every worker once more.
    ctypes.CDLL(None).fflush(None)
    server = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        line.close()
        os.setsid()
        requests, replies, log = descriptors
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        _own_chance()
        worker.live(requests, replies, str(server))
    except BaseException:  # noqa: BLE001 - whatever happens here, this process must not become a second server
        traceback.print_exc()
    finally:
        os._exit(1)


def _own_chance() -> None:
    """Python draws anew in a forked process by itself; numpy's legacy generator would go on as in its siblings."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def main() -> None:
    """Takes its end of the line, imports, says how that went, and dies with its controller."""
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    guard.die_with_parent(signal.SIGKILL)
    if str(os.getppid()) != os.environ["IPEXPERF_CONTROLLER"]:
        return  # the controller was gone before we could ask to be told of its end
    begin = time.perf_counter()
    try:
        imports(**json.loads(sys.argv[2]))
        told = {"reason": unsafe()}
    except Exception as error:  # noqa: BLE001 - every failure is a reason to start fresh, which the launch then tells
        traceback.print_exc()
        told = {"reason": f"{type(error).__name__}: {error}"}
    line.send(json.dumps({**told, "seconds": time.perf_counter() - begin}).encode())
    if not told["reason"]:
        serve(line)
    # No interpreter shutdown, as in a worker: nothing is left to save.
    os._exit(0)


if __name__ == "__main__":
    main()
