"""A worker process: started fresh, asked with time limits, and killed with everything it started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ipexperf import bench
from ipexperf.bench.facts import Facts, gather
from ipexperf.errors import UsageError, WorkerError

BOOT = Path(bench.__file__).parent / "boot.py"
LAST_LINES = 15
POLL_SECONDS = 0.5
MEMORY_SHARE = 0.92
"""A worker that takes more of the machine's memory than this is stopped before the kernel stops somebody else."""

QUIET = {
    # A thread that waits must not burn the core of the worker whose turn it is (measured: 3 to 9 times slower).
    "OMP_WAIT_POLICY": "PASSIVE",
    "KMP_BLOCKTIME": "0",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}


def memory_limit() -> int:
    """Bytes that one worker may hold: a share of the container's or the machine's memory."""
    limit = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0]) * 1024
    with contextlib.suppress(OSError, ValueError):  # no control group, or the text "max": the machine's memory it is
        limit = min(limit, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return int(limit * MEMORY_SHARE)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0  # it ended while we looked: its end is told by the pipe


def _kernel_kills() -> int:
    found = re.search(r"^oom_kill (\d+)", Path("/proc/vmstat").read_text(), re.MULTILINE)
    return int(found.group(1)) if found else 0


def ask_facts(python: str | None, accelerators: Sequence[str]) -> Facts:
    """The facts of the workers' interpreter: this one's are at hand, another's are asked for in a process."""
    if python is None and not accelerators:
        return gather()
    command = [python or sys.executable, str(BOOT), "facts", "--accelerators", ",".join(accelerators)]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except OSError as error:
        raise UsageError(f"--perf-python {python}: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{command[0]} did not say within 120 s whether it sees {', '.join(accelerators)}") from None
    if told.returncode != 0:
        last = (told.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"--perf-python {command[0]} can't run workers: {last}")
    return Facts.from_json(json.loads(told.stdout.strip().splitlines()[-1]))


class Worker:
    """One worker process, as a context manager: it never outlives the block."""

    def __init__(
        self,
        python: str | None = None,
        variables: Mapping[str, str] | None = None,
        timeout: float = 600.0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._timeout = timeout
        self._say = say
        self._buffer = b""
        self._kills = _kernel_kills()
        self._limit = memory_limit()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        environment = {**QUIET, **os.environ, **(variables or {}), "IPEXPERF_CONTROLLER": str(os.getpid())}
        if python:
            environment.pop("PYTHONPATH", None)  # our packages would replace the ones that are to be measured
        self._process = subprocess.Popen(
            [python or sys.executable, str(BOOT), "worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            start_new_session=True,
        )
        try:
            self._read(timeout)
        except BaseException:
            self.kill()
            self._log.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Worker:  # noqa: PYI034 - typing.Self is 3.11, and this runs on 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        self.kill()
        self._log.close()

    def ask(self, do: str, timeout: float | None = None, **request: Any) -> dict[str, Any]:
        """Sends one request and waits for its reply."""
        line = json.dumps({"do": do, **request}) + "\n"
        assert self._process.stdin is not None  # noqa: S101 - it was opened as a pipe
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._death() from None
        reply = self._read(timeout or self._timeout)
        if not reply.pop("ok"):
            raise WorkerError(reply["outcome"], reply["reason"], self.log())
        return reply

    def _read(self, timeout: float) -> dict[str, Any]:
        """The next reply; progress on the way is passed on. Watches the clock and the worker's memory."""
        assert self._process.stdout is not None  # noqa: S101 - it was opened as a pipe
        descriptor = self._process.stdout.fileno()
        until = time.monotonic() + timeout
        look = time.monotonic() + POLL_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while True:
                while b"\n" in self._buffer:
                    line, _, self._buffer = self._buffer.partition(b"\n")
                    reply: dict[str, Any] = json.loads(line)
                    if "say" not in reply:
                        return reply
                    self._say(reply["say"])
                left = until - time.monotonic()
                if left <= 0:
                    self.kill()
                    raise WorkerError("timed_out", f"no reply within {timeout:g} s", self.log())
                if selector.select(min(left, POLL_SECONDS)):
                    chunk = os.read(descriptor, 1 << 16)
                    if not chunk:
                        raise self._death()
                    self._buffer += chunk
                # A worker that talks all the time is looked at too.
                if time.monotonic() < look:
                    continue
                look = time.monotonic() + POLL_SECONDS
                if _resident(self.pid) > self._limit:
                    self.kill()
                    reason = f"took more than {self._limit / 2**30:.1f} GiB, {MEMORY_SHARE:.0%} of the memory here"
                    raise WorkerError("out_of_memory", reason, self.log())

    def _death(self) -> WorkerError:
        """Says what ended a worker that closed its pipe."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            return WorkerError("crashed", "closed its pipe and did not end", self.log())
        if code == -signal.SIGKILL and _kernel_kills() > self._kills:
            return WorkerError("out_of_memory", "killed by the kernel, which was out of memory", self.log())
        if code < 0:
            return WorkerError("crashed", f"killed by {signal.Signals(-code).name}", self.log())
        return WorkerError("crashed", f"ended with exit status {code}", self.log())

    def log(self) -> str:
        """The last lines of standard error."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])

    def close(self) -> None:
        """Asks it to end; one that doesn't is killed by the block's end."""
        if self._process.stdin is None or self._process.stdin.closed:
            return  # it was killed already: timed out, or over the memory limit
        with contextlib.suppress(WorkerError):
            self.ask("close", timeout=10)
            self._process.wait(timeout=10)

    def kill(self) -> None:
        """Ends the whole tree: the worker leads a session of its own, and all that it started is in it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait()
