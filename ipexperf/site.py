"""Where the groups of a run are measured: on this host, unless the run is given another site."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ipexperf import scratch
from ipexperf.case import Case
from ipexperf.compare import locked
from ipexperf.compare.request import ArmRequest, GroupRequest, LockArm
from ipexperf.conduct import placement
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import ask_facts
from ipexperf.environments import make, sources
from ipexperf.errors import LockError
from ipexperf.plan import matrix
from ipexperf.result import Measurement, RoundRecord

if TYPE_CHECKING:
    from ipexperf.bench.machine.facts import Facts
    from ipexperf.bench.machine.source import Replaced
    from ipexperf.compare.against import Against, Judged, OtherSide
    from ipexperf.compare.walk import Suite
    from ipexperf.environments.sources import Kept
    from ipexperf.environments.store import Store
    from ipexperf.lock import Lock
    from ipexperf.plan.gates import GateWish
    from ipexperf.plan.groups import Group
    from ipexperf.plan.options import Options


class Playing(Protocol):
    """A group while its rounds are made."""

    def play(self) -> Iterator[None]:
        """Make all rounds. Yields after each but the last, of which the caller keeps the end."""

    @property
    def rounds(self) -> Sequence[RoundRecord]:
        """The rounds so far that count."""


class Running(Playing, Protocol):
    """A group while it is being measured. Its results so far can be read at any time."""

    def measurements(self, cut: str = "") -> dict[Case, Measurement]:
        """The measurement of each case that was begun. `cut` is the reason for cases that still miss launches."""


@runtime_checkable
class Comparing(Playing, Protocol):
    """A group while it is being compared with another arm. Its results so far can be read at any time."""

    def judged(self, cut: str = "") -> Mapping[Case, Judged]:
        """Each case judged on what is known. `cut` is the reason for cases that were not begun."""

    def other_sides(self) -> Mapping[Case, OtherSide]:
        """The results of the other arm of each case whose comparison is over. Cases that had none are left out."""


def facts(options: Options) -> Facts:
    """The facts of the workers' interpreter, and of this machine as placed workers see it."""
    devices = matrix.accelerators(options)
    placed = placement.find(options)
    matrix.variables(options, devices)  # which says now if there is no such card, or a device of the user's is wrong
    gathered = ask_facts(options.python, devices, packages=matrix.packages(), index=options.device_index)
    return placement.facts_of(gathered, placed)


def in_environment(
    options: Options,
    lock: Lock,
    folder: Path,
    say: Callable[[str], None],
    stores: Sequence[Store] = (),
    *,
    collecting: bool = False,
) -> Options:
    """The options with the interpreter of a lock's environment, which is made unless this host has it.

    `stores` have packages for it, beside that of the cache. Variables stay as they are: they belong to the host. Those
    that the lock has otherwise are named. When tests are only collected, nothing is made: raises LockError if the
    environment is not there, because another interpreter may have other cases.
    """
    make.check_possible(lock)
    cache = scratch.cache(options.cache, folder)
    if collecting and make.find(cache.absolute(), lock) is None:
        raise LockError(
            f"--collect-only makes nothing, and there is no environment of the lock {lock.digest} yet: leave out "
            "--collect-only once"
        )
    python = make.make(cache, lock, say, stores=stores, leasing=options.lease).python
    for name, value in lock.variables:
        if os.environ.get(name) != value:
            say(f"the lock {lock.digest} has {name}={value}, and here it is {os.environ.get(name, 'unset')}")
    return dataclasses.replace(options, python=python)


class Site:
    """Measures the groups of one run on this host. A site of other hosts overrides all of it."""

    ahead = False
    """Whether the site measures groups by itself, so that the run may prepare them before their turn."""
    suite: Suite | None = None
    """The session of pytest whose tests measure functions, if any do."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        self.options = options
        self._folder, self._say = folder, say
        self._cache = scratch.cache(options.cache, folder)
        self._conductor: Conductor | None = None

    @property
    def conductor(self) -> Conductor:
        """Where arms that are compared in this process get what they need.

        Made on first use, because a plan must be possible first.
        """
        if self._conductor is None:
            self._conductor = Conductor(self.options, self._folder, self._say)
        return self._conductor

    def facts(self, options: Options) -> Facts:
        """What the plan must know of the interpreter and the machine."""
        return facts(options)

    def reserve(self, cases: Iterable[Case], seconds: float | None = None) -> None:
        """Take the devices of these cases, probably for so long."""
        self.conductor.reserve(cases, seconds)

    def running(self, request: GroupRequest) -> Running:
        """Prepare the rounds of a group."""
        if request.group.cases[0].is_call:
            from ipexperf.compare.walk import WalkRun

            return WalkRun(self._suite_of_calls, request, self.conductor, self._say)
        from ipexperf.compare.group import GroupRun

        return GroupRun(request, self.conductor, self._say)

    def against(self, options: Options, cases: Sequence[Case]) -> Against | None:
        """The other arm of the run, or None. Raises UsageError if some case cannot run in it."""
        from ipexperf.compare import against

        return against.find(options, cases, self._say)

    def check(self, against: Against) -> None:
        """Raise UsageError before anything is measured if the other arm cannot import what it needs."""
        against.check(self.options)

    def comparing(self, against: Against, group: Group, wishes: Sequence[GateWish]) -> Comparing:
        """Prepare the rounds in which a group is compared. `wishes` are those of its cases."""
        from ipexperf.compare.against import AgainstRun

        suite = self._suite_of_calls if group.cases[0].is_call else None
        cases = list(zip(group.cases, wishes, strict=True))
        return AgainstRun(against, cases, self.conductor, self._say, suite=suite)

    @property
    def _suite_of_calls(self) -> Suite:
        assert self.suite is not None  # noqa: S101 - set before any function is measured
        return self.suite

    def machine_key(self, device: str, facts: Facts) -> str:
        """The machine_key of what is measured on this device."""
        return locked.machine_key(device, facts, self.options)

    def software(self) -> Lock:
        """The lock of what is measured."""
        return locked.current_lock(self.options)

    def locked(self, request: ArmRequest, stores: Sequence[Store] = ()) -> LockArm:
        """Make the software of a lock an arm, which may take minutes. Raises LockError if it cannot be made again.

        `stores` have packages for the lock, beside that of the cache.
        """
        prepared = locked.prepare(request, self.options, self._cache, self._say, stores)
        locked.against(request, prepared, self.options).check(self.options)
        return prepared

    def tree_of(self, kept: Kept) -> Replaced:
        """Make the tree of an accepted source. Raises LockError if it cannot be had again."""
        return sources.tree_of(kept, self._cache, self._say)

    def meta(self) -> dict[str, object]:
        """The facts about the site that the history records."""
        return {}

    def close(self) -> None:
        """End everything and give the devices back."""
        if self._conductor is not None:
            self._conductor.close()
