"""A process that has imported ipexperf, and torch where there is one, from which the workers of test runs are forked.

The imports take longer than most tests measure. A forked worker answers as a fresh one does, sooner. Tests of imports,
memory, cold starts and of killed controllers use fresh workers.

For each run, the template forks a server that has the variables of the run's workers. The server forks the workers, as
in the later rounds of a run, and ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.machine import inventory
from ipexperf.bench.process import guard, server
from ipexperf.conduct.process import environment_of

IMPORTS = ("torch", "torchvision", "torch._dynamo", "torch._inductor.compile_fx", "torch.utils.cpp_extension")
"""Most of what torch and IPEX import. Not IPEX itself: it changes torch, which workers of stock PyTorch refuse."""
MESSAGE = 1 << 18


class Template:
    """A template process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ipexperf-template-")
        self.path = str(Path(self._folder.name, "socket"))
        ready, theirs = os.pipe()
        with os.fdopen(ready) as line:
            self._process = subprocess.Popen(
                [sys.executable, "-u", __file__, self.path, str(theirs)],
                stdin=subprocess.DEVNULL,
                env=environment_of(None, None),
                pass_fds=[theirs],
            )
            os.close(theirs)
            assert line.read() == "ready", "the template did not start"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


class Templates:
    """A template for each PYTHONPATH that workers have, started on first use."""

    def __init__(self) -> None:
        self._templates: dict[str | None, Template] = {}

    def path(self) -> str:
        """The socket of the template for the PYTHONPATH of this process."""
        key = os.environ.get("PYTHONPATH")
        if key not in self._templates:
            self._templates[key] = Template()
        return self._templates[key].path

    def close(self) -> None:
        for template in self._templates.values():
            template.close()


def _has_torch() -> bool:
    try:
        return importlib.util.find_spec("torch") is not None
    except ModuleNotFoundError:  # tests/fakes/no_torch
        return False


def _import() -> None:
    for kind in registry.KINDS.values():
        kind.names()
    if _has_torch():
        for name in IMPORTS:
            importlib.import_module(name)
    inventory.gather()  # cached, so that no worker has to
    gc.freeze()  # or each worker would look through all of it
    server.settle()
    assert not server.unsafe(), server.unsafe()


def _reap() -> None:
    """Take the exit status of each server that has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve_run(line: socket.socket) -> None:
    """Fork workers on request, in the folder and with the variables and cores of a run, until it ends."""
    guard.die_with_parent(signal.SIGKILL)
    request = json.loads(line.recv(MESSAGE))
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.sched_setaffinity(0, request["cores"])
    line.send(json.dumps({"pid": os.getpid()}).encode())
    server.serve(line)


def serve(path: str, ready: int) -> None:
    """Fork a server for each connection. End with the process that started the template."""
    guard.die_with_parent(signal.SIGKILL)
    _import()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    with os.fdopen(ready, "w") as said:
        said.write("ready")
    while True:
        line, _ = listener.accept()
        if os.fork():
            line.close()
            _reap()
            continue
        listener.close()
        _serve_run(line)
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
