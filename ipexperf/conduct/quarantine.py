"""A device that was lost is left alone for the rest of the run: what it says next is no measurement."""

from __future__ import annotations

from collections.abc import Iterable

from ipexperf.case import Case
from ipexperf.result import Launch


class Quarantine:
    """The devices that were lost, each with the case that lost it."""

    def __init__(self) -> None:
        self._lost: dict[str, str] = {}

    def look(self, case: Case, launches: Iterable[Launch]) -> None:
        """Takes in the device of a case that lost it."""
        if any(launch.outcome == "device_lost" for launch in launches):
            self._lost.setdefault(case.device, case.id)

    def launches(self, case: Case) -> list[Launch]:
        """What stands for the launches of a case whose device is in quarantine: none was made."""
        if case.device not in self._lost:
            return []
        reason = f"{case.device} is in quarantine since {self._lost[case.device]} lost it: not launched"
        return [Launch(0, "device_lost", reason)]
