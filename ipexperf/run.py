"""One run: the plan, the conductor, the judge and the history tied together, case by case."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.bench import registry
from ipexperf.case import AXES
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import ask_facts
from ipexperf.plan import matrix
from ipexperf.result import Measurement, Verdict

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options


def plan(options: Options) -> matrix.Plan:
    """The plan for these options on this machine: names are checked before anything is asked of torch."""
    registry.load(options.load)
    matrix.check_names(options)
    return matrix.make(options, ask_facts(options.python, matrix.accelerators(options)))


class Run:
    """One invocation of the suite. A case is in the database the moment it ends."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        self.options = options
        self.plan = plan(options)
        self.measurements: list[Measurement] = []
        self.verdicts: dict[str, Verdict] = {}
        self.uid: str | None = None
        self._conductor = Conductor(options, self.plan.launches, folder, say)
        self._folder = folder
        self._history: Any = None
        self._command: tuple[str, ...] = ()

    def open(self, command: tuple[str, ...]) -> None:
        """Opens the history before anything is measured: a bad path is found now, not after an hour."""
        self._command = command
        if self.options.no_record or self._history is not None:
            return
        from ipexperf.history.store import History

        self._history = History.open(self.options.db)

    def measure(self, case: Case) -> tuple[Measurement, Verdict]:
        """Measures, judges and records one case."""
        from ipexperf.judge import screen
        from ipexperf.judge.policy import Policy

        measurement = self._conductor.measure(case)
        verdict = screen.judge(measurement, self._baseline(measurement), Policy())
        self.measurements.append(measurement)
        self.verdicts[case.uid] = verdict
        if self._history is not None:
            if self.uid is None:
                meta = {"suite": self._folder.name, "command": list(self._command), "preset": self.options.preset}
                self.uid = self._history.start_run(measurement.environment, meta)
            self._history.record(self.uid, measurement, verdict)
        return measurement, verdict

    def _baseline(self, measurement: Measurement) -> CaseBaseline | None:
        """What was accepted for this case on the machine that it was measured on."""
        from ipexperf.judge import baseline

        return baseline.read(self.options.baselines, measurement.environment["machine_key"]).find(measurement.case)

    def settled(self) -> RunVerdict:
        """What the run as a whole says: many cases are many chances of a false alarm."""
        from ipexperf.judge.policy import Policy
        from ipexperf.judge.run import settle

        return settle(self.verdicts, Policy())

    def finish(self, status: str) -> None:
        """Closes the history with how the run ended."""
        if self._history is not None:
            if self.uid is not None:
                self._history.finish_run(self.uid, status)
            self._history.close()
            self._history = None

    def block(self, measurement: Measurement, verdict: Verdict) -> str:
        """The text of a failed case."""
        from ipexperf.judge.environment import differences
        from ipexperf.report.block import failure_block

        known = self._baseline(measurement)
        found = differences(known.environment, measurement.environment) if known else []
        return failure_block(measurement, verdict, found, self._reproduce(measurement.case), self._accept(measurement))

    def _reproduce(self, case: Case) -> str:
        axes = " ".join(f"--{axis} {getattr(case, axis)}" for axis in AXES)
        return f"pytest suites/ {axes} --perf-batch {case.batch} --perf-launches {self.plan.launches}"

    def _accept(self, measurement: Measurement) -> str:
        run = self.uid[:18] if self.uid else "last"
        return f'ipexperf baseline accept {run} --case {measurement.case.id} --regression-ok --reason "WHY"'

    def summary(self) -> list[str]:
        """What the person reads at the end."""
        from ipexperf.report.table import summary_lines

        where = []
        if self.uid is not None:
            database = "" if self.options.db == "ipexperf.db" else f" --db {shlex.quote(self.options.db)}"
            where = [
                f"ipexperf show last{database}    every number of this run",
                f"ipexperf trend{database}        the same cases through time",
                f'ipexperf baseline accept last{database} --reason "..."    judge later runs against this one',
            ]
        if self.plan.left_out:
            where.append("ipexperf cases --why    every cell that was left out, and its reason")
        line = self.settled().line
        return [
            *summary_lines(self.measurements, self.verdicts, self.plan.reasons, where),
            *([line] if line else []),
        ]
