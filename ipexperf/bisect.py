"""`ipexperf bisect`: which change of software makes a case slower.

The search (`judge.bisection`) asks of one candidate after the other whether it is slow. A candidate's environment is
made from its lock and measured in turns with the good end. Where both ends run different kernels, which kernels a
candidate runs answers first, in one pair of launches; the clock then has the last word on what was found.
Every answer is written down by the content of what was measured, so that an interrupted search goes on where it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ipexperf import live_baseline
from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Inventory
from ipexperf.compare.against import Against, AgainstRun
from ipexperf.conduct import process
from ipexperf.environments import make
from ipexperf.errors import LockError, UsageError
from ipexperf.judge import bisection, structure
from ipexperf.judge.bisection import Answer, Candidate, Change, Finding
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.requirements import Mixes
from ipexperf.lock import Lock
from ipexperf.plan import arms
from ipexperf.plan.arms import ArmWords

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.sequence import Comparison, Standing
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan.options import Options
    from ipexperf.recorder import Recorder
    from ipexperf.result import Verdict

TOLERANCE = 0.02
"""Both ends must differ by more than this, unless the user says otherwise."""
FOLDER = "bisect"
Say = Callable[[str], None]
SHARE = 0.7
"""The tolerance of a candidate, as a share of the difference of both ends."""
MOST_NAMED = 4
"""Candidates of more changes are told by their number."""
Answers = dict[Candidate, "Measured"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen of one candidate."""

    answer: Answer
    reason: str
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    kernels: str | None = None
    """The digest of its fingerprint."""
    others: str | None = None
    """The digest of the good end's, in the same pair."""
    clock: bool = True
    """Whether the answer is of the clock, and not of the fingerprint alone."""
    seconds: float = 0.0
    ran: tuple[str, ...] = ()
    """How its kernels differ from those of the good end."""

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "answer": self.answer.value}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Measured:
        return cls(**{**document, "answer": Answer(document["answer"]), "ran": tuple(document["ran"])})


class Log:
    """The answers of one search, by content. Each is on disk before the next question."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Read the answers of an earlier try. `fresh`: forget them."""
        self.path = path
        self._answers: dict[str, Measured] = {}
        if fresh:
            path.unlink(missing_ok=True)
        for line in self._lines():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # a killed process was writing this line
                document = json.loads(line)
                self._answers[document["key"]] = Measured.from_json(document["measured"])

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error}") from error

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> Measured | None:
        return self._answers.get(key)

    def put(self, key: str, measured: Measured) -> None:
        """Write an answer down. An unsure one is not: the next try may be quieter."""
        if measured.answer is Answer.UNSURE:
            return
        self._answers[key] = measured
        document = {"key": key, "measured": measured.to_json()}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(document) + "\n")
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error}") from error


@dataclass(frozen=True, slots=True)
class End:
    """An end of the search: its software, made from its lock in the cache."""

    lock: Lock
    python: str
    inventory: Inventory


def end(text: str, source: str, options: Options, cache: Path, say: Say) -> End:
    """The end that a user names as an arm. Makes its environment, from which candidates are copied."""
    words = arms.parse(text, source)
    if words.axes or words.knobs:
        raise UsageError(
            f"{source} '{text}': an end is software and variables: choose the case with --model and the like"
        )
    if words.lock:
        lock = live_baseline.lock_named(words.lock, options, source)
        make.check_possible(lock)
    else:
        lock = live_baseline.current_lock(dataclasses.replace(options, python=words.python or options.python))
    lock = dataclasses.replace(lock, variables=tuple(sorted({**dict(lock.variables), **words.variables}.items())))
    mine = [words.python or options.python or sys.executable]
    python = make.make(cache, lock, say, mine).python
    return End(lock, python, make.take_inventory(python))


@dataclass(frozen=True, slots=True)
class Report:
    """What a search found, with the numbers that prove it."""

    finding: Finding
    ends: Measured | None = None
    """The bad end against the good one."""
    culprit: Measured | None = None
    """The good end with the culprits alone, against the good end."""
    asked: int = 0
    """How many candidates were measured, now or in an earlier try."""
    differences: int = 0
    neighbours: tuple[Path, Path] | None = None
    """The locks of the last good and the first bad candidate."""


class Progress(Protocol):
    """Shows people what goes on."""

    def say(self, text: str) -> None: ...

    def show(self, standing: Standing) -> None: ...


