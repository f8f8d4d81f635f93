"""Who measures the cases of a run: each with all cases that share its rounds."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ipexperf import live_baseline, units
from ipexperf.bench import user_files
from ipexperf.case import Case, networks
from ipexperf.compare import against as comparing
from ipexperf.compare.against import PairRun
from ipexperf.compare.group import GroupRequest, GroupRun
from ipexperf.compare.round import ended_launch
from ipexperf.compare.walk import Walk
from ipexperf.conduct import interrupts
from ipexperf.conduct.conductor import now
from ipexperf.errors import HistoryError, IpexperfError, WorkerError
from ipexperf.plan import arms, gates, groups
from ipexperf.plan.gates import GateWish
from ipexperf.plan.groups import Group
from ipexperf.plan.presets import PRESETS
from ipexperf.report.lines import named
from ipexperf.result import METRICS, Measurement
from ipexperf.running.case_judge import Postponed
from ipexperf.steps import Notice
from ipexperf.verdict import Verdict

if TYPE_CHECKING:
    from ipexperf.compare.against import PairPlan
    from ipexperf.compare.programs import MeasuredProgram, Program
    from ipexperf.compare.rounds import Schedule
    from ipexperf.compare.walk import Suite
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.report.summary import Judged
    from ipexperf.running.case_judge import CaseJudge, Result

INTERRUPTED = "the run was interrupted before its other launches"
UNFINISHED = "the run ended before its other launches"
"""The reasons why a case that has no fault of its own has fewer launches than planned."""
AGAIN = 2
"""A case that looked slower is measured again by so many times the launches."""
FRESH_PROCESSES = 8
"""Least of a second look at memory. If every second process is an odd one, all of eight are in 0.4 %."""
T = TypeVar("T")


class Measurer:
    """Measures the cases of a run. The first that is asked for of a group measures all of it."""

    def __init__(
        self, judge: CaseJudge, launches: int, suite: Suite | None, conductor: Conductor, say: Callable[[str], None]
    ) -> None:
        """`launches` of each case. `suite` is the session of pytest whose tests measure functions, if any do."""
        self.conductor = conductor
        self._judge = judge
        self._launches = launches
        self._suite = suite
        self._say = say
        self._playing: GroupRun | PairRun | None = None
        self._waiting: list[Case] = []
        """The cases still to be measured."""
        self._programs: dict[Program, MeasuredProgram] = {}
        self._of_case: dict[Case, MeasuredProgram] = {}
        """The program of each number."""
        self._results: dict[Case, Judged | Postponed | IpexperfError] = {}
        """The result of each measured case. The next `measure` of one that is postponed measures it once more."""

    @user_files.errors_as_usage()
    def expect(self, cases: Iterable[tuple[Case, GateWish]]) -> None:
        """Announce the cases that `measure` will be called with, so that they can share rounds. Takes the lease."""
        for case, wish in cases:
            self._judge.wishes.setdefault(case, wish)
        self._waiting = list(self._judge.wishes)
        if self._waiting:  # programs do not say yet what they will tell
            self._say(f"measuring {units.plural(len(self._waiting), 'case')}")
        # Before the first test: waiting is no test's time, and a device that is not free is an error of usage.
        self.conductor.reserve(self._waiting)

    @property
    def progress(self) -> str:
        """How far the run is, in words. What is decided is done, also while others of its group need more pairs."""
        pairs = self._playing.comparisons().values() if isinstance(self._playing, PairRun) else ()
        done = len({judged.case for judged in self._judge.finished}) + sum(pair.ended is not None for pair in pairs)
        return f"{done} of {units.plural(len(self._judge.wishes), 'case')}"

    @user_files.errors_as_usage()
    def measure(self, case: Case, wish: GateWish) -> Judged | Postponed:
        """Measure, judge and record a case, with all cases that share its rounds.

        Two tests of one case get one measurement, unless they wish to have it judged differently.
        """
        if self._judge.differs(case, wish):
            self._results.pop(case, None)
        if case not in self._results:
            self._judge.wishes[case] = wish
            self._measure_group(self._group(case))
        result = self._results[case]
        if isinstance(result, Postponed):
            del self._results[case]
        if isinstance(result, IpexperfError):
            raise result
        return result

    @user_files.errors_as_usage()
    def measure_program(self, what: Program, device: str, wish: GateWish) -> list[Judged | Postponed]:
        """Measure a program and each number that it tells. If it fails, as a whole: nobody knows its numbers then."""
        program = self._programs[what] = self._programs.get(what) or self._program(what, device)
        with contextlib.closing(program.runs):
            try:
                if not program.wishes:
                    self._learn(program, wish)
            except WorkerError as error:
                case = program.against.recorded(program.whole) if program.against else program.whole
                failed = [ended_launch(0, error, accelerator=False)]
                measurement = self.conductor.measurement(case, failed, {}, now())
                return [self._judge.judge(case, measurement, last=True)]
            return [self.measure(case, own) for case, own in program.wishes.items()]

    def _program(self, what: Program, device: str) -> MeasuredProgram:
        """The program in this run's arms."""
        from ipexperf.compare.programs import MeasuredProgram

        options, against = self._judge.options, self._judge.arms.named
        if against is None and options.arm is not None:  # a lock, whose environment each kind of case asks for
            source = options.source("against")
            words = live_baseline.resolved(arms.parse(options.arm, source), options, self._say, source)
            against = comparing.of(words, {}, options)
        if against is not None:
            a, b = (f"{what.text}: {name or 'this run'}" for name in against.names)
            against = dataclasses.replace(against, names=(a, b))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return MeasuredProgram(what, device, against, options, self.conductor, self._say, PATH=path)

    def _learn(self, program: MeasuredProgram, wish: GateWish) -> None:
        """Run a program for its numbers, which wait from then on."""
        baselines = self._judge.baselines
        known = () if program.against else baselines.numbers(program.places[0].described["machine_key"], program.whole)
        if unable := program.learn(wish, known):
            self._say(Notice(f"not measured: {named(unable)}"))
        baselines.cases += program.wishes
        fresh = [pair for pair in program.wishes.items() if pair[0] not in self._of_case]
        self._judge.wishes.update(fresh)
        self._waiting += dict(fresh)
        self._of_case.update((case, program) for case, _ in fresh)

    def _group(self, case: Case) -> Group[Case]:
        """The cases to measure together with this one: those of its group that wait for the same."""
        name, again, program = groups.name(case), self._judge.postponed.get(case), self._of_case.get(case)
        others = self._waiting
        if again is not None:
            postponed = self._judge.postponed.items()
            others = [other for other, why in postponed if bool(why.looks) == bool(again.looks)]
        beside = [other for other in others if groups.name(other) == name and self._of_case.get(other) is program]
        return Group(name, tuple(dict.fromkeys([case, *beside])))

    def _measure_group(self, group: Group[Case]) -> None:
        """Measure the rounds of a group. What was measured is recorded even if this raises."""
        try:
            for against, part in self._parts(group):
                if against is None:
                    self._measure_alone(part)
                else:
                    self._measure_beside(against, part)
        finally:
            self._waiting = [case for case in self._waiting if case not in group.cases]
        if self._waiting and self._judge.arms.named is None:
            self._say_what_was_found(group)

    def _say_what_was_found(self, group: Group[Case]) -> None:
        """Say what a group found in a line, long before the summary."""
        from ipexperf.report.advice import advice
        from ipexperf.report.summary import Summary

        judged = [done for done in self._judge.finished if done.case in networks(group.cases)]
        summary = Summary.of([done.measurement for done in judged], self._judge.verdicts, self._judge.recorder.rounds)
        for line in advice(summary)[: len(judged) > 1]:
            self._say(line)

    def _walk_of(self, group: Group[Case]) -> Schedule | None:
        """The walk through the session of pytest that measures these cases, or the runs of their program."""
        if program := self._of_case.get(group.cases[0]):
            return program.runs
        return None if networks(group.cases) or self._suite is None else Walk(self._suite, self.conductor.spent)

    def _parts(self, group: Group[Case]) -> list[tuple[PairPlan | None, Group[Case]]]:
        """Split the cases of a group by the arm that they are compared with. Each part has its own rounds."""
        parts: dict[str, tuple[PairPlan | None, list[Case]]] = {}
        for case in group.cases:
            program = self._of_case.get(case)
            against = program.against if program else self._judge.arms.of(case)
            parts.setdefault(against.key if against else "", (against, []))[1].append(case)
        return [(against, Group(group.name, tuple(cases))) for against, cases in parts.values()]

    def _measure_alone(self, part: Group[Case]) -> None:
        """Measure cases that are judged by stored numbers."""
        before = self._judge.taken_on_busy_machine(part.cases)
        rounds = self._rounds(part, before)
        measured = self._play(rounds, rounds.measurements, functools.partial(self._judge.so_far, rounds))
        with interrupts.deferred():  # the part is complete: record all of it even if interrupted now
            for case, measurement in measured.items():
                with self._failing_its_test(case):
                    result = self._results[case] = self._judge.judge(case, measurement, last=case in before)
                    if isinstance(result, Postponed) and result.looks:
                        self._say(f"{case.name}: it looks {result.looks}, and is measured again after the other cases")
            waiting = self._judge.postponed
            if busy := named([case.name for case in part.cases if case in waiting and not waiting[case].looks]):
                self._say(f"{busy}: the machine was busy: disturbed launches are measured again after the other cases")
            self._record_rounds(rounds)

    def _measure_beside(self, against: PairPlan, part: Group[Case]) -> None:
        """Measure cases beside the other arm. Those that a baseline's software cannot run are measured alone."""
        changed = (*against.changed, *self._judge.arms.unseen(part.cases))
        rounds = PairRun(
            dataclasses.replace(against, changed=changed),
            [(case, self._judge.wishes[case]) for case in part.cases],
            self.conductor,
            self._say,
            walk=self._walk_of(part),
        )
        judged = self._play(rounds, rounds.judged, lambda cut: rounds.judged(cut).values())
        with interrupts.deferred():  # as above
            others = rounds.first_arms() if against.lock else {}
            unable = self._judge.give_up(others)
            for case in unable:
                self._say(f"{case.id}: {self._judge.arms.stored[case]}: it is judged by stored numbers")
            for case, result in judged.items():
                if case not in unable:
                    with self._failing_its_test(case):
                        self._results[case] = self._judge.finish_pairs(result, others.get(case))
            self._record_rounds(rounds)
        if unable:
            self._measure_alone(Group(part.name, unable))

    def _play(
        self,
        rounds: GroupRun | PairRun,
        results: Callable[[], T],
        so_far: Callable[[str], Iterable[Result]],
    ) -> T:
        """Make these rounds and return their results. What there is is recorded after each, and when interrupted.

        `so_far` judges the cases. Its argument is the reason for those that still miss launches.
        """
        self._playing = rounds
        try:
            for _ in rounds.play():
                self._judge.recorder.so_far(lambda: so_far(UNFINISHED), lambda: rounds.rounds)
            return results()
        except KeyboardInterrupt:
            self._judge.record_interrupted(so_far(INTERRUPTED))
            self._judge.recorder.add_rounds(rounds.rounds)
            raise
        finally:
            self._playing = None

    def _record_rounds(self, rounds: GroupRun | PairRun) -> None:
        with contextlib.suppress(HistoryError):  # cases that could not be recorded report it themselves
            self._judge.recorder.add_rounds(rounds.rounds)

    def _rounds(self, part: Group[Case], before: Mapping[Case, Measurement]) -> GroupRun:
        """Prepare the rounds of cases that are judged by stored numbers. `before` has those of a first pass."""
        options = self._judge.options
        suspects = {case: self._judge.postponed[case] for case in part.cases if case in self._judge.postponed}
        # One unusual process may use more than others do, so measure several fresh ones.
        doubtful = any(_needs_fresh_processes(first.verdict) for first in suspects.values())
        launches = AGAIN * self._launches if suspects else self._launches
        preset = PRESETS[options.preset]
        request = GroupRequest(
            part,
            max(launches, FRESH_PROCESSES) if doubtful else launches,
            twin=preset.twin,
            # Who asks for a number gets no more, and only networks have ratios.
            precision=preset.precision if options.launches is None and networks(part.cases) else None,
            before=before,
            numbers={case: len(first.measurement.launches) for case, first in suspects.items()},
            fresh=doubtful or any(gates.needs_fresh(self._judge.gate(case)) for case in part.cases),
            changed=self._judge.arms.unseen(part.cases),
        )
        return GroupRun(request, self.conductor, self._say, walk=self._walk_of(part))

    @contextlib.contextmanager
    def _failing_its_test(self, case: Case) -> Iterator[None]:
        """Turn an error in recording or judging a case into the failure of that case's test alone."""
        try:
            yield
        except IpexperfError as error:
            self._results[case] = error


def _needs_fresh_processes(verdict: Verdict) -> bool:
    """Whether a metric regressed that one unusual process may have changed."""
    worse = [METRICS[other.metric] for other in verdict.others if other.outcome == "regressed"]
    return any(metric.fresh and metric.gate is not None and metric.gate.smallest for metric in worse)
