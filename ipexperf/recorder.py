"""Writes a run into the history: each case as soon as it is known, its rounds, and how the run ended."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ipexperf.bench import loading, registry
from ipexperf.conduct import interrupts, process
from ipexperf.errors import IpexperfError
from ipexperf.judge import remeasure
from ipexperf.redaction import redacted_command

if TYPE_CHECKING:
    from ipexperf.history.store import History, Status
    from ipexperf.judge.bisection import BisectionRecord
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement, RoundRecord
    from ipexperf.verdict import Verdict


class Recorder:
    """One run in the history, created with its first case. Signals wait until a write is complete."""

    def __init__(self, options: Options, folder: Path, command: Sequence[str], subcommand: str = "") -> None:
        """`subcommand`: that of `ipexperf` which measures."""
        self.uid: str | None = None
        self._options = options
        self._folder = folder
        self._command = redacted_command(command)  # no text shows its secrets from now on
        self._subcommand = subcommand
        self.history: History | None = None
        """The open history, or None if nothing is recorded."""
        self._recorded: set[str] = set()
        self.rounds: list[RoundRecord] = []
        """The rounds of the run so far."""

    def open(self) -> None:
        """Open the history before anything is measured, so that a bad path fails now and not after an hour."""
        if "record" in self._options.without or self.history is not None:
            return
        from ipexperf.history import addresses
        from ipexperf.history.store import History

        addresses.check_local(self._options.db)
        self.history = History.open(self._options.db)

    def case(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> None:
        """Write one case, replacing what this run wrote of it before."""
        if self.history is None:
            return
        with interrupts.deferred():
            if self.uid is None:
                self.uid = self.history.start_run(measurement.environment, self._meta())
            again = measurement.case.uid in self._recorded
            self.history.record(self.uid, measurement, verdict, policy, again=again)
            self._recorded.add(measurement.case.uid)

    def so_far(
        self,
        judged: Callable[[], Iterable[tuple[Measurement, Verdict, Constants]]],
        rounds: Callable[[], Iterable[RoundRecord]],
    ) -> None:
        """Write what unfinished cases have after a round, so that a killed process loses only the round in flight.

        Errors are dropped: the case is written again when it is finished, and fails then.
        """
        if self.history is None:
            return
        with contextlib.suppress(IpexperfError):
            for measurement, verdict, policy in judged():
                if measurement.launches:
                    self.case(measurement, remeasure.provisional(verdict), policy)
            self.add_rounds(rounds())

    def _meta(self) -> dict[str, Any]:
        from ipexperf.history.experiments import SUBCOMMAND

        models = {name: registry.models.get(name) for name in registry.models.names()}
        targets = {name: model.target for name, model in models.items() if model.target}
        again = {
            "targets": targets,
            "load": [
                name for name in self._options.load if name not in targets.values() and not loading.of_package(name)
            ],
            "variables": process.tuned_by_user(os.environ),
            **({"indices": dict(self._options.indices)} if self._options.indices else {}),
        }
        meta = {"suite": self._folder.name, "command": self._command, "preset": self._options.preset, "again": again}
        return {**meta, **({SUBCOMMAND: self._subcommand} if self._subcommand else {})}

    def add_rounds(self, records: Iterable[RoundRecord]) -> None:
        """Write those of the rounds that are new. Their cases must be recorded already."""
        known = {record.uid for record in self.rounds}
        for record in records:
            if record.uid not in known:
                with interrupts.deferred():
                    if self.history is not None and self.uid is not None:
                        self.history.record_round(self.uid, record)
                    self.rounds.append(record)

    def bisection(self, record: BisectionRecord) -> None:
        """Write the result of a search for a culprit, unless the search measured nothing."""
        if self.history is None or not record.machine_key:
            return
        with interrupts.deferred():
            self.history.record_bisection(record, self._folder.name)

    def finish(
        self,
        status: Status,
        settled: RunVerdict | None = None,
        tested: Mapping[str, Verdict] | None = None,
        dossiers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write the verdict on the run as a whole, verdicts that it changed, where dossiers are, and how it ended."""
        from ipexperf.judge.policy import Policy

        if self.history is None or self.uid is None:
            return
        with interrupts.deferred():
            if settled is not None and self._recorded:
                names = ("line", "shift", "fails", "slower", "spoilt")
                whole = {name: getattr(settled, name) for name in names} | {"dossiers": dict(dossiers)}
                changed = {
                    uid: verdict
                    for uid, verdict in settled.verdicts.items()
                    if uid in self._recorded and verdict != (tested or {}).get(uid)
                }
                policy = Policy().for_run()
                self.history.settle(self.uid, whole, changed, policy)
            self.history.finish_run(self.uid, status)

    def close(self) -> None:
        """Close the history."""
        if self.history is not None:
            self.history.close()
            self.history = None
