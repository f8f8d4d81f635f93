"""A worker process: started fresh or forked, asked with time limits, and killed with everything it started."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ipexperf.bench.machine import diagnosis
from ipexperf.bench.machine.facts import Facts, gather
from ipexperf.bench.outcome import signal_name
from ipexperf.bench.process import guard
from ipexperf.conduct import memory_limit, process, protocol
from ipexperf.conduct.process import environment_of, last_lines, start_worker, variables_for
from ipexperf.conduct.server import Forked, Server
from ipexperf.errors import UsageError, WorkerError
from ipexperf.redaction import redacted
from ipexperf.steps import Step

POLL_SECONDS = 0.5
FACTS_SECONDS = 120.0


def ask_facts(
    python: str | None,
    accelerators: Mapping[str, int],
    variables: Mapping[str, str] | None = None,
    packages: Iterable[str] = (),
    source: str = "--perf-python",
) -> Facts:
    """Facts about the workers' interpreter under these variables. For another interpreter than ours, start a process.

    `source` is the option that named the interpreter, for error messages.
    """
    if python is None and not accelerators:
        return gather(packages=packages)
    question = json.dumps({"accelerators": dict(accelerators), "packages": list(packages)})
    interpreter, environment = python or sys.executable, variables_for(python, variables)
    try:
        facts, errors = process.ask(interpreter, "facts", question, variables=environment, seconds=FACTS_SECONDS)
    except OSError as error:
        raise UsageError(f"{source}={shlex.quote(str(python))}: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        reason = f"did not report within {FACTS_SECONDS:.0f} s whether it sees {', '.join(accelerators)}"
        raise UsageError(f"{interpreter} {reason}") from None
    if not facts:
        last = (errors.strip().splitlines() or ["no message"])[-1] + diagnosis.selected(accelerators, environment)
        named = f"{source}={shlex.quote(interpreter)}" if python else interpreter
        raise UsageError(f"{named} can't run workers: {last}")
    return Facts.from_json(json.loads(facts))


class Worker:
    """One worker process, as a context manager: it never outlives the block."""

    def __init__(
        self,
        python: str | None = None,
        variables: Mapping[str, str] | None = None,
        timeout: float = 600.0,
        say: Callable[[str], None] = lambda _: None,
        server: Server | None = None,
        *,
        memory: int | None = None,
    ) -> None:
        self._timeout = timeout
        self._say = say
        self._buffer = b""
        self._request = protocol.GREETING
        """The request whose reply comes next."""
        self._next_poll = time.monotonic() + POLL_SECONDS
        self._killed = False
        self._sentence: WorkerError | None = None
        """Why it was killed while another worker was being asked."""
        self._kills = memory_limit.kernel_kills()
        self.memory = memory_limit.limit() if memory is None else memory
        """How many bytes it may use, together with all workers beside it."""
        self.at = ""
        """What it said last that it is at: the file or test that is to blame if it ends."""
        self.beside: Sequence[Worker] = ()
        """The workers that are alive together with it and share the memory limit."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        # The protocol has pipes of its own, so anything printed goes to the log.
        requests, ours = os.pipe()
        self._replies, replies = os.pipe()
        self._requests = os.fdopen(ours, "wb")
        try:
            log = self._log.fileno()
            self._process: subprocess.Popen[bytes] | Forked = (
                server.fork(requests, replies, log)
                if server is not None
                else start_worker(python, environment_of(python, variables), requests, replies, log)
            )
        except BaseException:
            self._requests.close()
            os.close(self._replies)
            self._log.close()
            raise
        finally:
            os.close(requests)
            os.close(replies)
        try:
            self._read(timeout)
        except BaseException:
            self.kill()
            self._log.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        self.kill()
        self._log.close()

    def ask(self, do: str, timeout: float | None = None, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its reply."""
        self.send(do, **request)
        return self.receive(timeout)

    def prepare(self, case: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Have it import what a case needs and build the case, both given as JSON. Return all that it reports."""
        return protocol.joined(self.ask("begin", case=case, settings=settings), self.ask("prepare"))

    def send(self, do: str, **request: Any) -> None:
        """Send a request without waiting for its reply."""
        if self._killed:
            raise self._condemned()
        self._request = do
        line = json.dumps({"do": do, **request}) + "\n"
        try:
            self._requests.write(line.encode())
            self._requests.flush()
        except BrokenPipeError:
            raise self._death() from None

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the reply to the last request."""
        if self._killed:
            raise self._condemned()
        reply = self._read(timeout or self._timeout)
        if not reply.pop("ok"):
            raise WorkerError(reply["outcome"], reply["reason"], self.log())
        return reply

    def _read(self, timeout: float) -> dict[str, Any]:
        """Read the next reply, and pass on progress messages. Enforces the time and memory limits."""
        until = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._replies, selectors.EVENT_READ)
            while True:
                while b"\n" in self._buffer:
                    line, _, self._buffer = self._buffer.partition(b"\n")
                    reply = self._parsed(line)
                    if "ok" in reply:
                        return reply
                    self.at = reply.get("at", self.at)
                    if "say" in reply:
                        self._say(Step(redacted(reply["say"])))
                left = until - time.monotonic()
                if left <= 0:
                    self.kill()
                    raise WorkerError("timed_out", f"no reply within {timeout:g} s", self.log())
                over = self._process.poll() is not None
                if selector.select(0 if over else min(left, POLL_SECONDS)):
                    chunk = os.read(self._replies, 1 << 16)
                    if not chunk:
                        raise self._death()
                    self._buffer += chunk
                elif over:
                    raise self._death()  # the worker is gone, though a process that it forked still holds the pipe
                self._watch_memory()

    def _parsed(self, line: bytes) -> dict[str, Any]:
        """The reply in a line. Kill a worker that does not keep to the protocol: nothing it says can be trusted."""
        try:
            return protocol.parse(line, self._request)
        except protocol.MalformedError as error:
            self.kill()
            raise WorkerError("crashed", f"its reply to {self._request} is malformed: {error}", self.log()) from None

    def _watch_memory(self) -> None:
        """Kill the largest worker if all together use too much memory."""
        if time.monotonic() < self._next_poll:
            return
        alive = [worker for worker in (self, *self.beside) if not worker.killed]
        for worker in alive:
            worker._next_poll = time.monotonic() + POLL_SECONDS  # noqa: SLF001 - one poll covers all of them
        if memory_limit.used_bytes([worker.pid for worker in alive], self.memory) <= self.memory:
            return
        # Blame the largest, even if it is not the one that we wait for.
        largest = max(alive, key=lambda worker: memory_limit.used_bytes([worker.pid], 0))
        most = f"{self.memory / 2**30:.1f} GiB, {100 * memory_limit.SHARE:.0f} % of the memory here"
        others = ", together with the other arms of its round" if len(alive) > 1 else ""
        largest.condemn(WorkerError("out_of_memory", f"took more than {most}, with its child processes{others}"))
        if largest is self:
            raise self._condemned()

    @property
    def killed(self) -> bool:
        return self._killed

    def condemn(self, error: WorkerError) -> None:
        """Kill it. The next request to it raises this error."""
        self._sentence = WorkerError(error.outcome, error.reason, self.log())
        self.kill()

    def _condemned(self) -> WorkerError:
        return self._sentence or WorkerError("crashed", "was ended before it was used", "")

    def _death(self) -> WorkerError:
        """The error that describes how a worker ended after it closed its pipe."""
        try:
            code = self._process.wait(timeout=10)
        except WorkerError as error:  # its server is gone, so nobody knows its exit status
            self.kill()
            return WorkerError(error.outcome, error.reason, self.log())
        except subprocess.TimeoutExpired:
            self.kill()
            return WorkerError("crashed", "closed its pipe but did not exit", self.log())
        if code == -signal.SIGKILL and memory_limit.kernel_kills() > self._kills:
            return WorkerError("out_of_memory", "killed by the kernel, which was out of memory", self.log())
        if code < 0:
            return WorkerError("crashed", f"killed by {signal_name(-code)}", self.log())
        return WorkerError("crashed", f"ended with exit status {code}", self.log())

    def log(self) -> str:
        """The last lines of its output."""
        return last_lines(self._log)

    def close(self) -> None:
        """Ask it to end. If it does not, leaving the block kills it."""
        if self._killed:
            return  # timed out, or over the memory limit
        with contextlib.suppress(WorkerError, subprocess.TimeoutExpired):
            self.ask("close", timeout=10)
            self._process.wait(timeout=10)

    def kill(self) -> None:
        """Kill the worker and everything it started, which is in a session of its own."""
        if self._killed:
            return  # its pid may belong to another process by now
        self._killed = True
        guard.end(self.pid)
        self._process.kill()  # in case /proc hides processes
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        os.close(self._replies)
        with contextlib.suppress(WorkerError):  # its server is gone, which the next launch reports
            self._process.wait()
