"""How far a run is, and about how long it still takes: what its groups took when they last ran."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ipexperf import units


@dataclass(slots=True)
class Pace:
    """The cases of a run by their groups."""

    groups: Mapping[str, Sequence[object]]
    took: Mapping[str, float] = field(default_factory=dict)
    """The seconds a case of each group that ran before, whichever of its cases that were."""
    measured: dict[str, float] = field(default_factory=dict)
    """The same of this run."""
    _left: tuple[str, ...] = ()
    _began: float | None = None

    def __post_init__(self) -> None:
        self._left = tuple(self.groups)

    @property
    def done(self) -> bool:
        """Whether every group is measured."""
        return not self._left

    @property
    def seconds(self) -> float | None:
        """About how long the whole run takes. None if a group has not run before."""
        return self._sum(self.groups)

    def begin(self) -> None:
        """A group is measured now."""
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """This group is measured, perhaps once more."""
        assert self._began is not None  # noqa: S101 - it was begun
        seconds = (time.monotonic() - self._began) / max(1, len(self.groups.get(name, ())))
        self.measured[name] = self.measured.get(name, 0.0) + seconds
        self._left, self._began = tuple(other for other in self._left if other != name), None

    def announced(self) -> str:
        """A line for the beginning of the run, or an empty text if nothing of it ran before."""
        known = self._sum(set(self.groups) & set(self.took))
        if not known:
            return ""
        cases = sum(len(cases) for name, cases in self.groups.items() if name in self.took)
        new = sum(map(len, self.groups.values())) - cases
        beside = f", and {units.plural(new, 'case')} that never ran here" if new else ""
        return f"{units.plural(cases, 'case')}: about {_about(known)}, as last time{beside}"

    def __str__(self) -> str:
        left = self._left
        count = sum(map(len, self.groups.values()))
        done = count - sum(len(self.groups[name]) for name in left)
        seconds = self._sum(left)
        if seconds is not None and self._began is not None:
            seconds -= time.monotonic() - self._began
        rest = f", about {_about(seconds)} left" if seconds is not None and seconds > 0 else ""
        return f"{done} of {units.plural(count, 'case')}{rest}"

    def _sum(self, names: Collection[str]) -> float | None:
        if not all(name in self.took for name in names):
            return None
        return sum(self.took[name] * len(self.groups[name]) for name in names)


def _about(seconds: float) -> str:
    """A time that is not known to the second."""
    return f"{seconds:.0f} s" if seconds < 60 else f"{round(seconds / 60)} min"
