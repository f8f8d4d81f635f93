"""A run's requests to the host where its cases are measured. A fleet sends them there."""

from __future__ import annotations

from dataclasses import dataclass

from ipexperf.case import Case
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.groups import Group
from ipexperf.result import Measurement


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A group to measure, and how."""

    group: Group
    launches: int
    twin: bool = False
    precision: float | None = None
    """Make more rounds, up to twice as many, while the interval of a ratio is wider than this."""
    before: tuple[tuple[Case, Measurement], ...] = ()
    """The measurements of an earlier pass: good launches are kept, and this pass is the last one."""
    numbers: tuple[tuple[Case, int], ...] = ()
    """The number of the first launch of each case, if earlier launches exist elsewhere."""
    fresh: bool = False
    """Fork no worker, because something is judged that only fresh processes tell."""
    changed: tuple[str, ...] = ()
    """The files that changed since the baselines were accepted, without those that were seen to be read."""


@dataclass(frozen=True, slots=True)
class ArmRequest:
    """The software of a lock, which some cases are to be compared with."""

    words: ArmWords
    """The arm in the user's words, which name the lock."""
    lock: str
    """The text of the lock."""
    cases: tuple[Case, ...]
    source: str
    """The option that named it."""
    policy: PairPolicy


@dataclass(frozen=True, slots=True)
class LockArm:
    """The software of a lock as an arm of a host."""

    words: ArmWords
    """With the interpreter and the variables of the lock."""
    able: tuple[tuple[Case, Case], ...]
    """Each case that can be measured in pairs, with the case that the arm runs for it."""
    unable: tuple[tuple[Case, str], ...]
    """Why the others cannot."""
