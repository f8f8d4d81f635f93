"""Make the dossier of a case: one more round, in which both workers write down what a step does."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from ipexperf import units
from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.case import Case, FunctionCase
from ipexperf.compare import arm
from ipexperf.compare.against import PairPlan
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import ArmResult, Effort, Round
from ipexperf.compare.together import Together
from ipexperf.compare.walk import Suite, Walk
from ipexperf.conduct.conductor import Conductor
from ipexperf.dashboard import folder as folders
from ipexperf.dossier import drawing, page, script
from ipexperf.dossier.page import MEASURE, Dossier
from ipexperf.errors import IpexperfError, UsageError
from ipexperf.judge.environment import SOURCE
from ipexperf.judge.sentence import sentence
from ipexperf.proof import causes, structure, tracing
from ipexperf.report.lines import wrapped
from ipexperf.report.rerun import Search
from ipexperf.result import METRICS, PRIMARY
from ipexperf.sentences import few
from ipexperf.steps import Step
from ipexperf.verdict import Verdict

SECONDS = 300.0
"""No dossier of a run begins later."""
SCRIPT_SECONDS = 120.0
LONGEST_NAME, DIGITS = 100, 8
"""A folder's name: so much of the id, and so much of the uid, because two ids may become one name."""
SHOWN = 15
"""Most rows of a table."""
NOTABLE = 0.05
"""The share of a step that a call must have lost to be named first."""
WHOLE = 0.9
"""A call that takes this share of the step is the step, but for what calls it."""
DIFF_LINES = 400
"""Most lines of a difference between two files on the page. The files are beside it."""
COUNTS = ("step_flops", "step_operators", "step_kernels", "step_python_calls", "step_allocations", "step_memory")
"""The metrics of a step that have no noise."""


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What a dossier is about: a case that was judged beside another arm."""

    case: Case
    verdict: Verdict
    against: PairPlan | None
    """The other arm. None if there is none, for the reason `alone`."""
    alone: str
    block: str
    """The text of its failed test."""
    reproduce: str
    """The command that measures it again."""
    axes: str
    """The options that choose it alone."""
    commits: tuple[str, str] = ("", "")
    """The commits that the other arm's files and its own are of, as far as they are known."""


