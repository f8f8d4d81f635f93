"""Run a program once, as a whole: what it took, what it printed, and how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ipexperf import units
from ipexperf.bench.outcome import signal_name
from ipexperf.conduct import reaper
from ipexperf.conduct.process import last_lines
from ipexperf.errors import WorkerError

MOST_PRINTED = 2**26
"""Most bytes of what a program prints that are read."""


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


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Ran:
    """Run a program to its end, with no terminal and nothing to read. Nothing that it started is left.

    Raises WorkerError if it cannot be started, fails, or takes longer than this.
    """
    with tempfile.TemporaryFile() as log, tempfile.TemporaryFile() as reply:
        running = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, str(reply.fileno()), *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(reply.fileno(),),
            start_new_session=True,  # a Ctrl-C is ours
        )
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            text = f"it took longer than {units.seconds(seconds)} (--perf-timeout), and was killed"
            raise WorkerError("timed_out", text, last_lines(log)) from None
        finally:
            running.terminate()  # ends what the program started too
            running.wait()
        reply.seek(0)
        answer = json.loads(reply.read() or "{}")
        return _ran(answer, words[0], log)


def _ran(answer: Mapping[str, float], program: str, log: IO[bytes]) -> Ran:
    if "missing" in answer:
        raise WorkerError("error", f"'{program}' cannot be started: {answer['missing']}")
    last = last_lines(log)
    if status := int(answer.get("status", 1)):
        how = f"was ended by {signal_name(-status)}" if status < 0 else f"ended with {status}"
        said = last.strip().rpartition("\n")[2]
        raise WorkerError("crashed" if status < 0 else "error", f"it {how}: {said or 'it printed nothing'}", last)
    printed = os.pread(log.fileno(), MOST_PRINTED, 0).decode(errors="replace")
    return Ran(answer["wall"], answer["cpu"], int(answer["peak"]), int(answer["left"]), printed, last)
