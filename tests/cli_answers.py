"""The `ipexperf` command as a person calls it: what it answers, and the one sentence with which it refuses."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from ipexperf.cli import main


def on_terminal(*arguments):
    """The lines that a terminal of 80 columns shows in the end."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    command = [sys.executable, "-m", "ipexperf.cli", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": ""}):
        os.close(theirs)
        told = b""
        with contextlib.suppress(OSError):  # all is read
            while part := os.read(ours, 65536):
                told += part
    os.close(ours)
    return [line.rpartition("\r\033[K")[2] for line in told.decode().split("\r\n")]


def run(capsys, *arguments):
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def refused(capsys, *arguments):
    try:
        status = main(arguments)
    except SystemExit as error:
        status = error.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("ipexperf")
    return captured.err