def write(
    questions: Sequence[Question],
    conductor: Conductor,
    suite: Suite | None,
    folder: Path,
    say: Callable[[str], None],
    written: dict[str, str],
) -> Iterator[str]:
    """Write the dossiers, that of the slowest case first, as far as SECONDS reach. Yields what to say of each.

    `written` gets the pages, by the uid of the recorded case.
    """
    until = time.monotonic() + SECONDS
    for question in sorted(questions, key=lambda question: -(question.verdict.times or 0.0)):
        case = question.case
        if question.against is None:
            yield f"no dossier of {case.id}: {question.alone}"
        elif time.monotonic() > until:
            yield f"no dossier of {case.id}: those before it took {units.seconds(SECONDS)}"
        else:
            maker = _Maker(
                question, question.against, conductor, suite if isinstance(case, FunctionCase) else None, say
            )
            try:
                path, lines = maker.make(folder)
            except Exception as error:  # noqa: BLE001 - the verdicts are there, and a page on one must not lose them
                kind = "" if isinstance(error, IpexperfError) else f"{type(error).__name__}: "
                yield f"no dossier of {case.id}: {kind}{error}"
            else:
                written[question.against.recorded(case).uid] = str(path.absolute())
                yield from (f"dossier: {path}", *(f"  {row}" for line in lines for row in wrapped(line)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Maker:
    """Makes one dossier."""

    question: Question
    against: PairPlan
    conductor: Conductor
    suite: Suite | None
    """The session of pytest that has the test, if the case is a function."""
    say: Callable[[str], None]

    def make(self, folder: Path) -> tuple[Path, Sequence[str]]:
        """Write the dossier into a folder of its own. Returns its page and its first lines."""
        case = self.question.case
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{re.sub(r'[^a-zA-Z0-9.+-]+', '_', case.id)[:LONGEST_NAME]}-{case.uid[:DIGITS]}"
        with folders.whole(target) as new:
            self.say(Step(f"dossier of {case.id}: tracing both arms"))
            played = self._traced(new)
            for side in played.results:
                if side.error is not None:
                    raise UsageError(side.error.reason)
            dossier = self._dossier(played, new)
            (new / "dossier.json").write_text(json.dumps(dossier.to_json(), indent=1) + "\n", encoding="utf-8")
            (new / "index.html").write_text(page.html(dossier), encoding="utf-8")
        return target / "index.html", dossier.lines

    def _traced(self, place: Path) -> Round:
        """A round of both arms, at whose end their workers write what a step does."""
        case, against = self.question.case, self.against
        for traced in (against.cases[case], case):
            if lost := self.conductor.quarantined(traced):
                raise UsageError(lost[0].reason)
        sides = ((against.cases[case], against.words, against.names[0]), (case, against.own, against.names[1]))
        a, b = (
            dataclasses.replace(arm.arm(self.conductor, *side), trace=place / name)
            for name, side in zip("ab", sides, strict=True)
        )
        chance = random.Random()  # noqa: S311 - a start order, no secret
        schedule = Walk(self.suite, self.conductor.spent) if self.suite else Together(Effort(keep=True))
        [played] = schedule.play([[a, b]], chance, self.say)
        if played.absences:
            raise UsageError("; ".join(str(absence) for absence in played.absences if absence))
        return played

    def _dossier(self, played: Round, new: Path) -> Dossier:
        """All that both arms told in this round, and what they left in the folder."""
        a, b = played.results
        summaries = [_summary(new / name) for name in "ab"]
        environments = a.environment or b.environment, b.environment or a.environment
        own = drawing.lost(summaries[0]["own"], summaries[1]["own"])
        differs = arm.differ(a.arm, b.arm, environments, [name for name, *_ in own])
        old, now = a.launch.fingerprint, b.launch.fingerprint
        ran = structure.diff(old, now) if old and now and old["version"] == now["version"] else None
        known = causes.known(old, now)
        text, why_not = script.of(a.arm, b.arm, self.suite)
        shown = ""
        if text:
            (new / script.NAME).write_text(text, encoding="utf-8")
            self.say(Step(f"dossier of {self.question.case.id}: running the script that shows it"))
            shown, why_not = _run(new / script.NAME)
        searches = tuple(_searches(self.question, a, b))
        files = tuple(_changed_files(a.arm, b.arm, environments))
        longest = max(root[1] for summary in summaries for root in summary["flames"]) or 1.0
        allocated = drawing.lost(summaries[0]["allocated"], summaries[1]["allocated"])
        graphs = [len(list((new / name).glob("code-*.py"))) for name in "ab"]
        changes = [f"code was generated for {graphs[0]} -> {graphs[1]} graphs"] if graphs[0] != graphs[1] else []
        changes += [structure.with_share(change.text, ran.share(change)) for change in ran.changes] if ran else []
        return Dossier(
            case=self.question.case.id,
            lines=tuple(self._lines(differs, known, changes, _lost(self.question.verdict, summaries, files, own))),
            block=self.question.block,
            arms=tuple(side.arm.conditions.python or sys.executable for side in (a, b)),
            differs=tuple(differs),
            causes=tuple((cause.name, cause.meaning, cause.page) for cause in known),
            changes=tuple(changes),
            counts=tuple(_counts(a, b)),
            own=tuple(row for row in own[:SHOWN] if row[2] - row[1] > tracing.THIN * longest),
            allocated=tuple(row for row in allocated if row[2] > row[1])[:SHOWN],
            flames=(
                drawing.flames(summaries[0]["flames"], longest),
                drawing.flames(summaries[1]["flames"], longest, summaries[0]["flames"]),
            ),
            missing=tuple(
                f"arm {name}: {text}"
                for name, summary in zip("ab", summaries, strict=True)
                for text in summary["missing"]
            ),
            source=files,
            code=tuple(_changed_code(new)),
            script=text,
            script_said=shown,
            no_script=why_not,
            searches=searches,
            commands={
                MEASURE: self.question.reproduce,
                **{f"Search the {search.kind}": search.command(self.question.axes) for search in searches},
            },
            files=tuple(
                (str(path.relative_to(new)), path.stat().st_size) for path in sorted(new.rglob("*")) if path.is_file()
            ),
        )

    def _lines(
        self,
        differs: Sequence[str],
        known: Sequence[causes.Cause],
        changes: Sequence[str],
        lost: str,
    ) -> Iterator[str]:
        """How much slower, what differs, and what that did: what a reader in a hurry needs."""
        case, verdict = self.question.case, self.question.verdict
        other = self.against.words.text or "itself"
        yield f"{case.id} beside {other}: {sentence(verdict)}"
        yield f"What differs: {few(differs, between='; ') or 'nothing that is recorded'}"
        names = ", ".join(cause.name for cause in known)
        what = "; ".join(filter(None, (names, changes[0] if changes else "", lost)))
        yield f"What it did: {what or 'nothing that a fingerprint or a trace shows'}"


def _summary(folder: Path) -> Mapping[str, Any]:
    """What a worker wrote, or nothing if its arm cannot be traced."""
    path = folder / tracing.SUMMARY
    if not path.is_file():  # several workers, which answer requests at the same time
        return {**tracing.NOTHING, "missing": [tracing.ELSEWHERE_STEPS]}
    summary: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    return summary


def _lost(
    verdict: Verdict,
    summaries: Sequence[Mapping[str, Any]],
    files: Sequence[tuple[str, str]],
    own: Sequence[drawing.Row],
) -> str:
    """Where the time is lost: in a call of a file that differs, or else in the call whose own time grew most.

    A profiler lengthens short calls most. What is nearly the whole step takes longer by what was judged.
    """
    a, b = (summary["flames"] for summary in summaries)
    longest = max(root[1] for root in b)
    found = drawing.slowed(b, a, [name for name, _ in files])
    name, before, after = found or (own[0][:3] if own else ("", 0.0, 0.0))
    if after - before <= NOTABLE * longest:
        return ""
    judged = verdict.times if after > WHOLE * longest else None
    return f"{page.longer(judged or (after / before if before else math.inf))} in {name}"


def _searches(question: Question, a: ArmResult, b: ArmResult) -> Iterator[Search]:
    """The searches that can find something."""
    if question.against is None:
        return
    good, (since, until) = question.against.words.text, question.commits
    if arm.other_software(a.arm, b.arm):
        yield Search("package or variable", good)
    first, last = (Version(side.environment.get("software", {}).get("torch") or "0") for side in (a, b))
    if first.is_devrelease and last.is_devrelease and first < last:
        yield Search("nightly build of torch", good, str(first), str(last))
    if since and until and not until.startswith(since):  # an arm has the beginning alone
        yield Search("commit", "", since, until)


def _counts(a: ArmResult, b: ArmResult) -> Iterator[tuple[str, float, float]]:
    """The metrics of both steps: their times, and what has no noise."""
    for name in (PRIMARY, *COUNTS):
        before, after = (side.launch.metrics.get(name) for side in (a, b))
        if before is not None and after is not None:
            yield METRICS[name].name, before, after


def _changed_files(
    a: Arm, b: Arm, environments: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """The user's files that differ between the arms, each with its difference."""
    trees = [(Replaced.of(side.conditions.variables) or Replaced("", str(source.tree()))).by for side in (a, b)]
    digests = [dict(environment.get(SOURCE) or {}) for environment in environments]
    for name in sorted({*digests[0], *digests[1]}) if trees[0] != trees[1] else ():
        if digests[0].get(name) != digests[1].get(name):
            yield name, difference(name, *(_text(source.place(tree, name)) for tree in trees))


def _changed_code(new: Path) -> Iterator[tuple[str, str]]:
    """The generated code that differs."""
    names = sorted({path.name for side in "ab" for path in (new / side).glob("code-*.py")})
    for name in names:
        texts = [_text(new / side / name) for side in "ab"]
        if texts[0] != texts[1]:
            yield name, difference(name, *texts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def difference(name: str, old: str, new: str) -> str:
    """Both texts as a unified diff of at most so many lines."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{name}", f"b/{name}", lineterm=""))
    more = [f"... and {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
    return "\n".join([*lines[:DIFF_LINES], *more])


def _run(path: Path) -> tuple[str, str]:
    """What the script printed, and why nothing if it did not."""
    try:
        ended = subprocess.run(
            [sys.executable, str(path)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SCRIPT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"it did not end within {SCRIPT_SECONDS:.0f} s"
    last = (ended.stdout.strip() or ended.stderr.strip() or "no word").splitlines()[-1]
    return (last, "") if ended.returncode == 0 else ("", f"it failed here: {last}")
