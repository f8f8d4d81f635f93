"""Run a program to its end, with everything that it starts, and say what it took: a script of its own, for any Python.

`python reaper.py REPLY SECONDS WORD...` writes a line of JSON to the descriptor REPLY. The kernel gives it the
children that the program leaves, also those that began a session of their own, and it ends them. It dies with its
parent, and they too, after so many seconds to end by themselves.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_AS_BEFORE = [signal.SIGPIPE, signal.SIGXFSZ]
"""The signals that Python ignores, and a program does not expect to be ignored."""


def children() -> list[int]:
    """The children of this process that have not ended."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are enough
        with contextlib.suppress(OSError):  # it ended while we looked
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - starts sooner
                state, parent = file.read().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state not in "ZX":
                found.append(int(name))
    return found


def end_all() -> int:
    """Kill all children, and theirs when these become ours. Returns how many were still running."""
    killed: set[int] = set()
    while True:
        running = children()
        for pid in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(running)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return len(killed)


def main(reply: int, seconds: float, words: list[str]) -> None:
    """Run the program, and write what it took."""

    def interrupted(*_: object) -> None:
        asked: set[int] = set()
        until = time.monotonic() + seconds
        while time.monotonic() < until and (running := children()):
            for pid in {*running} - asked:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)
            asked.update(running)
            time.sleep(0.01)
        end_all()
        os._exit(1)

    parent = os.getppid()
    library = ctypes.CDLL(None)
    library.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, interrupted)
    library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before it could tell us
        return
    os.set_inheritable(reply, False)
    began = time.perf_counter()
    try:
        child = os.posix_spawnp(words[0], words, os.environ, setsigdef=_AS_BEFORE, setsid=True)
    except OSError as error:
        answer: dict[str, object] = {"missing": error.strerror}
    else:
        status = os.waitpid(child, 0)[1]
        wall = time.perf_counter() - began
        left = end_all()
        took = resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = {
            "wall": wall,
            "cpu": took.ru_utime + took.ru_stime,
            "peak": took.ru_maxrss * 1024,
            "status": os.waitstatus_to_exitcode(status),
            "left": left,
        }
    os.write(reply, json.dumps(answer).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
