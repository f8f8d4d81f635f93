"""Who tells of a run: the block of a failed test, the summary, the pages, and the dossiers."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import outcomes
from ipexperf.bench.machine.source import Replaced
from ipexperf.case import NetworkCase, ProgramCase
from ipexperf.conduct import process
from ipexperf.errors import HistoryError, IpexperfError, UsageError
from ipexperf.judge.accept import disturbed
from ipexperf.judge.policy import Policy
from ipexperf.judge.rounds import PRIORS, Pools, earlier
from ipexperf.plan.values import BASELINE
from ipexperf.report import rerun
from ipexperf.report.summary import Judged

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.against import PairPlan
    from ipexperf.dossier.making import Question
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.matrix import Plan
    from ipexperf.running.case_judge import CaseJudge


@dataclasses.dataclass(slots=True)
class Ending:
    """What became of a run when it ended."""

    trouble: str = ""
    """Why that could not be recorded, or an empty text."""
    unwritten: str = ""
    """Why the report could not be written, or an empty text."""
    name: str = "last"
    """What a command calls the run."""
    spread: Pools = PRIORS
    """How much ratios usually vary on this machine, from earlier runs."""
    dossiers: list[str] = dataclasses.field(default_factory=list)
    """Lines on each dossier that was written, or why it was not."""
    written: dict[str, str] = dataclasses.field(default_factory=dict)
    """The pages of the dossiers, by the uid of the case."""


class Reporter:
    """Tells of the cases that the judge has finished."""

    def __init__(self, plan: Plan, judge: CaseJudge, places: Sequence[str], folder: Path) -> None:
        """`places` are the files and folders that pytest was given, and `folder` is where it was started."""
        self.ending = Ending()
        self.has_place: Callable[[str], bool] = lambda _: False
        """Whether this session of pytest would have a test of this name, if there were one."""
        self._plan = plan
        self._judge = judge
        self._options = judge.options
        self._places = places
        self._folder = folder
        self._pages = judge.options.report and folder / judge.options.report

    def check_pages(self, cache: Path) -> None:
        """Check before measuring that the report can be written to its folder, if one was asked for."""
        from ipexperf.dashboard import folder
        from ipexperf.history.addresses import file_of

        pages = self._options.report
        if pages is None:
            return
        if "record" in self._options.without:
            raise UsageError("--perf-report draws what is recorded: leave --perf-without=record away")
        folder.check(pages)
        written = {"history": file_of(self._options.db), "cache": cache, "baselines": self._options.baselines}
        folder.check_apart(pages, written)

    def block(self, judged: Judged, test: str = "") -> str:
        """The explanation printed for a failed case. `test` is that of a program."""
        from ipexperf.judge.environment import differences
        from ipexperf.report.block import failure_block

        measurement, verdict = judged
        if pairs := verdict.pairs:
            changed: Sequence[str] = pairs.differences
        else:
            before = self._judge.baselines.accepted(measurement)
            changed = differences(before.environment, measurement.environment) if before else []
        return failure_block(measurement, verdict, changed, self._reproduce(judged.case, test), self._accept(judged))

    def program_block(self, failing: Sequence[Judged], test: str) -> str:
        """The explanation printed for a test whose program has these numbers that failed."""
        from ipexperf.report import functions
        from ipexperf.report.lines import named

        worse = [judged for judged in failing if outcomes.has_numbers(judged.verdict.outcome)]
        text = [self.block(judged, test) for judged in failing if judged not in worse][:1]
        if worse:
            text.append(f"{worse[0].verdict.outcome.upper()}: {named([judged.case.name for judged in worse])}")
            text += [*functions.lines(worse), f"reproduce  {self._reproduce(worse[0].case, test)}"]
        return "\n".join(text)

    def questions(self) -> Iterator[Question]:
        """What the dossiers of this run are about."""
        from ipexperf.dossier.making import Question

        arms = self._judge.arms
        for judged in self._judge.finished:
            if isinstance(judged.case, ProgramCase) or not (judged.verdict.fails or self._options.explain_all):
                continue  # nothing traces a program
            against, case = self._other_arm(judged.case)
            yield Question(
                case,
                judged.verdict,
                against,
                arms.stored.get(case, "it was judged by stored numbers, and no other arm can be traced"),
                self.block(judged),
                self._reproduce(judged.case),
                rerun.chosen(case, self._options),
                (
                    self._commit_of(against, case),
                    str(judged.measurement.environment.get("git", {}).get("commit") or ""),
                ),
            )

    def _other_arm(self, recorded: Case) -> tuple[PairPlan | None, Case]:
        """The arm that a recorded case was compared with, and the case as it was planned."""
        against = self._judge.arms.of(recorded)
        planned = (case for case in against.cases if against.recorded(case) == recorded) if against else ()
        return next(((against, case) for case in planned), (None, recorded))

    def _commit_of(self, against: PairPlan | None, case: Case) -> str:
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
        digest = self._judge.arms.wanted[case].source.digest
        return sources.read(sources.path_of(self._options.baselines, digest)).commit

    def look_back(self) -> None:
        """Read in the history how much ratios usually vary on this machine. Keeps PRIORS if it has no earlier runs."""
        recorder, finished = self._judge.recorder, self._judge.finished
        measured = next((judged.measurement for judged in finished if judged.measurement.launches), None)
        if recorder.history is None or measured is None or not recorder.rounds:
            return
        began = min(judged.measurement.started_at for judged in finished)
        before = recorder.history.rounds_of_machine(measured.environment["machine_key"], before=began)
        self.ending.spread = earlier(before, recorder.rounds)

    def write_pages(self) -> None:
        """Write the report if one was asked for, and find out what a command calls this run."""
        recorder = self._judge.recorder
        if recorder.history is None or recorder.uid is None:
            return
        if self._pages is not None:
            from ipexperf.dashboard import writing

            try:
                writing.write(recorder.history, self._pages)
            except IpexperfError as error:
                self.ending.unwritten = str(error)  # the summary reports it below the numbers
        try:
            newest = recorder.history.runs(1)
        except HistoryError:
            return  # the summary has it as trouble
        if newest and newest[0].uid != recorder.uid:  # another run began later
            self.ending.name = recorder.uid[:18]

    def summary(self, environment: Mapping[str, str], *, brief: bool = False) -> list[str]:
        """The lines printed at the end. A job of GitHub, which the environment tells of, gets its summary too."""
        from ipexperf.report import github
        from ipexperf.report.summary import Summary
        from ipexperf.report.table import brief_lines, summary_lines

        settled, finished, ending = self._judge.settled(), self._judge.finished, self.ending
        failed = any(judged.verdict.fails for judged in finished)
        rounds = self._judge.recorder.rounds
        measurements = [judged.measurement for judged in finished]
        summary = dataclasses.replace(
            Summary.of(measurements, settled.verdicts, rounds, ending.spread),
            ablated=self._options.ablate,
            left_out=self._plan.reasons,
            line=settled.line,
            slower=[judged.case.id for judged in finished if judged.case.uid in settled.slower],
            fails=settled.fails,
            unseen=settled.fails and not failed,
            notes=self._judge.arms.lines(self._since_accepted()),
            missing=self._missing(),
            commands=list(self._where_to_look(settled)),
        )
        return [
            *(brief_lines(summary) if brief else summary_lines(summary)),
            *([f"HOW THE RUN ENDED IS NOT RECORDED: {ending.trouble}"] if ending.trouble else []),
            *([f"THE REPORT IS NOT WRITTEN: {ending.unwritten}"] if ending.unwritten else []),
            *ending.dossiers,
            *github.lines(summary, self._judge.recorder.uid, environment),
        ]

    def _reproduce(self, case: Case, test: str = "") -> str:
        """The command that measures a case again. `test` is that of a program."""
        against = self._judge.arms.of(case)
        # The name of a lock does not name its source; `baseline` names both.
        arm = self._options.arm if against is None else BASELINE if against.tree else against.words.text
        variables = process.tuned_by_user(os.environ)
        asked = self._options
        if isinstance(case, NetworkCase):
            chosen, launches = rerun.chosen(case, asked), self._plan.launches
            return rerun.command(chosen, launches, places=self._places, against=arm, variables=variables)
        own = against.own.text if against else ""
        test = rerun.here(test or case.name, self._folder)
        return rerun.of_function(test, arm, own, variables, benchmark=asked.benchmark, build=asked.build)

    def _accept(self, judged: Judged) -> str:
        """The command that accepts a case of this run on purpose, or an empty text if that cannot be."""
        measurement, verdict = judged
        run = (self._judge.recorder.uid or "last")[:18]
        if "record" in self._options.without or (verdict.pairs and not verdict.pairs.lock):
            return ""
        busy = " --contended-ok" if disturbed([launch.contended for launch in measurement.counted]) else ""
        chosen = f"--case {shlex.quote(judged.case.id)}{''.join(self._stores())} --regression-ok{busy}"
        return f'ipexperf baseline accept {run} {chosen} --reason "WHY"'

    def _where_to_look(self, settled: RunVerdict) -> Iterator[tuple[str, str]]:
        """Commands that say more or go on, the most fitting first, each with what it does."""
        if self._judge.recorder.uid is not None:
            yield from self._commands_of_run(settled)
            if self._pages is not None and not self.ending.unwritten:
                yield str(self._pages / "index.html"), "the same, drawn"
        if self._plan.left_out:
            yield "ipexperf cases --why", "every cell that was left out, and its reason"

    def _commands_of_run(self, settled: RunVerdict) -> Iterator[tuple[str, str]]:
        """What fits the outcome: find the cause of the worst red case, mend what could not be told, or accept."""
        run, (database, baselines), named = self.ending.name, self._stores(), self._judge.arms.named
        judged = [Judged(done.measurement, settled.verdicts[done.case.uid]) for done in self._judge.finished]
        numbered = [done for done in judged if outcomes.has_numbers(done.verdict.outcome)]
        kinds = {done.verdict.kind for done in judged if not done.verdict.fails}
        if red := [done for done in numbered if done.verdict.fails]:
            worst = max(red, key=lambda done: done.verdict.times or 1.0)
            if not isinstance(worst.case, ProgramCase) and (named is None or not named.own.text):
                arm = None if named is None else named.words.text
                explain = rerun.explain(run, worst.case, self._options, arm, "".join(self._stores("--perf-")))
                yield explain, "measure it again, and write a page on why"
        elif named is None and "inconclusive" not in kinds and any(map(_is_new, judged)):
            reason = "first run" if "no_baseline" in kinds else "faster"
            accept = f'ipexperf baseline accept {run}{database}{baselines} --reason "{reason}"'
            yield accept, "judge later runs against this one"
        if any(done.verdict.untold for done in judged):
            yield "ipexperf doctor", "what on this machine disturbs a measurement"
        for kind in sorted(kind for kind in kinds - {"no_baseline"} if not outcomes.is_fine(kind))[:1]:
            yield f"ipexperf help {kind}", "what it means, and what to do"
        yield f"ipexperf show {run}{database}", "every number of this run"
        if any(done.verdict.outcome != "no_baseline" for done in numbered):
            yield f"ipexperf trend{database}", "the same cases through time"

    def _stores(self, prefix: str = "--") -> tuple[str, str]:
        """The options that `ipexperf` needs to find a run and the baselines; empty for the default places."""
        database, folder = self._options.db, self._options.baselines
        return (
            "" if database == "ipexperf.db" else f" {prefix}db {shlex.quote(database)}",
            "" if folder == Path("baselines") else f" {prefix}baselines {shlex.quote(str(folder))}",
        )

    def _since_accepted(self) -> dict[Case, list[str]]:
        """What differs in the software and source of each measured case from its baseline's."""
        from ipexperf.judge.environment import RAN, differences

        since: dict[Case, list[str]] = {}
        for measurement, _ in self._judge.finished:
            accepted = self._judge.baselines.accepted(measurement)
            since[measurement.case] = (
                differences(accepted.environment, measurement.environment, RAN) if accepted else []
            )
        return since

    def _missing(self) -> list[str]:
        """The ids of the accepted cases that this run should have measured, and has not in its plan."""
        if self._judge.arms.named is not None:
            return []
        machines = dict.fromkeys(judged.measurement.environment.get("machine_key") for judged in self._judge.finished)
        return [case.id for case in self._judge.baselines.missing(filter(None, machines), self.has_place)]


def _is_new(judged: Judged) -> bool:
    """Whether a case that is complete has no baseline yet, or became faster, so that accepting it says something."""
    launches = [launch.contended for launch in judged.measurement.counted]
    enough = len(launches) >= Policy().minimum_launches and not (judged.measurement.cut or disturbed(launches))
    return enough and judged.verdict.outcome in ("no_baseline", "improved")
