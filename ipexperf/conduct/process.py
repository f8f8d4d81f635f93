"""Start worker processes: their environment variables, and the script that they start from."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ipexperf import bench
from ipexperf.bench.machine import heap, source
from ipexperf.bench.outcome import signal_name
from ipexperf.redaction import redacted, tuned
from ipexperf.variables import CONTROLLER, SEARCHED, SOURCE

BOOT = Path(bench.__file__).parent / "boot.py"
LAST_LINES = 15
LAST_BYTES = 2**16
"""How much of a log's end is read to find its last lines."""
WAITING = {
    # Idle threads must not burn the core of the worker whose turn it is (measured: 3 to 9 times slower). They spin for
    # a moment first: code with many short parallel regions was 8 times slower when they slept at once.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "30000",
    "KMP_BLOCKTIME": "1",
}
"""Defaults for idle OpenMP threads. Skipped if the caller sets OMP_WAIT_POLICY."""
QUIET = {
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    # IPEX imports inductor, which starts a compile process that would use a core during the first samples.
    "TORCH_WARM_POOL": "0",
}

UNSET = "\0"
"""The value of a variable that must not be set, even if the shell sets it. No real variable can have it."""
EXTENSIONS = "TORCH_EXTENSIONS_DIR"
"""Where torch builds the kernels that a module compiles when it is imported."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""Workers never download, whatever the shell says."""


def variables_for(python: str | None, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment with these variables. Another interpreter gets no PYTHONPATH, to import its own packages."""
    inherited = {name: value for name, value in os.environ.items() if not (python and name == "PYTHONPATH")}
    together = {**inherited, **(variables or {})}
    return {name: value for name, value in together.items() if value != UNSET}


def quiet(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep a worker quiet: log levels, and idle threads unless the caller chose a wait policy."""
    return QUIET if "OMP_WAIT_POLICY" in variables else {**WAITING, **QUIET}


def tuned_by_user(shell: Mapping[str, str]) -> dict[str, str]:
    """The variables by which the user tunes libraries, without those that we set for every arm of a round."""
    ours = {*WAITING, *QUIET}
    return {name: value for name, value in tuned(shell).items() if name not in ours}


def environment_of(python: str | None, variables: Mapping[str, str] | None) -> dict[str, str]:
    """The whole environment of a worker, or of the server that it is forked from."""
    inherited = variables_for(python, variables)
    return {
        **quiet(inherited),
        **heap.defaults(inherited),
        **inherited,
        **_extensions(python, inherited),
        **OFFLINE,
        CONTROLLER: str(os.getpid()),
        SEARCHED: source.searched().lstrip(os.pathsep) if python else source.searched(),
    }


def _extensions(python: str | None, variables: Mapping[str, str]) -> dict[str, str]:
    """A folder of its own for an arm of another interpreter or source.

    Torch names what it builds by the module alone, so that two arms would build anew in turns, or load each other's.
    """
    arm = f"{python or ''}{variables.get(SOURCE, '')}"
    if not arm:
        return {}
    cache = variables.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - pathlib's may raise
    root = variables.get(EXTENSIONS) or f"{cache}/torch_extensions"
    return {EXTENSIONS: f"{root}/ipexperf-{source.digest(arm.encode())}"}


def start_worker(
    python: str | None, environment: Mapping[str, str], requests: int, replies: int, log: int
) -> subprocess.Popen[bytes]:
    """Start a fresh worker that answers over these descriptors and writes its output to this log."""
    return subprocess.Popen(
        # -u: the log has the last output before a crash too
        [python or sys.executable, "-u", str(BOOT), "worker", str(requests), str(replies)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
        pass_fds=(requests, replies),
        start_new_session=True,
    )


def ask(python: str, entry: str, *words: str, variables: Mapping[str, str], seconds: float) -> tuple[str, str]:
    """Ask an interpreter by a process of `boot.py` that answers once. Return its answer, and what it printed of errors.

    The answer is empty if it failed, and what it printed ends with the signal that ended it. Raises OSError, or
    TimeoutExpired after so many seconds.
    """
    # A file, not a pipe, because nobody reads while the process runs.
    with tempfile.TemporaryFile() as answer:
        done = subprocess.run(
            [python, str(BOOT), entry, str(answer.fileno()), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env=variables,
            pass_fds=[answer.fileno()],
        )
        answer.seek(0)
        ended = f"\n{signal_name(-done.returncode)}" if done.returncode < 0 else ""
        return "" if done.returncode else answer.read().decode(), f"{done.stderr}{ended}"


def last_lines(log: IO[bytes]) -> str:
    """The last lines of a log that other processes write to, without secrets."""
    # pread does not move the file position, which the writers share.
    size = os.fstat(log.fileno()).st_size
    tail = os.pread(log.fileno(), LAST_BYTES, max(0, size - LAST_BYTES))
    return redacted("\n".join(tail.decode(errors="replace").splitlines()[-LAST_LINES:]))
