"""Signals wait until the end of a block that must not be interrupted. Then each is handled once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from ipexperf.conduct import interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restores the handlers afterwards. SIGINT is not ignored meanwhile, as it is in a background job of a shell."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def heard() -> list[int]:
    """The signals that handlers of the user's own were called with, while this fixture is there."""
    numbers: list[int] = []

    def hear(number: int, frame: object) -> None:
        numbers.append(number)

    for number in SIGNALS:
        signal.signal(number, hear)
    return numbers


def send(*numbers: signal.Signals) -> None:
    for number in numbers:
        signal.raise_signal(number)


@pytest.mark.parametrize("times", [1, 3])
def test_a_handler_of_the_user_is_called_once_after_the_block(times: int, heard: list[int]) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with interrupts.deferred():
        send(*SIGNALS * times)
        assert heard == []
    assert sorted(heard) == sorted(SIGNALS)
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_signals_wait_for_the_end_of_the_outermost_block(heard: list[int]) -> None:
    with interrupts.deferred():
        with interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]


def test_ctrl_c_is_a_keyboard_interrupt_after_the_block() -> None:
    written = []

    def write() -> None:
        send(signal.SIGINT)
        written.append("a case")

    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        write()
    assert written == ["a case"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_first_sigterm_is_a_keyboard_interrupt_after_the_block_too() -> None:
    """The second one ends the process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with interrupts.sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt), interrupts.deferred():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_error_of_the_block_ends_it_as_well(heard: list[int]) -> None:
    def write() -> None:
        send(signal.SIGTERM)
        raise ValueError("full")

    with pytest.raises(ValueError, match="full"), interrupts.deferred():
        write()
    assert heard == [signal.SIGTERM]


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.process
def test_a_signal_that_kills_does_so_after_the_block() -> None:
    code = (
        "import signal\nfrom ipexperf.conduct import interrupts\n"
        "with interrupts.deferred():\n    signal.raise_signal(signal.SIGTERM)\n    print('written', flush=True)\n"
        "print('alive')"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (-signal.SIGTERM, "written\n")


def test_another_thread_may_enter_the_block() -> None:
    """Python sets handlers only in the main thread."""
    before = signal.getsignal(signal.SIGINT)
    handlers = []

    def use() -> None:
        with interrupts.deferred():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert handlers == [before]
