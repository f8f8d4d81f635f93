"""What a run writes into the history: each case the moment it is known, the rounds, and how the run ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.conduct import ending

if TYPE_CHECKING:
    from ipexperf.history.store import History, Status
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement, RoundRecord, Verdict


class Recorder:
    """One run in the history. The run begins there with its first case; a signal waits until a write is over."""

    def __init__(self, options: Options, folder: Path, command: Sequence[str]) -> None:
        self.uid: str | None = None
        self._options = options
        self._folder = folder
        self.command = command
        self._history: History | None = None
        self._recorded: set[str] = set()

    def open(self) -> None:
        """Opens the history before anything is measured: a bad path is found now, not after an hour."""
        if self._options.no_record or self._history is not None:
            return
        from ipexperf.history.store import History

        self._history = History.open(self._options.db)

    @property
    def history(self) -> History | None:
        """The open history, or None where nothing is recorded."""
        return self._history

    def required(self) -> History:
        """The open history, for what cannot be without one."""
        assert self._history is not None  # noqa: S101 - options that ask for this are refused without one
        return self._history

    def case(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> None:
        """Writes one case, in the place of what this run wrote of it before."""
        if self._history is None:
            return
        with ending.uninterrupted():
            if self.uid is None:
                self.uid = self._history.start_run(measurement.environment, self._meta())
            uid = measurement.case.uid
            self._history.record(self.uid, measurement, verdict, policy, again=uid in self._recorded)
            self._recorded.add(uid)

    def _meta(self) -> dict[str, Any]:
        from ipexperf.history.addresses import hidden

        command = [hidden(word) for word in self.command]
        return {"suite": self._folder.name, "command": command, "preset": self._options.preset}

    def round(self, one: RoundRecord) -> None:
        """Writes a round whose cases are on record."""
        if self._history is None or self.uid is None:
            return
        with ending.uninterrupted():
            self._history.record_round(self.uid, one)

    def finish(
        self, status: Status, settled: RunVerdict | None = None, tested: Mapping[str, Verdict] | None = None
    ) -> None:
        """Writes what the run says as a whole, beside what each test said, and how it ended."""
        from ipexperf.judge.policy import Policy

        if self._history is None or self.uid is None:
            return
        with ending.uninterrupted():
            if settled is not None and self._recorded:
                whole = {"line": settled.line, "shift": settled.shift, "fails": settled.fails, "slower": settled.slower}
                moved = {x: verdict for x, verdict in settled.verdicts.items() if verdict != (tested or {}).get(x)}
                changed = {x: verdict for x, verdict in moved.items() if x in self._recorded}
                self._history.settle(self.uid, whole, changed, Policy().for_run())
            self._history.finish_run(self.uid, status)

    def close(self) -> None:
        if self._history is not None:
            self._history.close()
            self._history = None
