"""Signals wait until the end of a block that must not be interrupted. Then each is handled once."""

import signal
import threading
from collections.abc import Iterator

import pytest

from ipexperf.conduct import interrupts

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


def test_a_first_sigterm_is_a_keyboard_interrupt_after_the_block_too() -> None:
    """The second one ends the process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with interrupts.sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt), interrupts.deferred():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


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
