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
from typing import TYPE_CHECKING, Any

from ipexperf.bench import guard
from ipexperf.bench.facts import Facts, gather
from ipexperf.conduct import held
from ipexperf.conduct.process import BOOT, environment_of, last_lines, variables_for
from ipexperf.errors import UsageError, WorkerError

if TYPE_CHECKING:
    from ipexperf.conduct.server import Forked, Server

POLL_SECONDS = 0.5


def ask_facts(
    python: str | None,
    accelerators: Sequence[str],
    variables: Mapping[str, str] | None = None,
    packages: Iterable[str] = (),
    source: str = "--perf-python",
) -> Facts:
    """The facts of the workers' interpreter, under their variables: this one's are at hand, others need a process.

    `source` is what named it, for the sentence where it is none.
    """
    if python is None and not accelerators:
        return gather(packages=packages)
    command = [python or sys.executable, str(BOOT), "facts", "--accelerators", ",".join(accelerators)]
    command += ["--packages", ",".join(packages)]
    # A file, not a pipe: nobody reads while the process runs, and it never waits for that.
    with tempfile.TemporaryFile() as answer:
        command += ["--into", str(answer.fileno())]
        try:
            told = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=120,
                check=False,
                env=variables_for(python, variables),
                pass_fds=[answer.fileno()],
            )
        except OSError as error:
            raise UsageError(f"{source}={shlex.quote(str(python))}: {error.strerror or error}") from None
        except subprocess.TimeoutExpired:
            reason = f"did not say within 120 s whether it sees {', '.join(accelerators)}"
            raise UsageError(f"{command[0]} {reason}") from None
        answer.seek(0)
        facts = answer.read()
    if told.returncode != 0 or not facts:
        last = (told.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"{source}={shlex.quote(command[0])} can't run workers: {last}")
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
        bare: bool = False,
    ) -> None:
        self._timeout = timeout
        self._say = say
        self._buffer = b""
        self._look = time.monotonic() + POLL_SECONDS
        self._killed = False
        self._sentence: WorkerError | None = None
        """Why it was killed while another was asked."""
        self._kills = held.kernel_kills()
        self._limit = held.limit()
        self.beside: Sequence[Worker] = ()
        """Those that are alive together with it: they share the limit."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        # The protocol has pipes of its own, from the first line of code on: all that prints, prints into the log.
        requests, ours = os.pipe()
        self._replies, replies = os.pipe()
        self._requests = os.fdopen(ours, "wb")
        try:
            if server is not None:
                self._process: subprocess.Popen[bytes] | Forked = server.fork(requests, replies, self._log.fileno())
            else:
                self._process = subprocess.Popen(
                    # -u: what it printed last, before a crash, is in the log too
                    [python or sys.executable, "-u", str(BOOT), "worker", str(requests), str(replies)],
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    env=environment_of(python, variables, bare=bare),
                    pass_fds=(requests, replies),
                    start_new_session=True,
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
        self.send(do, **request)
        return self.receive(timeout)

    def send(self, do: str, **request: Any) -> None:
        """Sends one request. What is asked of several workers at once is sent to all before any is heard."""
        if self._killed:
            raise self._condemned()
        line = json.dumps({"do": do, **request}) + "\n"
        try:
            self._requests.write(line.encode())
            self._requests.flush()
        except BrokenPipeError:
            raise self._death() from None

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the reply to the request that was sent."""
        if self._killed:
            raise self._condemned()
        reply = self._read(timeout or self._timeout)
        if not reply.pop("ok"):
            raise WorkerError(reply["outcome"], reply["reason"], self.log())
        return reply

    def _read(self, timeout: float) -> dict[str, Any]:
        """The next reply; progress on the way is passed on. Watches the clock and the worker's memory."""
        until = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._replies, selectors.EVENT_READ)
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
                over = self._process.poll() is not None
                if selector.select(0 if over else min(left, POLL_SECONDS)):
                    chunk = os.read(self._replies, 1 << 16)
                    if not chunk:
                        raise self._death()
                    self._buffer += chunk
                elif over:
                    raise self._death()  # a process that it forked holds the pipe, but will never answer
                self._watch_memory()

    def _watch_memory(self) -> None:
        """Ends a worker that holds too much. One that talks all the time is looked at too."""
        if time.monotonic() < self._look:
            return
        alive = [worker for worker in (self, *self.beside) if not worker.killed]
        for worker in alive:
            worker._look = time.monotonic() + POLL_SECONDS  # noqa: SLF001 - one look is for all of them
        if held.together([worker.pid for worker in alive], self._limit) <= self._limit:
            return
        # The one that grew is at fault, be it not the one whose reply is waited for.
        largest = max(alive, key=lambda worker: held.together([worker.pid], 0))
        most = f"{self._limit / 2**30:.1f} GiB, {held.SHARE:.0%} of the memory here"
        others = ", and with what takes turns with it" if len(alive) > 1 else ""
        largest.condemn(WorkerError("out_of_memory", f"took more than {most}, with all that it started{others}"))
        if largest is self:
            raise self._condemned()

    @property
    def killed(self) -> bool:
        return self._killed

    def condemn(self, error: WorkerError) -> None:
        """Kills it for a reason that whoever asks it next is told."""
        self._sentence = WorkerError(error.outcome, error.reason, self.log())
        self.kill()

    def _condemned(self) -> WorkerError:
        return self._sentence or WorkerError("crashed", "was ended before it was asked", "")

    def _death(self) -> WorkerError:
        """Says what ended a worker that closed its pipe."""
        try:
            code = self._process.wait(timeout=10)
        except WorkerError as error:  # its server is gone, and nobody else knows
            self.kill()
            return WorkerError(error.outcome, error.reason, self.log())
        except subprocess.TimeoutExpired:
            self.kill()
            return WorkerError("crashed", "closed its pipe and did not end", self.log())
        if code == -signal.SIGKILL and held.kernel_kills() > self._kills:
            return WorkerError("out_of_memory", "killed by the kernel, which was out of memory", self.log())
        if code < 0:
            return WorkerError("crashed", f"killed by {signal.Signals(-code).name}", self.log())
        return WorkerError("crashed", f"ended with exit status {code}", self.log())

    def log(self) -> str:
        """The last lines that were printed, by whomever."""
        return last_lines(self._log)

    def close(self) -> None:
        """Asks it to end; one that doesn't is killed by the block's end."""
        if self._killed:
            return  # timed out, or over the memory limit
        with contextlib.suppress(WorkerError, subprocess.TimeoutExpired):
            self.ask("close", timeout=10)
            self._process.wait(timeout=10)

    def kill(self) -> None:
        """Ends the whole tree: the worker leads a session of its own, and all that it started is in it."""
        if self._killed:
            return  # by now its number may be somebody else's
        self._killed = True
        guard.end(self.pid)
        self._process.kill()  # where /proc hides processes, this one is known all the same
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        os.close(self._replies)
        with contextlib.suppress(WorkerError):  # its server is gone: it was told, or will be at the next launch
            self._process.wait()
