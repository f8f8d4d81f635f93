"""One run: the plan, the conductor, the judge and the history tied together, case by case."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf import known, paired
from ipexperf.bench import registry
from ipexperf.conduct import ending, placement, yardstick
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import ask_facts
from ipexperf.errors import IpexperfError, UsageError
from ipexperf.judge import again
from ipexperf.plan import matrix
from ipexperf.result import Measurement, Verdict

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options


def plan(options: Options) -> matrix.Plan:
    """The plan for these options on this machine: names are checked before anything is asked of torch."""
    registry.load(options.load)
    matrix.check_names(options)
    asked = matrix.accelerators(options)
    placed = placement.find(options)
    facts = ask_facts(options.python, asked, matrix.variables(options, asked), matrix.packages())
    return matrix.make(options, placement.seen(facts, placed))


class Run:
    """One invocation of the suite. A case is in the database the moment it ends."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        self.options = options
        known.check(options)
        self.plan = plan(options)
        self._against = paired.find(options, self.plan.cases)
        if options.yardstick:
            yardstick.find(options.cache or folder / ".ipexperf")
        self.measurements: list[Measurement] = []
        self.verdicts: dict[str, Verdict] = {}
        """What each test was decided by, by the uid of its case."""
        self.uid: str | None = None
        self._conductor = Conductor(options, self.plan.launches, folder, say)
        self._folder = folder
        self._history: Any = None
        self._command: tuple[str, ...] = ()
        self._known = known.Known(options, self.plan.cases, lambda: self._history)
        self._say = say
        self._suspects: dict[Case, tuple[Measurement, Verdict]] = {}
        """What looked slower, until it is measured again."""
        self._disturbed: dict[Case, tuple[Measurement, Verdict]] = {}
        """What the machine was not ours for, until it is measured again."""
        self._recorded: set[str] = set()
        self.trouble = ""
        """Why it is not recorded how the run ended, or an empty text."""
        self._report: Path | None = None
        self.unwritten = ""
        """Why there is no report though one was asked for, or an empty text."""

    def open(self, command: tuple[str, ...]) -> None:
        """Opens the history before anything is measured: a bad path is found now, not after an hour."""
        self._command = command
        if self.options.report is not None:
            self._check_report(self.options.report)
        if self._against is not None:
            self._against.check(self.options)
        else:
            self._known.read_files()
        if self.options.no_record or self._history is not None:
            return
        from ipexperf.history.store import History

        self._history = History.open(self.options.db)

    def _check_report(self, target: Path) -> None:
        """Refuses a folder that no report may be written to now, not after an hour."""
        from ipexperf.dashboard import folder

        if self.options.no_record:
            raise UsageError("--perf-report draws what is recorded: leave --perf-no-record away")
        folder.check(target)
        self._report = target.absolute()

    def measure(self, case: Case, tolerance: float | None = None) -> tuple[Measurement, Verdict] | None:
        """Measures, judges and records one case. None: it is to be measured again after the rest, and says why.

        `tolerance` is the test's own, where it says one: it is for pairs.
        """
        if self._against is not None:
            return self._keep(*self._against.measure(case, self._conductor, tolerance))
        disturbed, _ = self._disturbed.get(case, (None, None))
        measurement = self._conductor.again(case, disturbed) if disturbed else self._conductor.measure(case)
        verdict = self._known.judge(measurement)
        if case in self._suspects:
            first, before = self._suspects[case]
            measurement, verdict = again.together(first, measurement), again.settle(before, verdict)
        elif verdict.contended and disturbed is None and not measurement.cut:
            with ending.uninterrupted():
                self._record(*self._screened(measurement, verdict))
                self._disturbed[case] = measurement, verdict
            self._say(f"{case.id}: the machine was not ours: what it disturbed is measured again after the other cases")
            return None
        elif verdict.outcome == "regressed":
            with ending.uninterrupted():
                self._record(*self._screened(measurement, again.never(verdict)))
                self._disturbed.pop(case, None)
                self._suspects[case] = measurement, verdict
            self._say(f"{case.id}: it looks slower, and is measured again after the other cases")
            return None
        return self._keep(*self._screened(measurement, verdict))

    def _screened(self, measurement: Measurement, verdict: Verdict) -> tuple[Measurement, Verdict, Constants]:
        """What a case was found to be, with what ran."""
        policy = self._known.policy(measurement)
        return measurement, self._structured(measurement, verdict), policy

    def _keep(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> tuple[Measurement, Verdict]:
        """Records one case, and counts it once it is recorded: nothing more is measured of it."""
        with ending.uninterrupted():
            self._record(measurement, verdict, policy)
            self._disturbed.pop(measurement.case, None)
            self._suspects.pop(measurement.case, None)
            self.measurements.append(measurement)
            self.verdicts[measurement.case.uid] = verdict
        return measurement, verdict

    def _record(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> None:
        """Writes one case down, in the place of what was written of it when it was to be measured again."""
        if self._history is None:
            return
        if self.uid is None:
            from ipexperf.history.addresses import hidden

            command = [hidden(word) for word in self._command]
            meta = {"suite": self._folder.name, "command": command, "preset": self.options.preset}
            self.uid = self._history.start_run(measurement.environment, meta)
        uid = measurement.case.uid
        self._history.record(self.uid, measurement, verdict, policy, again=uid in self._recorded)
        self._recorded.add(uid)

    def _structured(self, measurement: Measurement, verdict: Verdict) -> Verdict:
        """The verdict, with what became of what ran: it is held against the digest that was accepted."""
        from ipexperf.judge import structure

        if measurement.failure or measurement.never_began:
            return verdict
        before = self._known.baseline(measurement)
        found = structure.judge(
            [launch.fingerprint for launch in measurement.counted],
            before.fingerprint if before and before.case == measurement.case else None,
            lambda: self._accepted(before) if before else None,
            gate=self.options.structure == "fail",
        )
        return dataclasses.replace(verdict, structure=found)

    def _accepted(self, before: CaseBaseline) -> Mapping[str, Any] | None:
        """What ran when the baseline was accepted, where this history has that run."""
        from ipexperf.history import ran

        return ran.accepted(self._history, before) if self._history is not None else None

    def settled(self) -> RunVerdict:
        """What the run says as a whole, beside what each test says."""
        from ipexperf.judge.policy import Policy
        from ipexperf.judge.run import settle

        return settle(self.verdicts, Policy().for_run())

    def finish(self, status: str) -> bool:
        """Closes the history with what the run says as a whole and how it ended, and tells whether all is well."""
        from ipexperf.errors import HistoryError

        with ending.uninterrupted():
            self._conductor.close()
            try:
                self._keep_waiting()
            except HistoryError as error:
                self.trouble = str(error)
            settled = self.settled()
            try:
                self._close(settled, status)
            except HistoryError as error:
                self.trouble = str(error)  # the numbers are still to be told: the summary says it
        if self._history is not None:
            self._write_report()
            self._history.close()
            self._history = None
        return not settled.fails and not self.trouble and not self.unwritten

    def _write_report(self) -> None:
        if self._report is None or self.uid is None:
            return
        from ipexperf.dashboard import site

        try:
            site.write(self._history, self._report)
        except IpexperfError as error:
            self.unwritten = str(error)  # as above

    def _keep_waiting(self) -> None:
        """Counts what the run ended too early to measure again: nobody called it regressed, or its numbers good."""
        while self._disturbed:
            _, (measurement, verdict) = self._disturbed.popitem()
            self._keep(*self._screened(measurement, verdict))
        while self._suspects:
            _, (measurement, verdict) = self._suspects.popitem()
            self._keep(*self._screened(measurement, again.never(verdict)))

    def _close(self, settled: RunVerdict, status: str) -> None:
        from ipexperf.judge.policy import Policy

        if self.uid is None:
            return
        if self._recorded:
            said = {"line": settled.line, "shift": settled.shift, "fails": settled.fails, "slower": settled.slower}
            moved = {x: verdict for x, verdict in settled.verdicts.items() if verdict != self.verdicts[x]}
            changed = {x: verdict for x, verdict in moved.items() if x in self._recorded}
            self._history.settle(self.uid, said, changed, Policy().for_run())
        self._history.finish_run(self.uid, status)

    def block(self, measurement: Measurement, verdict: Verdict) -> str:
        """The text of a failed case."""
        from ipexperf.judge.environment import differences
        from ipexperf.report.block import failure_block

        if self._against is not None:
            found = list((verdict.baseline or {}).get("differences", ()))
            return failure_block(measurement, verdict, found, self._reproduce(measurement.case), "")
        before = self._known.baseline(measurement)
        found = differences(before.environment, measurement.environment) if before else []
        return failure_block(measurement, verdict, found, self._reproduce(measurement.case), self._accept(measurement))

    def _reproduce(self, case: Case) -> str:
        from ipexperf.report.rerun import command

        # As it was named: a network of the user's own is not known by the name of its cases.
        model = registry.models.get(case.model)
        arm = None if self._against is None else self._against.words.text
        return command(case, self.plan.launches, target=model.target or "", plain_size=model.size, against=arm)

    def _accept(self, measurement: Measurement) -> str:
        """How to accept what was measured; nothing where it is on no record."""
        if self.options.no_record:
            return ""
        run, where = self.uid[:18] if self.uid else "last", "".join(self._where())
        return f'ipexperf baseline accept {run} --case {measurement.case.id}{where} --regression-ok --reason "WHY"'

    def _where(self) -> tuple[str, str]:
        """How the `ipexperf` command is told of the history and of the baselines, where it would look elsewhere."""
        from ipexperf.history.addresses import hidden

        database, folder = hidden(self.options.db), str(self.options.baselines)
        return (
            "" if database == "ipexperf.db" else f" --db {shlex.quote(database)}",
            "" if folder == "baselines" else f" --baselines {shlex.quote(folder)}",
        )

    def summary(self) -> list[str]:
        """What the person reads at the end."""
        from ipexperf.report.table import run_lines, summary_lines

        where = []
        if self.uid is not None:
            database, baselines = self._where()
            where = [
                f"ipexperf show last{database}    every number of this run",
                f"ipexperf trend{database}        the same cases through time",
            ]
            if self._against is None:
                accept = f'ipexperf baseline accept last{database}{baselines} --reason "..."'
                where.append(f"{accept}    judge later runs against this one")
            if self._report is not None and not self.unwritten:
                where.append(f"{self._report / 'index.html'}    the same, drawn")
        if self.plan.left_out:
            where.append("ipexperf cases --why    every cell that was left out, and its reason")
        settled = self.settled()
        slower = [x.case.id for x in self.measurements if x.case.uid in settled.slower]
        failed = any(verdict.fails for verdict in self.verdicts.values())
        return [
            *run_lines(settled.line, slower, fails=settled.fails and not failed),
            *summary_lines(self.measurements, settled.verdicts, self.plan.reasons, where, self.options.ablate),
            *([f"HOW THE RUN ENDED IS NOT RECORDED: {self.trouble}"] if self.trouble else []),
            *([f"THE REPORT IS NOT WRITTEN: {self.unwritten}"] if self.unwritten else []),
        ]

    def for_ci(self, environment: Mapping[str, str]) -> list[str]:
        """What a CI system is told, beside what people read: a summary that is appended, and lines for annotations."""
        from ipexperf.report import github, markdown

        if not self.measurements:
            return []
        settled = self.settled()
        cases = markdown.rows(self.measurements, settled.verdicts)
        return github.tell(cases, settled.line, self.uid, environment, fails=settled.fails)
