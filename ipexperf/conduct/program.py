"""Run a program once, as a whole: what it took, what it printed, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ipexperf import units
from ipexperf.bench.outcome import signal_name
from ipexperf.conduct import reaper
from ipexperf.conduct.process import last_lines
from ipexperf.errors import WorkerError

MOST_PRINTED = 2**26
"""Most bytes of what a program prints that are read."""
UNABLE = "import_error"
"""The outcome of a program that cannot be started."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of a program took."""

    wall: float
    cpu: float
    """CPU seconds of all its processes together."""
    peak: int
    """The most bytes of memory that the largest of its processes had."""
    left: int
    """How many of its processes still ran when it had ended, and were killed."""
    printed: str
    log: str


class Running:
    """A program that runs, with no terminal and nothing to read. Nothing that it started is left after `close`."""

    name, lines, patience = "it", 1, 0.0
    """What errors call it, how many of its last lines they show, and the seconds that `close` gives it to end."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._program = words[0]
        self.log, self._reply = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes them
        reply = self._reply.fileno()
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, str(reply), str(self.patience), *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=(reply,),
            start_new_session=True,  # a Ctrl-C is ours
        )

    def took(self, seconds: float) -> Mapping[str, float] | None:
        """What it took, or None if it runs longer than so many seconds. Raises WorkerError if it fails."""
        try:
            self._reaper.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        answer: dict[str, float] = json.loads(os.pread(self._reply.fileno(), MOST_PRINTED, 0) or "{}")
        if "missing" in answer:
            raise WorkerError(UNABLE, f"'{self._program}' cannot be started: {answer['missing']}")
        if status := int(answer.get("status", 1)):
            how = f"was ended by {signal_name(-status)}" if status < 0 else f"ended with {status}"
            text = f"{self.name} {how}: {self.said}"
            raise WorkerError("crashed" if status < 0 else "error", text, last_lines(self.log))
        return answer

    @property
    def said(self) -> str:
        """The last lines that it printed, as one."""
        return " | ".join(last_lines(self.log).strip().splitlines()[-self.lines :]) or "it printed nothing"

    def close(self) -> None:
        """End it, and what it started too."""
        self._reaper.terminate()
        self._reaper.wait()
        self.log.close()
        self._reply.close()


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Ran:
    """Run a program to its end. Raises WorkerError if it cannot be started, fails, or takes longer than this."""
    with contextlib.closing(Running(words, folder, environment)) as running:
        answer = running.took(seconds)
        if answer is None:
            text = f"it took longer than {units.seconds(seconds)} (--perf-timeout), and was killed"
            raise WorkerError("timed_out", text, last_lines(running.log))
        printed = os.pread(running.log.fileno(), MOST_PRINTED, 0).decode(errors="replace")
        cost = answer["wall"], answer["cpu"], int(answer["peak"]), int(answer["left"])
        return Ran(*cost, printed, last_lines(running.log))
