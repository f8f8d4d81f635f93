"""The software of a candidate: named by its content, and made when it is to be measured."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ipexperf import live_baseline
from ipexperf.bench.machine.inventory import Inventory
from ipexperf.compare import locked
from ipexperf.conduct import lease
from ipexperf.environments import make
from ipexperf.errors import UsageError
from ipexperf.lock import Lock
from ipexperf.plan import arms, drivers
from ipexperf.plan.options import Options

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Installed:
    """Software that can be measured now: an interpreter and the variables of its workers."""

    python: str
    variables: tuple[tuple[str, str], ...]


class Software(Protocol):
    """The software of one candidate."""

    @property
    def key(self) -> str:
        """A name by content: software of the same key need not be measured twice."""

    def ready(self, cache: Path, say: Say) -> AbstractContextManager[Installed]:
        """Install it for as long as the block lasts. Raise LockError if it cannot be installed.

        Takes no lease: the caller, who measures it next, holds one already.
        """

    def lock(self, cache: Path) -> Lock | None:
        """Return the lock that installs it again, or None if it has none. `ready` was called before."""


@dataclass(frozen=True, slots=True)
class Locked:
    """The software of a lock."""

    of: Lock

    @property
    def key(self) -> str:
        return self.of.digest

    @contextlib.contextmanager
    def ready(self, cache: Path, say: Say) -> Iterator[Installed]:
        yield Installed(make.make(cache, self.of, say, leasing=lease.OFF).python, self.of.variables)

    def lock(self, cache: Path) -> Lock | None:
        del cache
        return self.of


@dataclass(frozen=True, slots=True)
class End:
    """An end of the search: its software, which is here."""

    lock: Lock
    python: str
    inventory: Inventory


def parsed(text: str, source: str) -> arms.ArmSpec:
    """Return the words of an end. Raise UsageError for what is no software."""
    words = arms.parse(text, source)
    if words.axes or words.knobs or words.source:
        how = "commits are searched by --commits A..B" if words.source else "choose the case with --model and the like"
        raise UsageError(f"{source} '{text}': an end is software and variables: {how}")
    return words


def end(text: str, source: str, options: Options, cache: Path, say: Say, *, remade: bool = True) -> End:
    """Return the end that a user names as an arm, with its environment made, as those of candidates are.

    Not `remade`: candidates differ by files alone, so an interpreter that is here serves as it is.
    """
    words = parsed(text, source)
    if words.lock:
        lock = live_baseline.lock_named(words.lock, options, source)
        make.check_possible(lock)
    else:
        lock = locked.current_lock(dataclasses.replace(options, python=words.python or options.python))
    lock = _with_variables(lock, words)
    python = words.python or options.python or sys.executable
    if remade or words.lock:
        python = make.make(cache, lock, say, [python], leasing=options.lease).python
    return End(lock, python, make.take_inventory(python))


def with_driver(base: End, folder: str) -> Locked:
    """The software of an end under the driver that was unpacked into this folder."""
    words = arms.parse(shlex.quote(f"{drivers.DRIVER}{folder}"), "--drivers")
    return Locked(_with_variables(base.lock, words))


def _with_variables(lock: Lock, words: arms.ArmSpec) -> Lock:
    return dataclasses.replace(lock, variables=tuple(sorted({**dict(lock.variables), **words.variables}.items())))
