"""Launch nothing more on a device that was lost during this run."""

from __future__ import annotations

from collections.abc import Iterable

from ipexperf.case import Case
from ipexperf.result import Launch


class Quarantine:
    """The lost devices, each with the case that lost it."""

    def __init__(self) -> None:
        self._lost: dict[str, str] = {}

    def quarantine_if_lost(self, case: Case, launches: Iterable[Launch]) -> None:
        """Quarantine the device of the case if one of its launches lost it."""
        if any(launch.outcome == "device_lost" for launch in launches):
            self._lost.setdefault(case.device, case.id)

    def launches(self, case: Case) -> list[Launch]:
        """The launch record of a case whose device is in quarantine. Empty if it is not."""
        if case.device not in self._lost:
            return []
        reason = f"{case.device} is in quarantine since {self._lost[case.device]} lost it: not launched"
        return [Launch(0, "device_lost", reason)]
