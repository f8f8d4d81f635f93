"""Writes a run into the history: each case as soon as it is known, its rounds, and how the run ended."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ipexperf import scratch
from ipexperf.bench import loading, registry
from ipexperf.conduct import interrupts, process
from ipexperf.errors import HistoryError, IpexperfError, UnavailableError
from ipexperf.judge import remeasure
from ipexperf.redaction import redacted_command
from ipexperf.report.units import plural

if TYPE_CHECKING:
    from ipexperf.history.spool import Spool
    from ipexperf.history.store import History, Status
    from ipexperf.judge.bisection import BisectionRecord
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement, RoundRecord, Verdict

T = TypeVar("T")


class Recorder:
    """One run in the history, created with its first case. Signals wait until a write is complete.

    If the history cannot be used any more, because its server goes away or its disk is full, the whole run is kept in
    another file of this host, from where it is delivered later.
    """

    def __init__(
        self,
        options: Options,
        folder: Path,
        command: Sequence[str],
        say: Callable[[str], None],
        subcommand: str = "",
    ) -> None:
        """`say` reports a change of file and what was delivered. `subcommand`: that of `ipexperf` which measures."""
        self.uid: str | None = None
        self._options = options
        self._folder = folder
        self.started_by(command)
        self._say = say
        self._subcommand = subcommand
        self._history: History | None = None
        self._recorded: set[str] = set()
        self._spool: Spool | None = None
        self._written: dict[object, Callable[[History], None]] = {}
        """The writes of this run, to repeat them in another file. A later write of a case replaces an earlier one."""
        self._claim = contextlib.ExitStack()
        """The claim on the file of this run while it is written in place of the history."""
        self.stand_in: Path | None = None
        """The file of this run while the history cannot be used."""
        self.rounds: list[RoundRecord] = []
        """The rounds of the run so far."""

    def started_by(self, command: Sequence[str]) -> None:
        """Record this command, without its secrets, which no text shows from now on."""
        self._command = redacted_command(command)

    def open(self) -> None:
        """Open the history before anything is measured, so that a bad path fails now and not after an hour."""
        if "record" in self._options.without or self._history is not None:
            return
        from ipexperf.history.spool import Spool
        from ipexperf.history.store import History

        self._spool = Spool.of(self._options.db, scratch.cache(self._options.cache, self._folder))
        try:
            self._history = History.open(self._options.db)
            if self._spool is not None:
                self._spool.reached()
                self._deliver(self._history)
        except UnavailableError as error:
            if self._history is None and (self._spool is None or not self._spool.reached_before):
                raise
            self._keep_here(error)

    @property
    def history(self) -> History | None:
        """The open history, or None if nothing is recorded."""
        return self._history

    def ask(self, question: Callable[[History], T], otherwise: T) -> T:
        """Return the answer of the history, or `otherwise` if nothing is recorded or it cannot be used any more."""
        if self._history is None:
            return otherwise
        try:
            return question(self._history)
        except UnavailableError as error:
            self._keep_here(error)
            return otherwise

    def _keep_here(self, error: UnavailableError) -> None:
        """Copy this run so far into a file of this host, and write there from now on."""
        from ipexperf.history import sqlite_files
        from ipexperf.history.values import run_uid

        if self._spool is None:
            raise error
        with interrupts.deferred():
            name = f"{self.uid or run_uid()}.db"
            for path in (self._spool.folder / name, self._spool.spare / name):
                if path == self.stand_in:
                    continue
                try:
                    history, claim = self._copy_to(self._spool, path)
                except HistoryError:
                    continue
                if self._history is not None:
                    self._history.close()
                self._claim.close()
                if self.stand_in is not None:
                    sqlite_files.delete(self.stand_in)
                self._history, self._claim, self.stand_in = history, claim, path
                break
            else:
                raise error
        self._say(f"{error} The run goes on; it is kept in {self.stand_in} until it can be delivered.")

    def _copy_to(self, spool: Spool, path: Path) -> tuple[History, contextlib.ExitStack]:
        """Write all of this run so far into a new file. Return it open, with the claim on it."""
        from ipexperf.history import sqlite_files
        from ipexperf.history.store import History

        with contextlib.ExitStack() as claim:
            if not claim.enter_context(spool.claimed(path)):
                raise HistoryError(f"another process writes {path}.")
            with contextlib.ExitStack() as failed:
                failed.callback(sqlite_files.delete, path)
                history = History.open(path)
                failed.callback(history.close)
                for write in self._written.values():
                    write(history)
                failed.pop_all()
            return history, claim.pop_all()

    def _write(self, key: object, write: Callable[[History], None]) -> None:
        """Write a part of this run, to its history or to the file that stands in for it.

        A later write with the same key replaces this one if the run is copied to another file.
        """
        assert self._history is not None  # noqa: S101 - the callers write nothing without one
        with interrupts.deferred():
            try:
                write(self._history)
            except UnavailableError as error:
                self._keep_here(error)
                write(self._history)
            self._written[key] = write

    def _deliver(self, history: History) -> None:
        assert self._spool is not None  # noqa: S101 - the caller has one
        delivered = self._spool.deliver(history)
        if delivered.files:
            self._say(f"delivered: {plural(delivered.files, 'run')} that waited on this host")
        for problem in delivered.problems:
            self._say(f"a run that waits on this host cannot be delivered: {problem}")

    def case(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> None:
        """Write one case, replacing what this run wrote of it before."""
        if self._history is None:
            return
        with interrupts.deferred():
            if self.uid is None:
                self._begin(measurement.environment)
            run, again = self.uid or "", measurement.case.uid in self._recorded
            self._write(
                measurement.case, lambda history: history.record(run, measurement, verdict, policy, again=again)
            )
            self._recorded.add(measurement.case.uid)

    def _begin(self, environment: Mapping[str, Any]) -> None:
        from ipexperf.history.values import now, run_uid

        uid, began, meta = run_uid(), now(), self._meta()

        def begin(history: History) -> None:
            history.start_run(environment, meta, uid=uid, started_at=began)

        self.uid = uid
        try:
            self._write("begin", begin)
        except IpexperfError:
            self.uid = None
            raise

    def so_far(
        self,
        judged: Callable[[], Iterable[tuple[Measurement, Verdict, Constants]]],
        rounds: Callable[[], Iterable[RoundRecord]],
    ) -> None:
        """Write what unfinished cases have after a round, so that a killed process loses only the round in flight.

        Errors are dropped: the case is written again when it is finished, and fails then.
        """
        if self._history is None:
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
            "load": [x for x in self._options.load if x not in targets.values() and not loading.of_package(x)],
            "variables": process.tuned_by_user(os.environ),
        }
        meta = {"suite": self._folder.name, "command": self._command, "preset": self._options.preset, "again": again}
        return {**meta, **({SUBCOMMAND: self._subcommand} if self._subcommand else {})}

    def add_rounds(self, records: Iterable[RoundRecord]) -> None:
        """Write those of the rounds that are new. Their cases must be recorded already."""
        known = {record.uid for record in self.rounds}
        for record in records:
            if record.uid not in known:
                with interrupts.deferred():
                    self._write_round(record)
                    self.rounds.append(record)

    def _write_round(self, record: RoundRecord) -> None:
        if self._history is None or self.uid is None:
            return
        run = self.uid
        self._write(record.uid, lambda history: history.record_round(run, record))

    def bisection(self, record: BisectionRecord) -> None:
        """Write the result of a search for a culprit, unless the search measured nothing."""
        if self._history is None or not record.machine_key:
            return
        self._write(object(), lambda history: history.record_bisection(record, self._folder.name))

    def finish(
        self,
        status: Status,
        settled: RunVerdict | None = None,
        tested: Mapping[str, Verdict] | None = None,
        took: Mapping[str, float] | None = None,
    ) -> None:
        """Write the verdict on the run as a whole, verdicts that it changed, how long groups took, and how it ended."""
        from ipexperf.judge.policy import Policy

        if self._history is None or self.uid is None:
            return
        run = self.uid
        with interrupts.deferred():
            if settled is not None and self._recorded:
                names = ("line", "shift", "fails", "slower", "spoilt")
                whole = {name: getattr(settled, name) for name in names} | {"took": took or {}}
                moved = {x: verdict for x, verdict in settled.verdicts.items() if verdict != (tested or {}).get(x)}
                changed = {x: verdict for x, verdict in moved.items() if x in self._recorded}
                policy = Policy().for_run()
                self._write("settle", lambda history: history.settle(run, whole, changed, policy))
            self._write("finish", lambda history: history.finish_run(run, status))

    def close(self) -> None:
        """Close the history. A run that was kept on this host is delivered if the server is back."""
        if self._history is None:
            return
        self._history.close()
        self._history = None
        self._claim.close()
        if self.stand_in is not None:
            self._deliver_at_last()

    def _deliver_at_last(self) -> None:
        from ipexperf.history.store import History

        try:
            with History.open(self._options.db) as history:
                self._deliver(history)
        except HistoryError as error:
            self._say(f"{error} {self.stand_in} waits: the next run delivers it, and so does `ipexperf db deliver`")
        else:
            self.stand_in = None
