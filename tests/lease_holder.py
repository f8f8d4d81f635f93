"""Another process of this host that holds devices, in the folder of leases of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import TYPE_CHECKING

from ipexperf.variables import LEASED

if TYPE_CHECKING:
    from typing_extensions import Self

SCRIPT = """
import sys
from ipexperf.conduct.lease import Lease
from ipexperf.errors import UsageError

held = Lease(sys.argv[1], lambda text: print(text, flush=True))
try:
    held.take(sys.argv[2:])
except UsageError as error:
    print(error, flush=True)
    sys.exit(4)
print("held", flush=True)
sys.stdin.read()
held.close()
"""


class Holder:
    """A process that holds devices until it is closed or killed. It inherits the lease of this one if `below`."""

    def __init__(self, *devices: str, mode: str = "fail", below: bool = False) -> None:
        hidden = () if below else (LEASED,)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, mode, *devices],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in hidden},
        )
        self.pid = self._process.pid
        self.lines: list[str] = []

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        self.lines.append(self._process.stdout.readline().rstrip("\n"))
        return self.lines[-1]

    def held(self) -> Holder:
        """Wait until it holds its devices."""
        while (line := self.line()) != "held":
            assert line, self.lines
        return self

    def refused(self) -> str:
        """Wait until it has given up, and return the reason."""
        reason = self.line()
        assert self._process.wait(30) == 4, reason
        return reason

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let it give everything back."""
        self._process.communicate(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
