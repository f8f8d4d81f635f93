"""Writes a run into the history: each case as soon as it is known, its rounds, and how the run ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.bench.machine.variables import masked_command
from ipexperf.conduct import interrupts
from ipexperf.errors import IpexperfError
from ipexperf.judge import remeasure

if TYPE_CHECKING:
    from ipexperf.history.store import History, Status
    from ipexperf.judge.bisection_record import BisectionRecord
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement, RoundRecord, Verdict


class Recorder:
    """One run in the history, created with its first case. Signals wait until a write is complete."""

    def __init__(self, options: Options, folder: Path, command: Sequence[str]) -> None:
        self.uid: str | None = None
        self._options = options
        self._folder = folder
        self.command = command
        self._history: History | None = None
        self._recorded: set[str] = set()

    def open(self) -> None:
        """Open the history before anything is measured, so that a bad path fails now and not after an hour."""
        if self._options.no_record or self._history is not None:
            return
        from ipexperf.history.store import History

        self._history = History.open(self._options.db)

    @property
    def history(self) -> History | None:
        """The open history, or None if nothing is recorded."""
        return self._history

    def required(self) -> History:
        """The open history, for callers whose options require one."""
        assert self._history is not None  # noqa: S101 - options that ask for this are refused without one
        return self._history

    def case(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> None:
        """Write one case, replacing what this run wrote of it before."""
        if self._history is None:
            return
        with interrupts.deferred():
            if self.uid is None:
                self.uid = self._history.start_run(measurement.environment, self._meta())
            uid = measurement.case.uid
            self._history.record(self.uid, measurement, verdict, policy, again=uid in self._recorded)
            self._recorded.add(uid)

    def so_far(
        self,
        judged: Callable[[], Iterable[tuple[Measurement, Verdict, Constants]]],
        write_rounds: Callable[[], None],
    ) -> None:
        """Write what unfinished cases have after a round, so that a killed process loses only the round in flight.

        `write_rounds` writes the new rounds after their cases. Errors are dropped: the case is written again when it
        is finished, and fails then.
        """
        if self._history is None:
            return
        with contextlib.suppress(IpexperfError):
            for measurement, verdict, policy in judged():
                if measurement.launches:
                    self.case(measurement, remeasure.unsettled(verdict), policy)
            write_rounds()

    def _meta(self) -> dict[str, Any]:
        from ipexperf.history.addresses import hidden

        command = [hidden(word) for word in masked_command(self.command)]
        return {"suite": self._folder.name, "command": command, "preset": self._options.preset}

    def round(self, one: RoundRecord) -> None:
        """Write a round whose cases are already recorded."""
        if self._history is None or self.uid is None:
            return
        with interrupts.deferred():
            self._history.record_round(self.uid, one)

    def bisection(self, record: BisectionRecord) -> None:
        """Write what a search for a culprit found. One that measured nothing is not written."""
        if self._history is None or not record.machine_key:
            return
        with interrupts.deferred():
            self._history.record_bisection(record, self._folder.name)

    def finish(
        self, status: Status, settled: RunVerdict | None = None, tested: Mapping[str, Verdict] | None = None
    ) -> None:
        """Write the verdict on the run as a whole, verdicts that it changed, and how the run ended."""
        from ipexperf.judge.policy import Policy

        if self._history is None or self.uid is None:
            return
        with interrupts.deferred():
            if settled is not None and self._recorded:
                names = ("line", "shift", "fails", "slower", "spoilt")
                whole = {name: getattr(settled, name) for name in names}
                moved = {x: verdict for x, verdict in settled.verdicts.items() if verdict != (tested or {}).get(x)}
                changed = {x: verdict for x, verdict in moved.items() if x in self._recorded}
                self._history.settle(self.uid, whole, changed, Policy().for_run())
            self._history.finish_run(self.uid, status)

    def close(self) -> None:
        if self._history is not None:
            self._history.close()
            self._history = None
