"""Search between two ends until the clock confirms a finding.

A strategy (a set of changes, or an ordered list) asks the questions. It names the software of each question, and the
answers that the clock must confirm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ipexperf.judge.bisection import Answer, Change
from ipexperf.report import units
from ipexperf.tools.bisect.answers import Measured

if TYPE_CHECKING:
    from ipexperf.tools.bisect.software import Software

Say = Callable[[str], None]
Question = TypeVar("Question")
Question_co = TypeVar("Question_co", covariant=True)
BY_KERNELS = "by which kernels run alone, because the clock cannot tell what they cost"


@dataclass(frozen=True, slots=True)
class Conclusion(Generic[Question]):
    """The result of a search, of either strategy."""

    outcome: str
    reason: str
    culprits: tuple[tuple[Change, ...], ...] = ()
    suspects: tuple[str, ...] = ()
    proof: tuple[tuple[Question, Answer], ...] = ()
    """The answers that must hold if the conclusion is true."""
    culprit: Question | None = None
    """The question whose numbers tell the cost of the culprits."""
    last_good: Question | None = None
    first_bad: Question | None = None


class RunningSearch(Protocol[Question_co]):
    """One search, which ends with a finding."""

    def run(self) -> Generator[Question_co, Answer, Any]:
        """Yield questions, be sent their answers, and return the finding."""

    def left(self) -> int:
        """Return the most questions that can still come."""


class Strategy(Protocol[Question]):
    """How to search: the questions, in the order in which they are asked, and what they mean."""

    @property
    def whole(self) -> Question | None:
        """The question whose software is the bad end, or None if nothing differs."""

    @property
    def differences(self) -> int:
        """The number of changes between the ends."""

    def search(self) -> RunningSearch[Question]:
        """Begin a search."""

    def conclusion(self, finding: Any) -> Conclusion[Question]:
        """Return what the finding of a search means."""

    def software(self, question: Question) -> Software:
        """Return the software to measure for a question."""

    def words(self, question: Question) -> str:
        """Return the question in words, for people."""


class Bench(Protocol):
    """Answers the questions: a laboratory."""

    kernels: tuple[str, str] | None

    def timed(self, candidate: Software) -> Measured: ...
    def sized(self, bad: Software, ends: Measured) -> Measured: ...
    def quick(self, candidate: Software) -> Measured: ...
    def judge_by(self, ends: Measured) -> None: ...
    def seconds_each(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Report(Generic[Question]):
    """A conclusion with the numbers that prove it."""

    conclusion: Conclusion[Question]
    ends: Measured | None = None
    """The numbers of the bad end against the good one."""
    culprit: Measured | None = None
    """The numbers of the culprits alone against the good end."""
    asked: int = 0
    """The number of candidates measured, now or in an earlier try."""


Answers = dict[Question, Measured]


def find(strategy: Strategy[Question], bench: Bench, say: Say, *, fingerprint: bool = True) -> Report[Question]:
    """Search until the clock confirms a finding. If the ends' fingerprints differ, these answer on the way there."""
    whole = strategy.whole
    if whole is None:
        return Report(Conclusion("alike", "nothing differs between both ends"))
    answers: Answers[Question] = {whole: bench.timed(strategy.software(whole))}
    conclusion = _concluded(strategy, whole, bench, answers, say, fingerprint=fingerprint)
    culprit = answers.get(conclusion.culprit) if conclusion.culprit is not None else None
    return Report(conclusion, answers.get(whole), culprit, len(answers))


def _concluded(
    strategy: Strategy[Question],
    whole: Question,
    bench: Bench,
    answers: Answers[Question],
    say: Say,
    *,
    fingerprint: bool,
) -> Conclusion[Question]:
    ends = answers[whole]
    if ends.answer is Answer.GOOD:
        return _exchanged(_run(strategy, bench.timed, bench, answers, say), ends)
    if ends.answer is Answer.BAD:
        ends = answers[whole] = bench.sized(strategy.software(whole), ends)
    bench.judge_by(ends)
    by_kernels = fingerprint and bench.kernels is not None
    if ends.answer is not Answer.BAD:
        if not by_kernels:
            return _run(strategy, bench.timed, bench, answers, say)
        say("the clock cannot tell both ends apart, but they run different kernels: these answer")
        answers[whole] = dataclasses.replace(ends, answer=Answer.BAD)
        conclusion = _run(strategy, bench.quick, bench, answers, say)
        answers[whole] = ends
        if not conclusion.culprits:
            return conclusion
        return dataclasses.replace(conclusion, reason=f"{conclusion.reason}, {BY_KERNELS}")
    if by_kernels:
        say("both ends run different kernels, which answer first; the clock proves what they say")
        conclusion = _run(strategy, bench.quick, bench, answers, say)
        if conclusion.culprits and _proven(conclusion, strategy, bench, answers, say):
            return conclusion
        say("the clock does not confirm what the kernels say: it answers all questions now")
        answers.clear()
        answers[whole] = ends
    return _run(strategy, bench.timed, bench, answers, say)


def _exchanged(conclusion: Conclusion[Question], ends: Measured) -> Conclusion[Question]:
    if conclusion.outcome == "alike" and ends.hi is not None and ends.hi < 1:
        reason = "the bad end is quicker than the good end: are they exchanged?"
        return dataclasses.replace(conclusion, reason=reason)
    return conclusion


def _run(
    strategy: Strategy[Question],
    measure: Callable[[Software], Measured],
    bench: Bench,
    answers: Answers[Question],
    say: Say,
) -> Conclusion[Question]:
    """Answer the questions of a strategy until it concludes."""
    search = strategy.search()
    questions = search.run()
    number = 1
    try:
        question = next(questions)
        while True:
            if question not in answers:
                left = search.left()
                seconds = bench.seconds_each()
                estimate = f", about {units.seconds(round(left * seconds))}" if seconds else ""
                say(f"question {number}, at most {left} left{estimate}: {strategy.words(question)}")
                answers[question] = measure(strategy.software(question))
                say(f"  {answers[question].answer.value}: {answers[question].reason}")
            question = questions.send(answers[question].answer)
            number += 1
    except StopIteration as end:
        return strategy.conclusion(end.value)


def _proven(
    conclusion: Conclusion[Question],
    strategy: Strategy[Question],
    bench: Bench,
    answers: Answers[Question],
    say: Say,
) -> bool:
    """Return True if the clock gives the same answers as the kernels."""
    for question, expected in conclusion.proof:
        if question not in answers or not answers[question].clock:
            say(f"the clock proves it: {strategy.words(question)}")
            answers[question] = bench.timed(strategy.software(question))
            say(f"  {answers[question].answer.value}: {answers[question].reason}")
        if answers[question].answer is not expected:
            return False
    return True
