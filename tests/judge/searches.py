"""Searches whose questions are answered from a known truth, for the tests of both kinds of bisection."""

from collections.abc import Callable, Generator
from itertools import combinations
from typing import TypeVar

from ipexperf.judge.bisection import Answer, Candidate, Change

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


def candidates(changes: tuple[Change, ...]) -> list[Candidate]:
    return [frozenset(taken) for count in range(len(changes) + 1) for taken in combinations(changes, count)]