class Laboratory:
    """Measures candidates against the good end."""

    def __init__(
        self,
        case: Case,
        good: End,
        cache: Path,
        conductor: Conductor,
        recorder: Callable[[], Recorder],
        policy: PairPolicy,
        progress: Progress,
        log: Log,
        seed: int | None = None,
    ) -> None:
        self._case = case
        self._good = good
        self._cache = cache
        self._conductor = conductor
        self._recorder = recorder
        self._policy = policy
        self._progress = progress
        self.log = log
        self._chance = random.Random(seed)  # noqa: S311 - a start order, no secret
        self.kernels: tuple[str, str] | None = None
        """The fingerprints of both ends, if they differ."""
        self._took: list[float] = []

    def timed(self, candidate: Lock) -> Measured:
        """Ask the clock: rounds of the good end against the candidate until the judge is sure."""
        key = f"clock {self._policy.tolerance:.6f} {candidate.digest}"
        return self._known(key, candidate) or self._keep(key, self._measure(candidate, self._policy))

    def quick(self, candidate: Lock) -> Measured:
        """Ask which kernels run. Where they are those of neither end, ask the clock."""
        if self.kernels is None:
            return self.timed(candidate)
        key = f"kernels {'/'.join(self.kernels)} {candidate.digest}"
        if (known := self._known(key, candidate)) is not None:
            return known
        one = self._measure(candidate, dataclasses.replace(self._policy, max_pairs=1))
        if one.answer is Answer.SKIP:
            return self._keep(key, one)
        if one.kernels not in self.kernels:
            return self.timed(candidate)
        bad = one.kernels == self.kernels[1]
        reason = f"it runs the kernels of the {'bad' if bad else 'good'} end"
        answer = Answer.BAD if bad else Answer.GOOD
        return self._keep(key, dataclasses.replace(one, answer=answer, reason=reason, clock=False))

    def judge_by(self, ends: Measured) -> None:
        """Set what is slow: nearer to the bad end than to the good one. Remember the kernels of both ends."""
        assert ends.ratio is not None  # noqa: S101 - the bad end was seen to be slower
        # Regressed is what surely exceeds 0.4 of the tolerance, ok what surely stays below it: both sides of the half.
        self._policy = dataclasses.replace(self._policy, tolerance=min(SHARE * (ends.ratio - 1), 0.9))
        if ends.kernels is not None and ends.others is not None and ends.kernels != ends.others:
            self.kernels = (ends.others, ends.kernels)

    def seconds_each(self) -> float | None:
        """How long a question took, in the median."""
        return statistics.median(self._took) if self._took else None

    def _known(self, key: str, candidate: Lock) -> Measured | None:
        known = self.log.get(key)
        if known is not None:
            self._progress.say(f"known of {candidate.digest}: {known.answer.value}, {known.reason}")
        return known

    def _keep(self, key: str, measured: Measured) -> Measured:
        self.log.put(key, measured)
        return measured

    def _measure(self, candidate: Lock, policy: PairPolicy) -> Measured:
        began = time.monotonic()
        try:
            sides = [self._words(self._good.lock), self._words(candidate)]
        except LockError as error:
            return Measured(Answer.SKIP, f"it cannot be installed: {error}", seconds=time.monotonic() - began)
        against = Against(
            sides[0], "--good", {self._case: self._case}, policy, own=sides[1], names=("the good end", "the candidate")
        )
        running = AgainstRun(
            against,
            [(self._case, None)],
            self._conductor,
            self._progress.say,
            chance=self._chance,
            show=self._progress.show,
        )
        recorder = self._recorder()
        try:
            running.run()
        finally:
            measurement, verdict, used = running.judged()[self._case]
            if measurement.launches:
                recorder.case(measurement, verdict, used)
                running.hand_over(recorder.round)
            recorder.finish("finished")
            recorder.close()
        seconds = time.monotonic() - began
        self._took.append(seconds)
        return self._seen(running.comparisons().get(self._case), verdict, seconds)

    def _words(self, lock: Lock) -> ArmWords:
        environment = make.make(self._cache, lock, self._progress.say)
        unset = dict.fromkeys(process.tuned_by_user(os.environ), process.UNSET)
        return ArmWords(f"lock:{lock.digest}", environment.python, variables={**unset, **dict(lock.variables)})

    @staticmethod
    def _seen(comparison: Comparison | None, verdict: Verdict, seconds: float) -> Measured:
        """The answer that a comparison gives."""
        if comparison is None or comparison.failure is not None:
            fault = comparison.failure if comparison else None
            if fault is not None and comparison is not None and fault.arm is comparison.a:
                raise UsageError(f"the good end does not run the case: {fault.error.reason}")
            return Measured(Answer.SKIP, f"it does not run: {verdict.reason}", seconds=seconds)
        prints = [side.launch.fingerprint for pair in comparison.pairs[:1] for side in (pair.a, pair.b)]
        ran = structure.between(*prints).changes if len(prints) == 2 else ()
        others, kernels = (str(one["digest"]) if one and one["digest"] else None for one in prints or (None, None))
        answers = {"regressed": Answer.BAD, "ok": Answer.GOOD, "improved": Answer.GOOD, "inconclusive": Answer.UNSURE}
        answer = answers.get(verdict.outcome, Answer.SKIP)
        numbers = (verdict.ratio, verdict.lo, verdict.hi)
        return Measured(answer, verdict.reason, *numbers, kernels, others, seconds=seconds, ran=tuple(ran))


