"""How the bare scripts are started and driven: for each line `go N` they print the seconds of N steps."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

DTYPES = ("fp32", "bf16", "fp16")


def parse(purpose: str | None, modes: Sequence[str], stacks: Sequence[str]) -> argparse.Namespace:
    """The case that a script runs, in the words of overhead.py."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--mode", choices=modes, required=True)
    parser.add_argument("--stack", choices=stacks, default="stock")
    for number in ("batch", "size", "threads"):
        parser.add_argument(f"--{number}", type=int, required=True)
    parser.add_argument("--weights", help="state dict of the trained network")
    return parser.parse_args()


def replies() -> Any:
    """Return the standard output for replies. From now on, whatever else prints goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return stream


def answer(stream: Any, loop: Callable[[int], None], synchronise: Callable[[], None] = lambda: None) -> None:
    """Say that the loop is ready, and time it for each request until there are no more."""
    print("ready", file=stream, flush=True)
    for line in sys.stdin:
        steps = int(line.split()[1])
        synchronise()
        begin = time.perf_counter()
        loop(steps)
        synchronise()
        print(time.perf_counter() - begin, file=stream, flush=True)
