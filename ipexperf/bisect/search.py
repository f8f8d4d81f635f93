"""Search between two ends until something is proven by the clock.

What is searched, a set of changes or an ordered list, says what its questions are, what software each stands for, and
what the clock must confirm of a finding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ipexperf.bisect.answers import Measured
from ipexperf.judge.bisection import Answer, Change
from ipexperf.report import units

if TYPE_CHECKING:
    from ipexperf.bisect.software import Software

Say = Callable[[str], None]
Question = TypeVar("Question")
BY_KERNELS = "by which kernels run alone, because the clock cannot tell what they cost"


@dataclass(frozen=True, slots=True)
class Conclusion(Generic[Question]):
    """The end of a search, whatever was searched."""

    outcome: str
    reason: str
    culprits: tuple[tuple[Change, ...], ...] = ()
    suspects: tuple[str, ...] = ()
    proof: tuple[tuple[Question, Answer], ...] = ()
    """What must hold if it is true."""
    culprit: Question | None = None
    """The question whose numbers say what the culprits cost."""
    last_good: Question | None = None
    first_bad: Question | None = None


class Searched(Protocol[Question]):
    """What is searched."""

    @property
    def whole(self) -> Question | None:
        """The question that is the bad end, or None if nothing differs."""

    @property
    def differences(self) -> int:
        """How many changes there are between both ends."""

    def ask(self) -> Generator[Question, Answer, Conclusion[Question]]:
        """Yield questions, be sent their answers, and return the conclusion."""

    def left(self, answers: Sequence[Answer]) -> int:
        """How many questions are left at most."""

    def software(self, question: Question) -> Software:
        """What is measured for a question."""

    def words(self, question: Question) -> str:
        """The question for people."""


class Bench(Protocol):
    """What answers: a laboratory."""

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
    """The bad end against the good one."""
    culprit: Measured | None = None
    """The culprits alone against the good end."""
    asked: int = 0
    """How many candidates were measured, now or in an earlier try."""


Answers = dict[Question, Measured]


def find(searched: Searched[Question], bench: Bench, say: Say, *, fingerprint: bool = True) -> Report[Question]:
    """Search until something is proven by the clock. The fingerprint, where it differs, answers the way there."""
    whole = searched.whole
    if whole is None:
        return Report(Conclusion("alike", "nothing differs between both ends"))
    answers: Answers[Question] = {whole: bench.timed(searched.software(whole))}
    conclusion = _concluded(searched, whole, bench, answers, say, fingerprint=fingerprint)
    culprit = answers.get(conclusion.culprit) if conclusion.culprit is not None else None
    return Report(conclusion, answers.get(whole), culprit, len(answers))


def _concluded(
    searched: Searched[Question],
    whole: Question,
    bench: Bench,
    answers: Answers[Question],
    say: Say,
    *,
    fingerprint: bool,
) -> Conclusion[Question]:
    ends = answers[whole]
    if ends.answer is Answer.GOOD:
        return _exchanged(_run(searched, bench.timed, bench, answers, say), ends)
    if ends.answer is Answer.BAD:
        ends = answers[whole] = bench.sized(searched.software(whole), ends)
    bench.judge_by(ends)
    by_kernels = fingerprint and bench.kernels is not None
    if ends.answer is not Answer.BAD:
        if not by_kernels:
            return _run(searched, bench.timed, bench, answers, say)
        say("the clock cannot tell both ends apart, but they run different kernels: these answer")
        answers[whole] = dataclasses.replace(ends, answer=Answer.BAD)
        conclusion = _run(searched, bench.quick, bench, answers, say)
        answers[whole] = ends
        if not conclusion.culprits:
            return conclusion
        return dataclasses.replace(conclusion, reason=f"{conclusion.reason}, {BY_KERNELS}")
    if by_kernels:
        say("both ends run different kernels, which answer first; the clock proves what they say")
        conclusion = _run(searched, bench.quick, bench, answers, say)
        if conclusion.culprits and _proven(conclusion, searched, bench, answers, say):
            return conclusion
        say("the clock does not confirm what the kernels say: it answers all questions now")
        answers.clear()
        answers[whole] = ends
    return _run(searched, bench.timed, bench, answers, say)


def _exchanged(conclusion: Conclusion[Question], ends: Measured) -> Conclusion[Question]:
    if conclusion.outcome == "alike" and ends.hi is not None and ends.hi < 1:
        reason = "the bad end is quicker than the good end: are they exchanged?"
        return dataclasses.replace(conclusion, reason=reason)
    return conclusion


def _run(
    searched: Searched[Question],
    measure: Callable[[Software], Measured],
    bench: Bench,
    answers: Answers[Question],
    say: Say,
) -> Conclusion[Question]:
    """Let the search ask until it concludes."""
    asking = searched.ask()
    sent: list[Answer] = []
    try:
        question = next(asking)
        while True:
            if question not in answers:
                left = searched.left(sent)
                each = bench.seconds_each()
                about = f", about {units.seconds(round(left * each))}" if each else ""
                say(f"question {len(sent) + 1}, at most {left} left{about}: {searched.words(question)}")
                answers[question] = measure(searched.software(question))
                say(f"  {answers[question].answer.value}: {answers[question].reason}")
            sent.append(answers[question].answer)
            question = asking.send(sent[-1])
    except StopIteration as end:
        conclusion: Conclusion[Question] = end.value
        return conclusion


def _proven(
    conclusion: Conclusion[Question],
    searched: Searched[Question],
    bench: Bench,
    answers: Answers[Question],
    say: Say,
) -> bool:
    """Whether the clock says the same as the kernels."""
    for question, expected in conclusion.proof:
        if question not in answers or not answers[question].clock:
            say(f"the clock proves it: {searched.words(question)}")
            answers[question] = bench.timed(searched.software(question))
            say(f"  {answers[question].answer.value}: {answers[question].reason}")
        if answers[question].answer is not expected:
            return False
    return True