def changes_between(good: Lock, bad: Lock) -> list[Change]:
    """The changes that can be taken one by one: packages and variables."""
    if locks.series(good.python) != locks.series(bad.python):
        raise UsageError(
            f"the good end has Python {good.python} and the bad end {bad.python}: packages of both cannot be mixed"
        )
    rows = locks.differences(good, bad)
    return [Change(one.kind, one.name, one.old, one.new) for one in rows if one.kind in ("package", "variable")]


def mixed(good: Lock, bad: Lock, candidate: Candidate) -> Lock:
    """The good end with the changes of a candidate."""
    packages = {one.name: one for one in good.packages}
    theirs = {one.name: one for one in bad.packages}
    variables, their_variables = dict(good.variables), dict(bad.variables)
    for change in candidate:
        if change.kind == "package":
            _take(packages, theirs, change.name)
        else:
            _take(variables, their_variables, change.name)
    return dataclasses.replace(
        good,
        packages=tuple(packages[name] for name in sorted(packages)),
        variables=tuple(sorted(variables.items())),
        libraries=(),
        name="",
    )


def _take(ours: dict[str, T], theirs: dict[str, T], name: str) -> None:
    if name in theirs:
        ours[name] = theirs[name]
    else:
        ours.pop(name, None)


@dataclass(frozen=True, slots=True)
class Search:
    """One search: what may differ, and the lock of every candidate."""

    changes: Sequence[Change]
    fits: Callable[[Candidate], bool]
    ties: Mapping[Change, Sequence[Change]]
    lock: Callable[[Candidate], Lock]

    @classmethod
    def of(cls, good: Lock, bad: Lock, sides: Sequence[Inventory]) -> Search:
        """The search between two ends, whose installed packages say what fits together."""
        changes = changes_between(good, bad)
        of_good, of_bad = ({one.name: (one.version, one.requires) for one in side.packages} for side in sides)
        mixes = Mixes(of_good, of_bad, ".".join(locks.series(good.python)))
        return cls(changes, mixes.fits, mixes.ties(), lambda one: mixed(good, bad, one))


def find(search: Search, laboratory: Laboratory, say: Say, *, fingerprint: bool = True) -> Report:
    """Search until something is proven by the clock. The fingerprint, where it differs, answers the way there."""
    finding, answers = _found(search, laboratory, say, fingerprint=fingerprint)
    whole = frozenset(search.changes)
    culprit: Candidate = frozenset().union(*finding.culprits)
    return Report(finding, answers.get(whole), answers.get(culprit), len(answers), len(whole))


def _found(search: Search, laboratory: Laboratory, say: Say, *, fingerprint: bool) -> tuple[Finding, Answers]:
    answers: Answers = {}
    whole = frozenset(search.changes)
    if not whole:
        return Finding("alike", "nothing differs between both ends"), answers
    answers[whole] = laboratory.timed(search.lock(whole))
    ends = answers[whole]
    if ends.answer is not Answer.BAD:
        finding = _run(search, laboratory.timed, answers, say, laboratory)
        return _exchanged(finding, ends), answers
    laboratory.judge_by(ends)
    if fingerprint and laboratory.kernels is not None:
        say("both ends run different kernels, which answer first; the clock proves what they say")
        finding = _run(search, laboratory.quick, answers, say, laboratory)
        if _proven(finding, search, laboratory, answers):
            return finding, answers
        say("the clock does not confirm what the kernels say: it answers all questions now")
        answers = {whole: ends}
    return _run(search, laboratory.timed, answers, say, laboratory), answers


def _exchanged(finding: Finding, ends: Measured) -> Finding:
    if finding.outcome == "alike" and ends.hi is not None and ends.hi < 1:
        return dataclasses.replace(finding, reason="the bad end is quicker than the good end: are they exchanged?")
    return finding


