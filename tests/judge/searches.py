"""Searches whose questions are answered from a known truth, for the tests of both kinds of bisection."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from itertools import combinations
from typing import TypeVar

from ipexperf.judge.bisection import Answer, Candidate, Change, SearchResult

Question = TypeVar("Question")
Found = TypeVar("Found")


def packages(count: int) -> tuple[Change, ...]:
    return tuple(Change("package", f"p{number:02}", "1", "2") for number in range(count))


def answered(
    course: Generator[Question, Answer, Found], answer: Callable[[Question], Answer]
) -> tuple[Found, list[Question]]:
    """The finding, and the questions in their order."""
    questions = []
    try:
        question = next(course)
        while True:
            questions.append(question)
            question = course.send(answer(question))
    except StopIteration as stop:
        return stop.value, questions


def truth(*culprits: Iterable[Change]) -> Callable[[Candidate], Answer]:
    """Return a function that answers BAD for candidates that contain one of these sets."""
    sets = [frozenset(culprit) for culprit in culprits]
    return lambda candidate: Answer.BAD if any(one <= candidate for one in sets) else Answer.GOOD


def anything(candidate: Candidate) -> bool:
    return True


def tied(*groups: Iterable[Change]) -> Callable[[Candidate], bool]:
    """Return whether a candidate has each of these groups as a whole or not at all."""
    sets = [frozenset(group) for group in groups]
    return lambda candidate: all(one <= candidate or not one & candidate for one in sets)


def candidates(changes: tuple[Change, ...]) -> list[Candidate]:
    return [frozenset(taken) for count in range(len(changes) + 1) for taken in combinations(changes, count)]


def explains(finding: SearchResult, bad: Callable[[Candidate], bool], fitting: Iterable[Candidate]) -> bool:
    """Whether the finding is true of every candidate that fits.

    One culprit is right if exactly the candidates that contain it are bad. A set whose parts could not be separated is
    right if all of it is bad, and a candidate with none of it good.
    """
    for candidate in fitting:
        named = any(culprit <= candidate for culprit in finding.culprits)
        untouched = not any(culprit & candidate for culprit in finding.culprits)
        clear = named or untouched if finding.outcome == "inseparable" else True
        if clear and bad(candidate) != named:
            return False
    return True
