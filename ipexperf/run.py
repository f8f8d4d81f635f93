"""One run: the plan, the conductor, the judge and the history tied together, case by case."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf import known
from ipexperf.bench import registry
from ipexperf.compare import against
from ipexperf.conduct import ending, placement, yardstick
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import ask_facts
from ipexperf.errors import HistoryError, IpexperfError, UsageError
from ipexperf.judge import again
from ipexperf.judge.rounds import PRIORS, Pools, earlier
from ipexperf.plan import groups, matrix
from ipexperf.plan.groups import Group
from ipexperf.recorder import Recorder
from ipexperf.result import Measurement, RoundRecord, Verdict

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.against import Against
    from ipexperf.compare.group import GroupRun
    from ipexperf.history.store import Status
    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options


INTERRUPTED = "the run was interrupted before its other launches"
UNFINISHED = "the run ended before its other launches"
"""Why a case has fewer launches than planned, where nothing was wrong with it."""


def plan(options: Options) -> matrix.Plan:
    """The plan for these options on this machine: names are checked before anything is asked of torch."""
    registry.load(options.load)
    matrix.check_names(options)
    asked = matrix.accelerators(options)
    placed = placement.find(options)
    facts = ask_facts(options.python, asked, matrix.variables(options, asked), matrix.packages())
    return matrix.make(options, placement.seen(facts, placed))


def _check_twin(options: Options) -> None:
    """Refuses a twin where there are no rounds for it to be in."""
    source = options.sources.get("twin", "")
    if not source.startswith("--") or options.twin == "off":
        return
    if options.rounds == "off":
        raise UsageError(f"{source}: a twin is in the rounds of its case, and --perf-rounds off has none")
    if options.against is not None:
        raise UsageError(f"{source}: pairs have no twin: --perf-against '' measures each case against itself")


def _unsettled(verdict: Verdict) -> Verdict:
    """A verdict on part of a measurement: nobody is told that a case regressed before all of it was seen."""
    return again.never(verdict) if verdict.outcome == "regressed" else verdict


class Run:
    """One invocation of the suite. A case is in the database the moment it ends."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        self.options = options
        known.check(options)
        _check_twin(options)
        self.plan = plan(options)
        self._against = against.find(options, self.plan.cases)
        if options.yardstick:
            yardstick.find(options.cache or folder / ".ipexperf")
        self.measurements: list[Measurement] = []
        self.rounds: list[RoundRecord] = []
        self._prior = PRIORS
        """What earlier runs made usual for ratios on this machine."""
        self.verdicts: dict[str, Verdict] = {}
        """What each test was decided by, by the uid of its case."""
        self._conductor = Conductor(options, folder, say)
        self._folder = folder
        self._recorder = Recorder(options, folder, ())
        self._known = known.Known(options, self.plan.cases, self._recorder.required)
        self._say = say
        self._suspects: dict[Case, tuple[Measurement, Verdict]] = {}
        """What looked slower, until it is measured again."""
        self._disturbed: dict[Case, tuple[Measurement, Verdict]] = {}
        """What the machine was not ours for, until it is measured again."""
        self._expected: dict[Case, float | None] = {}
        """The cases that will be asked for, each with the tolerance of its test."""
        self._judged: dict[Case, tuple[Measurement, Verdict] | IpexperfError | None] = {}
        """What is known of cases that were measured; None: they are measured once more when they are asked for."""
        self._tolerances: dict[Case, float | None] = {}
        """The tolerance that each case in pairs was judged with."""
        self.trouble = ""
        """Why it is not recorded how the run ended, or an empty text."""
        self._report: Path | None = None
        self.unwritten = ""
        """Why there is no report though one was asked for, or an empty text."""

    def open(self, command: tuple[str, ...]) -> None:
        """Opens the history before anything is measured: a bad path is found now, not after an hour."""
        self._recorder.command = command
        if self.options.report is not None:
            self._check_report(self.options.report)
        if self._against is not None:
            self._against.check(self.options)
        else:
            self._known.read_files()
        self._recorder.open()

    @property
    def uid(self) -> str | None:
        """The run in the history, or None as long as nothing is recorded."""
        return self._recorder.uid

    def _check_report(self, target: Path) -> None:
        """Refuses a folder that no report may be written to now, not after an hour."""
        from ipexperf.dashboard import folder

        if self.options.no_record:
            raise UsageError("--perf-report draws what is recorded: leave --perf-no-record away")
        folder.check(target)
        self._report = target.absolute()

    def expect(self, cases: Iterable[tuple[Case, float | None]]) -> None:
        """Names the cases that will be asked for, each with the tolerance of its test: they share rounds."""
        self._expected = {}
        for case, tolerance in cases:
            self._expected.setdefault(case, tolerance)

    def measure(self, case: Case, tolerance: float | None = None) -> tuple[Measurement, Verdict] | None:
        """Measures, judges and records a case, with all that share its rounds.

        None: it is to be measured again after the rest, and says why. `tolerance` is the test's own: it is for pairs.
        What two tests ask for is measured once, unless they tolerate different slowdowns.
        """
        if self._tolerances.get(case, tolerance) != tolerance:
            self._judged.pop(case, None)
        if case not in self._judged:
            self._expected[case] = tolerance
            self._measure(self._group(case))
        answer = self._judged[case]
        if answer is None:
            del self._judged[case]
        if isinstance(answer, IpexperfError):
            raise answer
        return answer

    def _group(self, case: Case) -> Group:
        """The cases that are measured with this one: those of its kind that are still to come."""
        if self.options.rounds == "off":
            return Group(case.id, (case,))
        waiting = self._suspects if case in self._suspects else self._disturbed if case in self._disturbed else None
        others = self._expected if waiting is None else waiting
        name = groups.name(case)
        return Group(name, tuple(dict.fromkeys([case, *(one for one in others if groups.name(one) == name)])))

    def _measure(self, group: Group) -> None:
        """Makes the rounds of a group. What there is of it is kept, however they end."""
        try:
            if self._against is not None:
                self._measure_pairs(group, self._against)
            else:
                self._measure_rounds(group)
        finally:
            for case in group.cases:
                self._expected.pop(case, None)

    def _measure_pairs(self, group: Group, against: Against) -> None:
        from ipexperf.compare.against import AgainstRun

        cases = [(case, self._expected.get(case)) for case in group.cases]
        running = AgainstRun(against, cases, self._conductor, self._say)
        self._tolerances.update(cases)
        try:
            running.run(lambda: self._recorder.so_far(lambda: running.judged(UNFINISHED).values()))
        except KeyboardInterrupt:
            for measurement, verdict, policy in running.judged(INTERRUPTED).values():
                if measurement.launches:
                    self._keep(measurement, verdict, policy)
            raise
        for case, (measurement, verdict, policy) in running.judged().items():
            with self._failing_its_test(case):
                self._judged[case] = self._keep(measurement, verdict, policy)

    def _measure_rounds(self, group: Group) -> None:
        from ipexperf.compare.group import GroupRun

        before = {case: self._disturbed.pop(case)[0] for case in group.cases if case in self._disturbed}
        looked = {case: len(self._suspects[case][0].launches) for case in group.cases if case in self._suspects}
        twin = matrix.twin(self.options)
        running = GroupRun(
            group, self.plan.launches, self._conductor, self._say, twin=twin, before=before, numbers=looked
        )
        try:
            running.run(lambda: self._keep_so_far(running))
        except KeyboardInterrupt:
            for case, measurement in running.measurements(INTERRUPTED).items():
                # What is looked at a second time is kept as the first look left it, when the run ends.
                if measurement.launches and case not in self._suspects:
                    verdict = _unsettled(self._known.judge(measurement))
                    self._keep(*self._screened(measurement, verdict))
            self._keep_rounds(running)
            raise
        with ending.uninterrupted():  # all of the group is measured: whoever interrupts now gets all of it
            for case, measurement in running.measurements().items():
                with self._failing_its_test(case):
                    self._judged[case] = self._judge(case, measurement, last=case in before)
            with contextlib.suppress(HistoryError):  # each case that is not on record says so
                self._keep_rounds(running)

    @contextlib.contextmanager
    def _failing_its_test(self, case: Case) -> Iterator[None]:
        """Lets what cannot be recorded or judged fail the test of its case, not the tests of those that it met."""
        try:
            yield
        except IpexperfError as error:
            self._judged[case] = error

    def _judge(self, case: Case, measurement: Measurement, *, last: bool) -> tuple[Measurement, Verdict] | None:
        """The verdict on a case, or None where it is to be measured again."""
        verdict = self._known.judge(measurement)
        if case in self._suspects:
            first, before = self._suspects.pop(case)
            measurement, verdict = again.together(first, measurement), again.settle(before, verdict)
        elif verdict.contended and not last and not measurement.cut:
            with ending.uninterrupted():
                self._recorder.case(*self._screened(measurement, verdict))
                self._disturbed[case] = measurement, verdict
            self._say(f"{case.id}: the machine was not ours: what it disturbed is measured again after the other cases")
            return None
        elif verdict.outcome == "regressed":
            with ending.uninterrupted():
                self._recorder.case(*self._screened(measurement, again.never(verdict)))
                self._suspects[case] = measurement, verdict
            self._say(f"{case.id}: it looks slower, and is measured again after the other cases")
            return None
        return self._keep(*self._screened(measurement, verdict))

    def _keep_so_far(self, running: GroupRun) -> None:
        """Records what a group has after each of its rounds: a run that is killed loses the round in flight alone."""
        if self._recorder.history is None:
            return
        with contextlib.suppress(IpexperfError):  # it is tried again when the case is judged, and fails its test then
            for case, measurement in running.measurements(UNFINISHED).items():
                if case not in self._suspects:
                    verdict = _unsettled(self._known.judge(measurement))
                    self._recorder.case(*self._screened(measurement, verdict))
            self._keep_rounds(running)

    def _keep_rounds(self, running: GroupRun) -> None:
        """Records the rounds that are new, once their cases are on record."""
        with ending.uninterrupted():
            running.hand_over(self._keep_round)

    def _keep_round(self, one: RoundRecord) -> None:
        self._recorder.round(one)
        self.rounds.append(one)

    def _screened(self, measurement: Measurement, verdict: Verdict) -> tuple[Measurement, Verdict, Constants]:
        """What a case was found to be, with what ran."""
        policy = self._known.policy(measurement)
        return measurement, self._structured(measurement, verdict), policy

    def _keep(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> tuple[Measurement, Verdict]:
        """Records one case, and counts it: nothing more is measured of it."""
        with ending.uninterrupted():
            self._recorder.case(measurement, verdict, policy)
            self.measurements.append(measurement)
            self.verdicts[measurement.case.uid] = verdict
        return measurement, verdict

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

        return ran.accepted(self._recorder.history, before) if self._recorder.history is not None else None

    def settled(self) -> RunVerdict:
        """What the run says as a whole, beside what each test says."""
        from ipexperf.judge.policy import Policy
        from ipexperf.judge.run import settle

        return settle(self.verdicts, Policy().for_run())

    def finish(self, status: Status) -> bool:
        """Closes the history with what the run says as a whole and how it ended, and tells whether all is well."""
        with ending.uninterrupted():
            self._conductor.close()
            try:
                self._keep_waiting()
                self._prior = self._usual()
            except HistoryError as error:
                self.trouble = str(error)
            settled = self.settled()
            try:
                self._recorder.finish(status, settled, self.verdicts)
            except HistoryError as error:
                self.trouble = str(error)  # the numbers are still to be told: the summary says it
        self._write_report()
        self._recorder.close()
        return not settled.fails and not self.trouble and not self.unwritten

    def _usual(self) -> Pools:
        """What earlier runs of this machine make usual for its ratios, where there are any."""
        measured = next((one for one in self.measurements if one.launches), None)
        if self._recorder.history is None or measured is None or not self.rounds:
            return PRIORS
        before = self._recorder.history.rounds_of_machine(
            measured.environment["machine_key"], before=min(one.started_at for one in self.measurements)
        )
        return earlier(before)

    def _write_report(self) -> None:
        if self._report is None or self._recorder.history is None or self.uid is None:
            return
        from ipexperf.dashboard import site

        try:
            site.write(self._recorder.history, self._report)
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
            *summary_lines(
                self.measurements,
                settled.verdicts,
                self.plan.reasons,
                where,
                self.options.ablate,
                self.rounds,
                self._prior,
            ),
            *([f"HOW THE RUN ENDED IS NOT RECORDED: {self.trouble}"] if self.trouble else []),
            *([f"THE REPORT IS NOT WRITTEN: {self.unwritten}"] if self.unwritten else []),
        ]

    def for_ci(self, environment: Mapping[str, str]) -> list[str]:
        """What a CI system is told, beside what people read: a summary that is appended, and lines for annotations."""
        from ipexperf.report import github, markdown
        from ipexperf.report.advice import advice
        from ipexperf.report.speeds import Speeds

        if not self.measurements:
            return []
        settled = self.settled()
        speeds = Speeds.of(self.measurements, settled.verdicts, self.rounds, self._prior)
        cases = markdown.rows(self.measurements, settled.verdicts, speeds)
        told = advice(speeds, settled.verdicts)
        return github.tell(cases, settled.line, self.uid, environment, fails=settled.fails, advice=told)
