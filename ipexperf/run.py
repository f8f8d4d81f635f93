"""One run of the suite: plan the cases, measure them in rounds, judge them, record them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ipexperf import baseline_source, live_baseline, scratch
from ipexperf.bench import loading, user_files
from ipexperf.bench.machine.source import Replaced
from ipexperf.compare import against as comparing
from ipexperf.compare import locked
from ipexperf.compare.against import AgainstRun
from ipexperf.compare.group import GroupRun
from ipexperf.compare.request import GroupRequest
from ipexperf.compare.walk import WalkRun
from ipexperf.conduct import interrupts, placement
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import ask_facts
from ipexperf.errors import HistoryError, IpexperfError, UsageError
from ipexperf.judge import remeasure
from ipexperf.judge.rounds import PRIORS, Pools, earlier
from ipexperf.next_commands import NextCommands
from ipexperf.plan import gates, groups, matrix
from ipexperf.plan.gates import AS_ALL, GateWish
from ipexperf.plan.groups import Group
from ipexperf.plan.presets import PRESETS
from ipexperf.recorder import Recorder
from ipexperf.report.lines import named
from ipexperf.report.pace import Pace
from ipexperf.result import METRICS, PRIMARY, Measurement, Verdict

if TYPE_CHECKING:
    from ipexperf.bench.machine.facts import Facts
    from ipexperf.case import Case
    from ipexperf.compare.against import Against, Judged, OtherResults
    from ipexperf.compare.walk import Suite
    from ipexperf.dossier.making import Question
    from ipexperf.history.store import Status
    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.arms import ArmSpec
    from ipexperf.plan.options import Options


Result = tuple["Measurement", "Verdict", "Constants"]
INTERRUPTED = "the run was interrupted before its other launches"
UNFINISHED = "the run ended before its other launches"
"""The reasons why a case that has no fault of its own has fewer launches than planned."""
AGAIN = 2
"""A case that looked slower is measured again by so many times the launches."""
FRESH_PROCESSES = 8
"""Least of a second look at memory. If every second process is an odd one, all of eight are in 0.4 %."""
LAST_RUNS = 30
"""Only so many are asked how long a group took."""


def _needs_fresh_processes(verdict: Verdict) -> bool:
    """Whether a metric regressed that one unusual process may have changed."""
    worse = [METRICS[other.metric] for other in verdict.others if other.outcome == "regressed"]
    return any(metric.fresh and metric.gate is not None and metric.gate.smallest for metric in worse)


class FinishedCase(NamedTuple):
    """A finished case."""

    measurement: Measurement
    verdict: Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Postponed:
    """A case that must be measured again after all others: it looked slower, or the machine was busy."""


@user_files.errors_as_usage()
def plan(options: Options, *, may_be_empty: bool = False) -> matrix.Plan:
    """Make the plan for these options on this machine. Checks all names before torch is imported."""
    loading.load(options.load)
    matrix.check_names(options)
    return matrix.make(options, _facts(options), may_be_empty=may_be_empty)


def _facts(options: Options) -> Facts:
    """The facts of the workers' interpreter, and of this machine as placed workers see it."""
    devices = matrix.accelerators(options)
    placed = placement.find(options)
    matrix.variables(options, devices)  # which says now if there is no such card, or a device of the user's is wrong
    gathered = ask_facts(options.python, devices, packages=matrix.packages())
    return placement.facts_of(gathered, placed)


def _check_explain(options: Options) -> None:
    """Raise UsageError if dossiers cannot be written, or nothing would be in one."""
    if options.explain is None:
        return
    flag = options.source("explain")
    if options.explain.exists() and not options.explain.is_dir():
        raise UsageError(f"{flag}: {options.explain} is not a folder")