def _run(
    search: Search, measure: Callable[[Lock], Measured], answers: Answers, say: Say, laboratory: Laboratory
) -> Finding:
    """Let the search ask until it has found."""
    asking = bisection.search(search.changes, search.fits, search.ties)
    sent: list[Answer] = []
    try:
        candidate = next(asking)
        while True:
            if candidate not in answers:
                left = bisection.questions_left(search.changes, search.fits, sent, search.ties)
                each = laboratory.seconds_each()
                about = f", about {left * each / 60:.0f} minutes" if each else ""
                taken = bisection.listed(candidate) if len(candidate) < MOST_NAMED else f"{len(candidate)} changes"
                say(f"question {len(sent) + 1}, at most {left} left{about}: the good end with {taken}")
                answers[candidate] = measure(search.lock(candidate))
                say(f"  {answers[candidate].answer.value}: {answers[candidate].reason}")
            sent.append(answers[candidate].answer)
            candidate = asking.send(sent[-1])
    except StopIteration as end:
        finding: Finding = end.value
        return finding


def _proven(finding: Finding, search: Search, laboratory: Laboratory, answers: Answers) -> bool:
    """Whether the clock says the same as the kernels: the culprits are enough, and without them it is quick."""
    if not finding.culprits:
        return False
    whole = frozenset(search.changes)
    enough = [finding.culprits[0], *finding.culprits[1:]]
    needed = whole.difference(*finding.culprits)
    for candidate, expected in (*((one, Answer.BAD) for one in enough), (needed, Answer.GOOD)):
        if candidate == whole or not candidate:
            continue  # an end
        if not search.fits(candidate):
            continue  # the search itself saw the nearest that fits
        answers[candidate] = laboratory.timed(search.lock(candidate))
        if answers[candidate].answer is not expected:
            return False
    return True


def log_path(cache: Path, case: Case, good: str, bad: str) -> Path:
    """Where the answers of a search are: named by the case and both ends."""
    name = hashlib.sha256(f"{case.uid} {good} {bad}".encode()).hexdigest()[:12]
    return cache / FOLDER / f"{name}.jsonl"


def with_neighbours(report: Report, search: Search, path: Path) -> Report:
    """The report, with the locks of the last good and the first bad candidate written beside the log."""
    from ipexperf.judge.baseline import write_text

    good, bad = report.finding.last_good, report.finding.first_bad
    if good is None or bad is None:
        return report
    places = (path.with_name(f"{path.stem}-good.txt"), path.with_name(f"{path.stem}-bad.txt"))
    for place, candidate in zip(places, (good, bad), strict=True):
        write_text(place, search.lock(candidate).text)
    return dataclasses.replace(report, neighbours=places)


def lines(report: Report, again: str) -> list[str]:
    """The finding as a block for people."""
    from ipexperf.report import units

    finding = report.finding
    heads = {
        "culprit": "CULPRIT",
        "together": "CULPRITS, slow only together",
        "several": "CULPRITS, each enough by itself",
        "inseparable": "AMONG THESE, which could not be measured apart",
        "alike": "NOTHING TO FIND",
        "cannot tell": "CANNOT TELL",
    }
    block = [f"{heads[finding.outcome]}: {finding.reason}"]
    for culprit in finding.culprits:
        block += [f"  {one.name}: {one.good or 'unset'} -> {one.bad or 'unset'}" for one in sorted(culprit, key=str)]
    for name, measured in (("both ends", report.ends), ("the culprit alone", report.culprit)):
        if measured is not None and measured.ratio is not None:
            told = f"{units.percent(measured.ratio)}"
            if measured.lo is not None and measured.hi is not None:
                told += f" {units.interval(measured.lo, measured.hi)}"
            block.append(f"time of {name}: {told}")
    ran = report.culprit or report.ends
    if ran is not None:
        block += [f"ran      {line}" for line in ran.ran]
    if finding.suspects and finding.outcome == "cannot tell":
        block.append(f"suspects {', '.join(sorted(one.name for one in finding.suspects))}")
    if report.neighbours is not None:
        block.append(f"last good {report.neighbours[0]}, first bad {report.neighbours[1]}")
        block.append(f"reproduce {again}")
    block.append(f"{report.asked} candidates measured for {report.differences} differences")
    return block


def document(report: Report) -> dict[str, Any]:
    """The finding as JSON values."""
    finding = report.finding
    plain = [[dataclasses.asdict(one) for one in sorted(culprit, key=str)] for culprit in finding.culprits]
    return {
        "outcome": finding.outcome,
        "reason": finding.reason,
        "culprits": plain,
        "suspects": sorted(one.name for one in finding.suspects),
        "questions": report.asked,
        "ends": report.ends.to_json() if report.ends else None,
        "culprit": report.culprit.to_json() if report.culprit else None,
        "neighbours": [str(path) for path in report.neighbours] if report.neighbours else None,
    }
