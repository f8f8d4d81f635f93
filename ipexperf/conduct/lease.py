"""The lease of a run on its devices: only one process of the host measures on a device at a time."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING

from ipexperf.bench import registry
from ipexperf.conduct.device_lock import DeviceLock, Folder
from ipexperf.errors import UsageError
from ipexperf.steps import Notice
from ipexperf.variables import LEASED

if TYPE_CHECKING:
    from ipexperf.case import Case

CPU = "cpu"
WAIT, OFF = "wait", "off"
SHARED = "shared:"
POLL_SECONDS = 0.5
LINE_SECONDS = 60.0
"""Without a terminal, progress says after these seconds how long the wait has been, and then after twice as many."""


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """A device that somebody wants to measure on."""

    device: str
    """`cpu`, or a kind of card and its number. Its lock file is named after it."""
    shared: bool = False
    """Whether others may use it at the same time, if they share it too."""

    @property
    def word(self) -> str:
        """How it is named in the environment of the processes that its holder starts."""
        return f"{SHARED}{self.device}" if self.shared else self.device

    @classmethod
    def of_word(cls, word: str) -> Claim:
        return cls(word.removeprefix(SHARED), word.startswith(SHARED))

    def __str__(self) -> str:
        return "the CPU" if self.device == CPU else self.device


def claims(device: str, index: int, environment: Mapping[str, str], processes: int = 1) -> set[Claim]:
    """The devices that a measurement on one kind of device needs to itself.

    Work on a card is directed by the CPU, so it shares the CPU with work on other cards, but not with work on the CPU.
    """
    kind = registry.devices.get(device)
    if not kind.accelerator:
        return {Claim(CPU)}
    devices = {Claim(CPU, shared=True)}
    for number in range(index, index + processes):
        with contextlib.suppress(UsageError):  # there is no such card, which the launch reports
            # A card has the same name whether it is chosen by its index or by the vendor's variable, which comes first.
            chosen = next(iter(kind.variables(number, environment).values()), str(number))
            devices.add(Claim(re.sub(r"[^\w,:-]", "_", f"{device}-{chosen.partition('.')[0]}")))
    return devices


def of_case(case: Case, index: int, environment: Mapping[str, str]) -> set[Claim]:
    """The devices that a case needs to itself."""
    return claims(case.device, index, environment, registry.modes.get(case.mode).processes(case))


_HELD: dict[str, Claim] = {}
"""What this process holds, by the device."""


class Lease:
    """The devices that one run holds, from its first case to its end. What it starts may measure on them too."""

    def __init__(self, mode: str, say: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self.seconds_waited = 0.0
        """The seconds that were spent waiting for others."""
        self._mode = mode
        self._say = say
        self._clock = clock
        self._claims: frozenset[Claim] = frozenset()
        self._locks: dict[Claim, DeviceLock] = {}

    def take(
        self, requests: Iterable[Claim], seconds: float | None = None, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        """Hold these devices too. Waits until they are free, or raises UsageError, as the mode says.

        Others are told that it is probably for so many seconds. If it has to wait, it does first what is `meanwhile`.
        Nothing may be measured meanwhile: to hold more, the lease gives everything back and takes all in one order.
        Whoever holds one device and waits for another could otherwise wait for ever.
        """
        union = _merged([*self._claims, *requests])
        if self._mode == OFF or union == self._claims:
            return
        self.close()
        folder = Folder.of_host()
        nested = bool(_announced())
        began = self._clock()
        try:
            for claim in sorted(union, key=_order):
                if not _covered(claim):
                    self._locks[claim] = self._lock(folder, claim, seconds, meanwhile, nested=nested)
        except BaseException:
            self.close()
            raise
        finally:
            self.seconds_waited += self._clock() - began
        self._claims = union
        _announce([*_announced(), *(claim.word for claim in self._locks)])

    def take_for_work(self) -> None:
        """Hold the CPU for work on all of its cores that is not measured.

        Where this process or one that started it holds a card, its share in the CPU is enough: those who hold something
        must not wait for more.
        """
        if self._mode != OFF and not _covered(Claim(CPU, shared=True)):
            self.take([Claim(CPU)])

    def close(self) -> None:
        """Give everything back."""
        self._claims = frozenset()
        words = _announced()
        while self._locks:
            claim, lock = self._locks.popitem()
            _HELD.pop(claim.device, None)
            lock.release()
            if claim.word in words:
                words.remove(claim.word)
        _announce(words)

    def _lock(
        self, folder: Folder, claim: Claim, seconds: float | None, meanwhile: Callable[[], None], *, nested: bool
    ) -> DeviceLock:
        """Take one lock, or wait for it."""
        if claim.device in _HELD:
            raise UsageError(f"{claim} cannot be measured alone: this process shares it with others")
        lock, wait = DeviceLock(folder, claim.device), _Wait(claim, self._say, self._clock)
        try:
            while not lock.acquire(shared=claim.shared, seconds=seconds):
                if holder := lock.holder(shared=claim.shared):
                    self._refuse_to_wait(claim, holder, nested=nested)
                    if wait.show(holder, lock.before or 0):
                        meanwhile()
                        continue
                sleep(POLL_SECONDS)
        except BaseException:
            wait.clear()
            lock.release()
            raise
        wait.end()
        _HELD[claim.device] = claim
        return lock

    def _refuse_to_wait(self, claim: Claim, holder: str, *, nested: bool) -> None:
        """Raise UsageError if this lease must not wait for others."""
        if self._mode == "fail":
            advice = "wait for it (--perf-lease wait), or measure without a lease (--perf-lease off)"
        elif nested:
            # Two that each hold what the other one waits for would wait for ever.
            advice = "a command inside a lease does not wait for more devices: let the outer lease take them all"
        else:
            return
        raise UsageError(f"{claim} is not free: {holder}: {advice}")


@contextlib.contextmanager
def for_work(mode: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the CPU inside the block: an installation disturbs what others measure, and is disturbed by nothing."""
    lease = Lease(mode, say)
    try:
        lease.take_for_work()
        yield
    finally:
        lease.close()