class Run:
    """One invocation of the suite. Each case is recorded as soon as it is measured."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        self.options = options
        _check_explain(options)
        # Its tests may be of functions alone, which is not known yet.
        self.plan = plan(options, may_be_empty=True)
        gates.gate(options)  # refuses unknown names, now that everything is loaded
        self._commands = NextCommands(options, self.plan.launches)
        self._against = comparing.find(options, self.plan.cases, say)
        self._live = live_baseline.LiveBaselines()
        """The cases that are judged beside the software of their baseline."""
        self.measurements: list[Measurement] = []
        self.pace = Pace({})
        """How far the run is."""
        self._prior = PRIORS
        """How much ratios usually vary on this machine, from earlier runs."""
        self.verdicts: dict[str, Verdict] = {}
        """The verdict of each case, by the uid of the case."""
        self._folder = folder
        self._cache = scratch.cache(options.cache, folder)
        self._made: Conductor | None = None
        self._suite: Suite | None = None
        """The session of pytest whose tests measure functions, if any do."""
        self._recorder = Recorder(options, folder, ())
        self._baselines = baseline_source.RunBaselines(options, self.plan.cases)
        self._say = say
        self._suspects: dict[Case, tuple[Measurement, Verdict]] = {}
        """Cases that looked slower, until they are measured again."""
        self._disturbed: dict[Case, tuple[Measurement, Verdict]] = {}
        """Cases measured on a busy machine, until they are measured again."""
        self._expected: dict[Case, GateWish] = {}
        """The cases still to be measured, each with the wish of its test."""
        self._members: dict[str, tuple[Case, ...]] = {}
        """The cases that were announced, by their groups."""
        self._judged: dict[Case, FinishedCase | Postponed | IpexperfError] = {}
        """The result of each measured case. The next `measure` of one that is postponed measures it once more."""
        self._wishes: dict[Case, GateWish] = {}
        """The wish that each measured case was judged by."""
        self.trouble = ""
        """Why the end of the run could not be recorded, or an empty text."""
        self._report: Path | None = None
        self._name = "last"
        """What a command calls this run."""
        self.unwritten = ""
        """Why the report could not be written, or an empty text."""
        self._blocks: dict[str, str] = {}
        """The text of each failed test, by the uid of its case."""
        self._places: Sequence[str] = ("--pyargs", "ipexperf.suites")
        """The files and folders that pytest was given, as far as it said."""
        self._dossiers: list[str] = []
        """A line for each dossier that was written, or why it was not."""
        self.has_place: Callable[[str], bool] = lambda _: False
        """Whether this session of pytest would have a test of this name, if there were one."""

    def adopt(
        self, calls: Sequence[Case], suite: Suite, given: tuple[ArmSpec, ArmSpec] | None = None, *, alone: bool
    ) -> None:
        """Measure these functions too, or `alone`. Called before `open`: tests are known when they are collected.

        `given` are both arms, if `ab` asks.
        """
        ours = () if alone else self.plan.cases
        left_out = () if alone else self.plan.left_out
        self.plan = dataclasses.replace(self.plan, cases=(*ours, *calls), left_out=left_out)
        self._suite = suite
        self._against = (
            comparing.between(*given, dict(zip(calls, calls, strict=True)), self.options)
            if given
            else comparing.find(self.options, self.plan.cases, self._say)
        )
        self._baselines = baseline_source.RunBaselines(self.options, self.plan.cases)

    def open(self, command: tuple[str, ...]) -> None:
        """Open the history before anything is measured, so that a bad path is found at once."""
        self._recorder.started_by(command)
        if self.options.report is not None:
            self._check_report(self.options.report)
        if self._against is not None:
            self._against.check(self.options)
        else:
            self._baselines.read_files()
        self._recorder.open()
        # May make environments, which takes minutes.
        self._live = live_baseline.find(self.options, self.plan.cases, self.plan.facts, self._cache, self._say)

    @property
    def _conductor(self) -> Conductor:
        """What all cases share. Made on first use: its budget begins then."""
        if self._made is None:
            self._made = Conductor(self.options, self._folder, self._say)
        return self._made

    @property
    def uid(self) -> str | None:
        """The uid of the run in the history. None until something is recorded."""
        return self._recorder.uid

    def _check_report(self, target: Path) -> None:
        """Check before measuring that the report can be written to this folder."""
        from ipexperf.dashboard import folder
        from ipexperf.history.addresses import file_of

        if "record" in self.options.without:
            raise UsageError("--perf-report draws what is recorded: leave --perf-without=record away")
        folder.check(target)
        written = {"history": file_of(self.options.db), "cache": self._cache, "baselines": self.options.baselines}
        folder.check_apart(target, written)
        self._report = target.absolute()

    @user_files.errors_as_usage()
    def expect(self, cases: Iterable[tuple[Case, GateWish]]) -> None:
        """Announce the cases that `measure` will be called with, so that they can share rounds. Takes the lease."""
        self._expected = {}
        for case, wish in cases:
            self._expected.setdefault(case, wish)
        self._members = {group.name: group.cases for group in groups.groups(self._expected)}
        self.pace = Pace(self._members, self._took())
        if told := self.pace.announced():
            self._say(told)
        # Before the first test: waiting is no test's time, and a device that is not free is an error of usage.
        self._conductor.reserve(self._expected, self.pace.seconds)

    def _took(self) -> dict[str, float]:
        """The seconds a case of each group in the newest run on this machine that measured it."""
        history = self._recorder.history
        runs = history.runs(LAST_RUNS) if history is not None and self._members else []
        if runs and all(case.device == "cpu" for case in self._expected):  # a card would have to be asked
            here = locked.machine_key("cpu", self.plan.facts, self.options)
            runs = [run for run in runs if run.machine_key == here]
        took: dict[str, float] = {}
        for run in reversed(runs):
            took |= run.settled.get("took", {})
        return took

    def measure(self, case: Case, wish: GateWish = AS_ALL) -> FinishedCase | Postponed:
        """Measure, judge and record a case, with all cases that share its rounds.

        Two tests of one case get one measurement, unless they wish to have it judged differently.
        """
        if self._differs(case, wish):
            self._judged.pop(case, None)
        if case not in self._judged:
            self._expected[case] = wish
            with user_files.errors_as_usage():
                self._measure(self._group(case))
        answer = self._judged[case]
        if isinstance(answer, Postponed):
            del self._judged[case]
        if isinstance(answer, IpexperfError):
            raise answer
        return answer

    def _differs(self, case: Case, wish: GateWish) -> bool:
        """Whether a case was judged by another wish than this. A tolerance only matters in pairs."""
        before = self._wishes.get(case, wish)
        in_pairs = self._against is not None or case in self._live.against
        return before.gate != wish.gate or (in_pairs and before.tolerance != wish.tolerance)

    def _group(self, case: Case) -> Group:
        """The cases to measure together with this one: those of its group that are still to be measured."""
        waiting = self._suspects if case in self._suspects else self._disturbed if case in self._disturbed else None
        name = groups.name(case)
        if waiting is None:
            others = [other for other in self._members.get(name, ()) if other in self._expected]
        else:
            others = [other for other in waiting if groups.name(other) == name]
        return Group(name, tuple(dict.fromkeys([case, *others])))

    def _measure(self, group: Group) -> None:
        """Measure the rounds of a group. What was measured is recorded even if this raises."""
        # A case that is measured again keeps the wish of its first time.
        for case in group.cases:
            self._wishes[case] = self._expected.get(case, self._wishes.get(case, AS_ALL))
        self.pace.begin()
        try:
            for against, part in self._parts(group):
                self._measure_part(part, against)
        finally:
            for case in group.cases:
                self._expected.pop(case, None)
        self.pace.end(group.name)
        if not self.pace.done and self._against is None:
            self._tell(group)

    def _tell(self, group: Group) -> None:
        """Say what a group found in a line, long before the summary."""
        from ipexperf.report.advice import advice
        from ipexperf.report.summary import Summary

        done = [one for one in self.measurements if one.case in group.cases and not one.case.is_call]
        for line in advice(Summary.of(done, self.verdicts, self._recorder.rounds))[: len(done) > 1]:
            self._say(line)

    def _parts(self, group: Group) -> list[tuple[Against | None, Group]]:
        """Split the cases of a group by the arm that they are compared with. Each part has its own rounds."""
        parts: dict[str, tuple[Against | None, list[Case]]] = {}
        for case in group.cases:
            against = self._arm_of(case)
            parts.setdefault(against.key if against else "", (against, []))[1].append(case)
        return [(against, Group(group.name, tuple(cases))) for against, cases in parts.values()]

    def _measure_part(self, part: Group, against: Against | None) -> None:
        """Make the rounds of a part of a group, and judge and record its cases.

        What there is of it is recorded after each round, and when it is interrupted.
        """
        playing = self._prepared(part, against)
        again = {case for case in part.cases if self._disturbed.pop(case, None)}
        try:
            for _ in playing.play():
                self._recorder.so_far(lambda: self._so_far(playing, UNFINISHED), lambda: playing.rounds)
            judged = playing.judged() if isinstance(playing, AgainstRun) else {}
        except KeyboardInterrupt:
            for measurement, verdict, policy in self._so_far(playing, INTERRUPTED):
                if measurement.launches:
                    self._record(measurement, verdict, policy)
            self._recorder.add_rounds(playing.rounds)
            raise
        alone: tuple[Case, ...] = ()
        with interrupts.deferred():  # the part is complete: record all of it even if interrupted now
            if isinstance(playing, AgainstRun):
                alone = self._finish_pairs(judged, playing.other_sides() if against and against.lock else {})
            else:
                for case, measurement in playing.measurements().items():
                    with self._failing_its_test(case):
                        self._judged[case] = self._judge(case, measurement, last=case in again)
            if busy := named([case.name for case in part.cases if case in self._disturbed]):
                self._say(f"{busy}: the machine was busy: disturbed launches are measured again after the other cases")
            with contextlib.suppress(HistoryError):  # cases that could not be recorded report it themselves
                self._recorder.add_rounds(playing.rounds)
        if alone:
            self._measure_part(Group(part.name, alone), None)

    def _finish_pairs(self, judged: Mapping[Case, Judged], others: Mapping[Case, OtherResults]) -> tuple[Case, ...]:
        """Record the cases that were compared. Returns those that must be judged by stored numbers instead.

        `others` are the results of their baselines' software, if they were compared with that.
        """
        alone = self._without_baseline(others)
        for case, (measurement, verdict, policy) in judged.items():
            if case in alone:
                continue
            with self._failing_its_test(case):
                verdict = self._with_machine(measurement, verdict, others.get(case))  # noqa: PLW2901
                self._judged[case] = self._record(measurement, verdict, policy)
        return alone

    def _so_far(self, playing: GroupRun | AgainstRun, cut: str) -> Iterable[Result]:
        """What a group has so far, judged. `cut` is the reason for cases that still miss launches."""
        return playing.judged(cut).values() if isinstance(playing, AgainstRun) else self._unfinished(playing, cut)

    def _without_baseline(self, others: Mapping[Case, OtherResults]) -> tuple[Case, ...]:
        """The cases that the software of their baseline cannot run, to be judged by stored numbers instead.

        None if the user asked for another arm or a live baseline: then that is a failure.
        """
        if self.options.arm is not None:
            return ()
        lost = {case: other.unable for case, other in others.items() if other.unable}
        for case, reason in lost.items():
            self._live.give_up(case, reason)
            self._say(f"{case.id}: {self._live.stored[case]}: it is judged by stored numbers")
        return tuple(lost)

    def _with_machine(self, measurement: Measurement, verdict: Verdict, other: OtherResults | None) -> Verdict:
        """The verdict, with a comparison of the baseline's software with its stored numbers."""
        if other is None or verdict.pairs is None:
            return verdict
        accepted, policy = self._baselines.accepted(measurement), self._baselines.policy(measurement)
        watched = live_baseline.machine(other, accepted, policy)
        return dataclasses.replace(verdict, evidence=dataclasses.replace(verdict.pairs, machine=watched))

    def _prepared(self, group: Group, against: Against | None) -> GroupRun | AgainstRun:
        """Prepare the rounds of a part of a group."""
        if against is not None:
            against = dataclasses.replace(against, changed=(*against.changed, *self._live.unseen(group.cases)))
            wished = [(case, self._wishes[case]) for case in group.cases]
            suite = self._suite if group.cases[0].is_call else None
            return AgainstRun(against, wished, self._conductor, self._say, suite=suite)
        suspects = {case: len(self._suspects[case][0].launches) for case in group.cases if case in self._suspects}
        # One unusual process may use more than others do, so measure several fresh ones.
        doubtful = any(_needs_fresh_processes(self._suspects[case][1]) for case in suspects)
        launches = AGAIN * self.plan.launches if suspects else self.plan.launches
        request = GroupRequest(
            group,
            max(launches, FRESH_PROCESSES) if doubtful else launches,
            twin=PRESETS[self.options.preset].twin,
            precision=matrix.ratio_precision(self.options),
            before={case: self._disturbed[case][0] for case in group.cases if case in self._disturbed},
            numbers=suspects,
            fresh=doubtful or any(gates.needs_fresh(self._gate(case)) for case in group.cases),
            changed=self._live.unseen(group.cases),
        )
        if group.cases[0].is_call:
            assert self._suite is not None  # noqa: S101 - set before any function is measured
            return WalkRun(self._suite, request, self._conductor, self._say)
        return GroupRun(request, self._conductor, self._say)

    @contextlib.contextmanager
    def _failing_its_test(self, case: Case) -> Iterator[None]:
        """Turn an error in recording or judging a case into the failure of that case's test alone."""
        try:
            yield
        except IpexperfError as error:
            self._judged[case] = error

    def _judge(self, case: Case, measurement: Measurement, *, last: bool) -> FinishedCase | Postponed:
        """Judge a case and record it. If it must be measured again, say why and return Postponed."""
        gate = self._gate(case)
        gated = PRIMARY in gate
        verdict = self._baselines.judge(measurement, gate)
        if case in self._suspects:
            first, before = self._suspects.pop(case)
            measurement = remeasure.merged(first, measurement)
            verdict = remeasure.settle(before, verdict, self._baselines.judge(measurement, gate), gated=gated)
        elif verdict.contended and not last and not measurement.cut:
            with interrupts.deferred():
                self._recorder.case(*self._with_structure_and_policy(measurement, verdict))
                self._disturbed[case] = measurement, verdict
            return Postponed()
        elif verdict.outcome == "regressed":
            with interrupts.deferred():
                self._recorder.case(
                    *self._with_structure_and_policy(measurement, remeasure.without_second(verdict, gated=gated))
                )
                self._suspects[case] = measurement, verdict
            slower = gated and verdict.alone.outcome == "regressed"
            looks = "slower" if slower else f"worse in {verdict.worse}"
            self._say(f"{case.name}: it looks {looks}, and is measured again after the other cases")
            return Postponed()
        return self._record(*self._with_structure_and_policy(measurement, verdict))

    def _gate(self, case: Case) -> tuple[str, ...]:
        """The metrics that a case is judged by."""
        wished = self._wishes.get(case, AS_ALL).gate
        return gates.gate(self.options) if wished is None else wished

    def _unfinished(self, running: GroupRun, cut: str) -> Iterator[Result]:
        """What a group has so far, judged. A case that is measured again keeps its first result until the run ends."""
        for case, measurement in running.measurements(cut).items():
            if measurement.launches and case not in self._suspects:
                gate = self._gate(case)
                verdict = remeasure.provisional(self._baselines.judge(measurement, gate), gated=PRIMARY in gate)
                yield self._with_structure_and_policy(measurement, verdict)

    def _with_structure_and_policy(self, measurement: Measurement, verdict: Verdict) -> Result:
        """The measurement, its verdict with the structure check, and the policy it was judged by."""
        policy = self._baselines.policy(measurement)
        return measurement, self._with_structure(measurement, verdict), policy

    def _record(self, measurement: Measurement, verdict: Verdict, policy: Constants) -> FinishedCase:
        """Record a case that is finished, and add it to the results of the run."""
        with interrupts.deferred():
            self._recorder.case(measurement, verdict, policy)
            self.measurements.append(measurement)
            self.verdicts[measurement.case.uid] = verdict
        return FinishedCase(measurement, verdict)

    def _with_structure(self, measurement: Measurement, verdict: Verdict) -> Verdict:
        """Add to the verdict whether kernels and answers differ from those of the accepted baseline."""
        from ipexperf.judge import answers, structure
        from ipexperf.judge.environment import incomparable

        if measurement.failure or measurement.never_began:
            return verdict
        before = self._baselines.accepted(measurement)
        # Other hardware runs other kernels, and that is no loss.
        alike = before is not None and not incomparable(before.environment, measurement.environment)
        same = before if before is not None and before.case == measurement.case else None
        compared = structure.judge(
            [launch.fingerprint for launch in measurement.counted],
            same.fingerprint if same else None,
            lambda: self._accepted(before) if before else None,
            known=same.work if same else {},
            gate=self.options.structure if alike else "warn",
        )
        if same is not None:
            found = answers.common(launch.answers for launch in measurement.counted)
            verdict = answers.named(verdict, answers.difference(same.answers, found))
        return structure.told(verdict, compared)

    def _accepted(self, before: CaseBaseline) -> Mapping[str, Any] | None:
        """The fingerprint of the run whose baseline was accepted, if this history has it."""
        history = self._recorder.history
        return None if history is None else history.accepted_fingerprint(before)

    def settled(self) -> RunVerdict:
        """The verdict on the run as a whole."""
        from ipexperf.judge.policy import Policy
        from ipexperf.judge.run import settle

        # A suite of functions beside another version may well become faster as a whole: in turns no machine did that.
        calls = {x.case.uid for x in self.measurements if x.case.is_call}
        paired = {uid: verdict for uid, verdict in self.verdicts.items() if uid in calls and verdict.pairs}
        others = {uid: verdict for uid, verdict in self.verdicts.items() if uid not in paired}
        return settle(others, Policy().for_run(), paired)

    def finish(self, status: Status) -> bool:
        """Write the dossiers, record how the run ended and its verdict, and close the history.

        Return whether nothing failed.
        """
        try:
            if self.options.explain is not None and status == "finished":
                self._explain(self.options.explain)
        except KeyboardInterrupt:  # the verdicts are all there
            self._dossiers.append("the dossiers were interrupted")
        finally:
            well = self._end(status)
        return well

    def _end(self, status: Status) -> bool:
        with interrupts.deferred():
            if self._made is not None:
                self._made.close()
            try:
                self._record_postponed()
                self._prior = self._usual_spread()
            except HistoryError as error:
                self.trouble = str(error)
            settled = self.settled()
            try:
                self._recorder.finish(status, settled, self.verdicts, self.pace.measured)
            except HistoryError as error:
                self.trouble = str(error)  # the summary reports it below the numbers
        self._write_report()
        with contextlib.suppress(HistoryError):  # as above: what is printed is then `last`
            self._name = self._selector()
        self._recorder.close()
        return not (settled.fails or self.trouble or self.unwritten)

    def _explain(self, folder: Path) -> None:
        """Write a dossier of each case that failed."""
        from ipexperf.dossier import making

        questions = [question for one in self.measurements if (question := self._question(one))]
        making.write(questions, self._conductor, self._suite, folder, self._say, self._dossiers)

    def _question(self, measurement: Measurement) -> Question | None:
        """What a dossier of this case is about, if it is to have one."""
        from ipexperf.dossier.making import Question
        from ipexperf.report import rerun

        recorded, verdict = measurement.case, self.verdicts[measurement.case.uid]
        if not (verdict.fails or self.options.explain_all):
            return None
        against, case = self._other_arm(recorded)
        return Question(
            case,
            verdict,
            against,
            self._live.stored.get(case, "it was judged by stored numbers, and no other arm can be traced"),
            self._blocks.get(recorded.uid) or self.block(measurement, verdict, self._places),
            self._commands.reproduce(recorded, self._arm_of(recorded), self._places),
            rerun.options(case, **rerun.named(case, self.options)),
            (self._commit_of(against, case), str(measurement.environment.get("git", {}).get("commit") or "")),
        )

    def _other_arm(self, recorded: Case) -> tuple[Against | None, Case]:
        """The arm that a recorded case was compared with, and the case as it was planned."""
        against = self._arm_of(recorded)
        planned = (case for case in against.cases if against.recorded(case) == recorded) if against else ()
        return next(((against, case) for case in planned), (None, recorded))

    def _commit_of(self, against: Against | None, case: Case) -> str:
        """The commit that the files of the other arm are of. Empty if that is not known, or they are the same."""
        from ipexperf.environments import sources
        from ipexperf.plan import arms

        if against is None:
            return ""
        if against.words.source.startswith(arms.GIT):
            replaced = Replaced.of(against.words.variables)
            return Path(replaced.by).name.partition("-")[0] if replaced else ""
        if not against.tree:
            return ""
        digest = self._live.wanted[case].source.digest
        return sources.read(sources.path_of(self.options.baselines, digest)).commit

    def _selector(self) -> str:
        """What a command calls this run: `last`, unless another run began later."""
        if self._recorder.history is None or self.uid is None:
            return "last"
        newest = self._recorder.history.runs(1)
        return "last" if newest and newest[0].uid == self.uid else self.uid[:18]

    def _usual_spread(self) -> Pools:
        """How much ratios usually vary on this machine, by its earlier runs; PRIORS if it has none."""
        measured = next((measurement for measurement in self.measurements if measurement.launches), None)
        history = self._recorder.history
        if history is None or measured is None or not self._recorder.rounds:
            return PRIORS
        machine_key, began = measured.environment["machine_key"], min(x.started_at for x in self.measurements)
        return earlier(history.rounds_of_machine(machine_key, before=began), self._recorder.rounds)

    def _write_report(self) -> None:
        if self._report is None or self._recorder.history is None or self.uid is None:
            return
        from ipexperf.dashboard import writing

        try:
            writing.write(self._recorder.history, self._report)
        except IpexperfError as error:
            self.unwritten = str(error)  # as above

    def _record_postponed(self) -> None:
        """Record cases that should have been measured again, but the run ended. None of them counts as regressed."""
        while self._disturbed:
            _, (measurement, verdict) = self._disturbed.popitem()
            self._record(*self._with_structure_and_policy(measurement, verdict))
        while self._suspects:
            case, (measurement, verdict) = self._suspects.popitem()
            verdict = remeasure.without_second(verdict, gated=PRIMARY in self._gate(case))
            self._record(*self._with_structure_and_policy(measurement, verdict))

    def block(self, measurement: Measurement, verdict: Verdict, places: Sequence[str]) -> str:
        """The explanation printed for a failed case. `places` are the files and folders that pytest was given."""
        from ipexperf.judge.environment import differences
        from ipexperf.report.block import failure_block

        again = self._commands.reproduce(measurement.case, self._arm_of(measurement.case), places)
        accept = self._commands.accept(measurement.case, self.uid)
        if pairs := verdict.pairs:
            changed: Sequence[str] = pairs.differences
            accept = accept if pairs.lock else ""
        else:
            before = self._baselines.accepted(measurement)
            changed = differences(before.environment, measurement.environment) if before else []
        text = failure_block(measurement, verdict, changed, again, accept)
        self._blocks[measurement.case.uid], self._places = text, places
        return text

    def _arm_of(self, recorded: Case) -> Against | None:
        """The other arm of a case, as it was recorded."""
        return self._against or self._live.against.get(recorded)

    def summary(self, environment: Mapping[str, str]) -> list[str]:
        """The lines printed at the end. A job of GitHub, which the environment tells of, gets its summary too."""
        from ipexperf.report import github
        from ipexperf.report.summary import Summary
        from ipexperf.report.table import summary_lines

        settled = self.settled()
        failed = any(verdict.fails for verdict in self.verdicts.values())
        summary = dataclasses.replace(
            Summary.of(self.measurements, settled.verdicts, self._recorder.rounds, self._prior),
            ablated=self.options.ablate,
            left_out=self.plan.reasons,
            line=settled.line,
            slower=[x.case.id for x in self.measurements if x.case.uid in settled.slower],
            fails=settled.fails,
            unseen=settled.fails and not failed,
            notes=self._live.lines(self._since_accepted()),
            missing=self._missing(),
            commands=self._where_to_look(settled),
        )
        return [
            *summary_lines(summary),
            *([f"HOW THE RUN ENDED IS NOT RECORDED: {self.trouble}"] if self.trouble else []),
            *([f"THE REPORT IS NOT WRITTEN: {self.unwritten}"] if self.unwritten else []),
            *self._dossiers,
            *github.lines(summary, self.uid, environment),
        ]

    def _where_to_look(self, settled: RunVerdict) -> list[str]:
        """Commands that say more, each with what it shows."""
        commands = []
        if self.uid is not None:
            commands = self._commands.further(self._name, settled, self.measurements, acceptable=self._against is None)
            if self._report is not None and not self.unwritten:
                commands.append(f"{self._report / 'index.html'}    the same, drawn")
        if self.plan.left_out:
            commands.append("ipexperf cases --why    every cell that was left out, and its reason")
        return commands

    def _since_accepted(self) -> dict[Case, list[str]]:
        """What differs in the software and source of each measured case from its baseline's."""
        from ipexperf.judge.environment import RAN, differences

        return {
            x.case: differences(accepted.environment, x.environment, RAN) if accepted else []
            for x in self.measurements
            for accepted in [self._baselines.accepted(x)]
        }

    def _missing(self) -> list[str]:
        """The ids of the accepted cases that this run should have measured, and has not in its plan."""
        if self._against is not None:
            return []
        machines = dict.fromkeys(x.environment.get("machine_key") for x in self.measurements)
        return [case.id for case in self._baselines.missing(filter(None, machines), self.has_place)]
