"""One run of the suite as a table of contents: plan, measure, judge, record, tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import live_baseline, scratch
from ipexperf.bench import user_files
from ipexperf.compare import against as comparing
from ipexperf.conduct import interrupts, placement
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import ask_facts
from ipexperf.errors import HistoryError, UsageError
from ipexperf.live_baseline import OtherArms
from ipexperf.plan import gates, matrix
from ipexperf.recorder import Recorder
from ipexperf.running.case_judge import CaseJudge
from ipexperf.running.measurer import Measurer
from ipexperf.running.reporter import Reporter

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.against import PairPlan
    from ipexperf.compare.programs import Program
    from ipexperf.compare.walk import Suite
    from ipexperf.history.store import Status
    from ipexperf.plan.arms import ArmSpec
    from ipexperf.plan.gates import GateWish
    from ipexperf.plan.options import Options
    from ipexperf.report.summary import Judged
    from ipexperf.running.case_judge import Postponed


@user_files.errors_as_usage()
def plan(options: Options, *, may_be_empty: bool = False) -> matrix.Plan:
    """Make the plan for these options on this machine. Checks all names before torch is imported."""
    matrix.check_names(options)
    devices = matrix.accelerators(options)
    placed = placement.find(options)
    matrix.variables(options, devices)  # which says now if there is no such card, or a device of the user's is wrong
    gathered = ask_facts(options.python, devices, packages=matrix.packages())
    return matrix.make(options, placement.facts_of(gathered, placed), may_be_empty=may_be_empty)


class Run:
    """One invocation of the suite. Each case is recorded as soon as it is measured."""

    def __init__(
        self,
        options: Options,
        folder: Path,
        say: Callable[[str], None],
        command: Sequence[str] = (),
        places: Sequence[str] = (),
    ) -> None:
        """Plan the cases. `command` is recorded, and `places` are the files and folders that pytest was given."""
        self.options = options
        if options.explain is not None and options.explain.exists() and not options.explain.is_dir():
            raise UsageError(f"{options.source('explain')}: {options.explain} is not a folder")
        # Its tests may be of functions alone, which is not known yet.
        self.plan = plan(options, may_be_empty=True)
        gates.gate(options)  # refuses unknown names, now that everything is loaded
        self._cases: tuple[Case, ...] = self.plan.cases
        """All that may be measured: the planned networks, and the functions of tests."""
        self._folder = folder
        self._say = say
        self._places = places
        self._suite: Suite | None = None
        """The session of pytest whose tests measure functions, if any do."""
        self._recorder = Recorder(options, folder, command)
        self._measurer: Measurer | None = None
        """Who measures, once the run is open."""
        self._compare_with(comparing.find(options, self._cases, say))

    def _compare_with(self, named: PairPlan | None) -> None:
        """Judge the planned cases beside this arm if there is one, else by their baselines."""
        self.judge = CaseJudge(self.options, self._cases, OtherArms(named), self._recorder)
        self.reporter = Reporter(self.plan, self.judge, self._places, self._folder)

    def adopt(
        self, calls: Sequence[Case], suite: Suite, arms: tuple[ArmSpec, ArmSpec] | None = None, *, alone: bool
    ) -> None:
        """Measure these functions too, or `alone`. Called before `open`: tests are known when they are collected.

        `arms` are both, if `ab` asks.
        """
        if alone:
            self.plan = dataclasses.replace(self.plan, cases=(), left_out=())
        self._cases = (*self.plan.cases, *calls)
        self._suite = suite
        if arms is not None:
            self._compare_with(comparing.between(*arms, dict(zip(calls, calls, strict=True)), self.options))
        else:
            self._compare_with(comparing.find(self.options, self._cases, self._say))

    def open(self, expected: Iterable[tuple[Case, GateWish]], has_place: Callable[[str], bool]) -> None:
        """Get ready to measure these cases, each with the wish of its test: open the history, take the lease.

        What is wrong is found now, before anything is measured. `has_place` says whether this session of pytest would
        have a test of a name, if there were one.
        """
        self.reporter.has_place = has_place
        cache = scratch.cache(self.options.cache, self._folder)
        self.reporter.check_pages(cache)
        if self.judge.arms.named is not None:
            self.judge.arms.named.check(self.options)
        else:
            self.judge.baselines.read_files()
        self._recorder.open()
        if self.judge.arms.named is None:  # may make environments, which takes minutes
            self.judge.arms = live_baseline.find(self.options, self._cases, self.plan.facts, cache, self._say)
        conductor = Conductor(self.options, self._folder, self._say)  # its budget begins now
        self._measurer = Measurer(self.judge, self.plan.launches, self._suite, conductor, self._say)
        self._measurer.expect(expected)

    def measure(self, case: Case, wish: GateWish = gates.AS_ALL) -> Judged | Postponed:
        """Measure, judge and record a case, with all cases that share its rounds."""
        assert self._measurer is not None  # noqa: S101 - the run is open
        return self._measurer.measure(case, wish)

    def measure_program(self, what: Program, device: str, wish: GateWish) -> list[Judged | Postponed]:
        """Measure a program and each number that it tells."""
        assert self._measurer is not None  # noqa: S101 - the run is open
        return self._measurer.measure_program(what, device, wish)

    @property
    def progress(self) -> str:
        """How far the run is, in words. An empty text before it begins."""
        return self._measurer.progress if self._measurer is not None else ""

    def finish(self, status: Status) -> bool:
        """Write the dossiers, record how the run ended and its verdict, and close the history.

        Return whether nothing failed.
        """
        try:
            if self.options.explain is not None and status == "finished":
                self._explain(self.options.explain)
        finally:
            with interrupts.deferred():
                self._record_end(status)
            self.reporter.write_pages()
            self._recorder.close()
        ending = self.reporter.ending
        return not (self.judge.settled().fails or ending.trouble or ending.unwritten)

    def _explain(self, folder: Path) -> None:
        """Write a dossier of each case that failed."""
        from ipexperf.dossier import making

        if self._measurer is None:
            return
        ending = self.reporter.ending
        try:
            questions = list(self.reporter.questions())
            for line in making.write(
                questions, self._measurer.conductor, self._suite, folder, self._say, ending.written
            ):
                ending.dossiers.append(line)
        except KeyboardInterrupt:  # the verdicts are all there
            ending.dossiers.append("the dossiers were interrupted")

    def _record_end(self, status: Status) -> None:
        """Record how the run ended. The summary has what could not be recorded."""
        if self._measurer is not None:
            self._measurer.conductor.close()
        ending = self.reporter.ending
        try:
            self.judge.record_postponed()
            self.reporter.look_back()
        except HistoryError as error:
            ending.trouble = str(error)
        try:
            self._recorder.finish(status, self.judge.settled(), self.judge.verdicts, ending.written)
        except HistoryError as error:
            ending.trouble = str(error)
