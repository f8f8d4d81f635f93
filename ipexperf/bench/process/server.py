"""The fork server: imports once what its workers need, runs nothing else, and is forked for each launch.

Requests come over a socket, one JSON document per message: `fork` with the descriptors of a new worker (requests,
replies, log), and `wait` for one that has ended. The server ends when the socket is closed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Any

from ipexperf.bench import lazy, loading, registry
from ipexperf.bench.machine import inventory
from ipexperf.bench.process import guard, worker
from ipexperf.variables import CONTROLLER

MESSAGE = 1 << 16


def imports(stack: str, load: Sequence[str], needs: Sequence[str], ahead: Sequence[str] = ()) -> None:
    """Import the leaves, the stack, the packages that a model needs, and those that building it imports."""
    loading.load(load)
    for kind in registry.KINDS.values():
        kind.names()
    registry.stacks.get(stack).start()
    lazy.import_packages(needs)
    lazy.import_packages(ahead)
    lazy.remove_leftovers()
    inventory.gather()  # cached, so that no worker has to
    settle()


def settle() -> None:
    """Fork once without use: libraries that support forking, such as OpenBLAS, end their threads then."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def unsafe() -> str:
    """Return why this process must not be forked, or an empty text."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - numbers, not paths
    if threads != 1:
        names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        text = f" ({', '.join(names)})" if names else ""
        return f"the imports left {threads} threads, and a fork copies only one{text}"
    used = registry.used_accelerator()
    return f"the imports left {used} initialised, and its runtime does not survive a fork" if used else ""


def serve(line: socket.socket) -> None:
    """Answer requests until the controller closes the socket or ends."""
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
    """Fork a worker and return its pid. The worker itself never returns from here."""
    # Buffered output of C would be written again by every worker.
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
        if "numpy.random" in sys.modules:
            # Else its legacy generator would equal that of its siblings. Python reseeds its own.
            sys.modules["numpy.random"].seed()
        worker.live(requests, replies, str(server))
    except BaseException:  # noqa: BLE001 - whatever happens here, this process must not become a second server
        traceback.print_exc()
    finally:
        os._exit(1)


def main() -> None:
    """Take the socket, import, report the result, and serve until the controller ends."""
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    guard.die_with_parent(signal.SIGKILL)
    if str(os.getppid()) != os.environ[CONTROLLER]:
        return  # the controller ended before we could ask for a signal
    try:
        imports(**json.loads(sys.argv[2]))
        reply = {"reason": unsafe()}
    except Exception as error:  # noqa: BLE001 - after any failure workers are started fresh, and the launch says why
        traceback.print_exc()
        reply = {"reason": f"{type(error).__name__}: {error}"}
    line.send(json.dumps(reply).encode())
    if not reply["reason"]:
        serve(line)
    # No interpreter shutdown, as in a worker.
    os._exit(0)


if __name__ == "__main__":
    main()