class _Wait:
    """Shows people that a lease waits: for whom, once, and then for how long."""

    def __init__(self, claim: Claim, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._claim = claim
        self._say = say
        self._clock = clock
        self._began: float | None = None
        self._next = LINE_SECONDS

    def show(self, holder: str, before: int) -> bool:
        """Say who has the device, and how many others wait for it. Returns whether this is the first time."""
        first = self._began is None
        others = f"; {before} more {'waits' if before == 1 else 'wait'} before this" if before else ""
        if self._began is None:
            self._began = self._clock()
            self._say(Notice(f"waiting for {self._claim}: {holder}{others}"))  # a line, for the count is below it
        seconds = self._clock() - self._began
        if os.isatty(2):
            _on_terminal(f"\r  waiting for {self._claim}: {seconds:.0f} s{others}\033[K")
        elif seconds >= self._next:
            self._next *= 2
            self._say(f"waiting for {self._claim} for {seconds:.0f} s: {holder}{others}")
        return first

    def clear(self) -> None:
        """Take the count off the terminal."""
        if self._began is not None and os.isatty(2):
            _on_terminal("\r\033[K")

    def end(self) -> None:
        """Say that the wait is over."""
        self.clear()
        if self._began is not None:
            self._say(f"{self._claim} is free, after {self._clock() - self._began:.0f} s")


def _on_terminal(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal is gone
        os.write(2, text.encode())


def _order(claim: Claim) -> tuple[bool, str]:
    """Cards first, so that nobody keeps the CPU while waiting for a card."""
    return claim.device == CPU, claim.device


def _merged(requests: Iterable[Claim]) -> frozenset[Claim]:
    """One claim for each device: shared only if nobody wants it alone."""
    shared: dict[str, bool] = {}
    for claim in requests:
        shared[claim.device] = shared.get(claim.device, True) and claim.shared
    return frozenset(Claim(device, is_shared) for device, is_shared in shared.items())


def _announced() -> list[str]:
    """What this process and those that started it hold. The environment names it to the processes that we start."""
    return [word for word in os.environ.get(LEASED, "").split(";") if word]


def _announce(words: list[str]) -> None:
    if words:
        os.environ[LEASED] = ";".join(words)
    else:
        os.environ.pop(LEASED, None)


def _covered(claim: Claim) -> bool:
    """Whether this process holds the device already, or one that started it."""
    held = [*_HELD.values(), *map(Claim.of_word, _announced())]
    return any(one.device == claim.device and (claim.shared or not one.shared) for one in held)
