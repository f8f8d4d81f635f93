"""The live line of a terminal."""

import os
import pty
import tty
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from free_machine import Clock

from ipexperf import steps
from ipexperf.steps import LiveLine

CLEARED, DIM, PLAIN = "\r\x1b[K", "\x1b[2m", "\x1b[0m"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(steps, "time", SimpleNamespace(monotonic=made))
    return made


@pytest.fixture(params=[1000.0])
def terminal(
    request: pytest.FixtureRequest, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[LiveLine, Callable[[], str]]]:
    """A line on a terminal of 40 columns that hardly ever ticks, and what was written there since it was asked last."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    assert clock() == 0
    monkeypatch.setattr(steps, "TICK_SECONDS", request.param)
    line = LiveLine(theirs, lambda: 40, lambda: "1 of 8 cases")
    yield line, lambda: os.read(ours, 1000).decode()
    line.close()
    os.close(ours)


def test_each_step_takes_the_place_of_the_one_before(terminal: tuple[LiveLine, Callable[[], str]]) -> None:
    line, written = terminal
    line.show("round 1 of 2")
    line.show("round 2 of 2")
    expected = "".join(f"{CLEARED}{DIM}  1 of 8 cases | round {n} of 2{PLAIN}" for n in (1, 2))
    told = written()
    while len(told) < len(expected):  # a busy kernel hands it on in parts
        told += written()
    assert told == expected
    line.clear()
    assert written() == CLEARED


def test_a_step_below_a_line_leaves_the_cursor_at_its_end(terminal: tuple[LiveLine, Callable[[], str]]) -> None:
    """So that pytest writes its letter behind the name of the file."""
    line, written = terminal
    line.show("round 1", 12)
    assert written() == f"\n{CLEARED}{DIM}  1 of 8 cases | round 1{PLAIN}\x1b[A\x1b[13G"
    line.clear()
    assert written() == f"\n{CLEARED}\x1b[A\x1b[13G"


@pytest.mark.parametrize("terminal", [0.05], indirect=True)
def test_a_long_step_says_how_long_it_has_taken(terminal: tuple[LiveLine, Callable[[], str]], clock: Clock) -> None:
    line, written = terminal
    line.show("building")
    clock.now = 6.4
    told = ""
    while "(6 s)" not in told:  # by itself, while nobody shows anything
        told += written()
    assert f"{CLEARED}{DIM}  1 of 8 cases | building (6 s){PLAIN}" in told
