"""`ipexperf lease`: run any command while nobody else measures on the device."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from ipexperf.commands import console, planning, progress
from ipexperf.errors import UsageError


def add_lease(subparsers: console.Subparsers) -> None:
    purpose = "run a command while nobody else measures on the device"
    parser = console.declare(subparsers, "lease", purpose, run_lease, console.PLAN, "lease -- python train.py")
    planning.add_some(parser, "device", "lease", "load")
    parser.add_argument("command", nargs="+", metavar="-- COMMAND", help="the command with its arguments, behind --")


def run_lease(arguments: argparse.Namespace) -> int:
    """Hold the devices as long as the command runs, and end with its exit status."""
    from ipexperf.conduct import lease
    from ipexperf.plan import matrix

    options = planning.resolve(arguments)
    matrix.check_names(options)
    devices = options.device or (lease.CPU,)
    if "all" in devices:
        devices = matrix.names("device")
    around = lease.Lease(options.lease, progress.say)
    try:
        around.take(claim for name in devices for claim in lease.claims(name, options.index(name), os.environ))
        with ending_with_us(arguments.command) as process:
            status = process.wait()
    finally:
        around.close()
    return 128 - status if status < 0 else status


@contextlib.contextmanager
def ending_with_us(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command that ends with us, however that comes, and all that it started ends with it.

    Inside the block it alone decides what a signal means.
    """
    from ipexperf.bench.process import guard

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def lead() -> None:
        guard.lead()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, before)

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        process.send_signal(number)

    signal.pthread_sigmask(signal.SIG_BLOCK, before)  # one that comes while it starts waits for `pass_on`
    try:
        process = subprocess.Popen(command, preexec_fn=lead, **options)  # noqa: PLW1509 - there is one thread
        for number in before:
            signal.signal(number, pass_on)
    except OSError as error:
        raise UsageError(f"{command[0]}: {(error.strerror or str(error)).lower()}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, before)
    try:
        with process:
            yield process
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


COMMANDS = (add_lease,)
