"""The search over an ordered list finds the first slow entry, past those that cannot be measured."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searches import answered

from ipexperf.judge.bisection import Answer, Change, Search, SearchResult, most

ENTRIES = tuple(Change("package", "numpy", str(entry - 1), str(entry)) for entry in range(1, 2001))


def bad_from(first: int) -> Callable[[int], Answer]:
    return lambda index: Answer.BAD if index >= first else Answer.GOOD


def suspects(finding: SearchResult) -> list[int]:
    """The entries of which one is the first slow one."""
    return sorted(int(change.bad or 0) for change in finding.suspects | finding.culprits)


def neighbours(finding: SearchResult) -> tuple[int, int] | None:
    """The last good entry, and the first bad one."""
    if finding.last_good is None or finding.first_bad is None:
        return None
    return len(finding.last_good), len(finding.first_bad)


def asked(count: int, answer: Callable[[int], Answer]) -> tuple[SearchResult, int]:
    """What is found among so many entries, the good end included, and the number of questions, after some checks."""
    finding, questions = answered(Search(ENTRIES[: count - 1]).run(), lambda candidate: answer(len(candidate)))
    assert len(set(questions)) == len(questions)
    assert all(question == frozenset(ENTRIES[: len(question)]) for question in questions)
    assert all(0 < len(question) < count for question in questions)
    return finding, len(questions)


def found(count: int, answer: Callable[[int], Answer]) -> SearchResult:
    return asked(count, answer)[0]


@given(st.integers(2, 2000), st.data())
def test_the_first_slow_entry_is_found_in_as_many_questions_as_halvings(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count - 1))
    finding, questions = asked(count, bad_from(first))
    assert (finding.outcome, neighbours(finding)) == ("culprit", (first - 1, first))
    assert suspects(finding) == [first]
    assert finding.reason == f"numpy {first} is the first that is slower: the one before it is not"
    assert questions <= most(count - 1)


def test_every_pattern_of_answers_of_a_short_list_is_explained() -> None:
    """Five entries between the ends, each of them measurable, skipped or unsure, for every first slow one."""
    for states in product([None, Answer.SKIP, Answer.UNSURE], repeat=5):
        without = {index: state for index, state in enumerate(states, 1) if state}
        for first in range(1, 7):
            finding = found(7, lambda index, first=first, without=without: without.get(index, bad_from(first)(index)))
            left = suspects(finding)
            assert first in left
            assert neighbours(finding) == (left[0] - 1, left[-1])
            between = [without.get(index) for index in left[:-1]]
            if finding.outcome == "culprit":
                assert left == [first]
            elif finding.outcome == "inseparable":
                assert between
                assert set(between) == {Answer.SKIP}
            else:
                assert finding.outcome == "cannot tell"
                assert Answer.UNSURE in between


def test_a_range_of_entries_that_cannot_be_measured_is_named() -> None:
    finding = found(100, lambda index: Answer.SKIP if 40 <= index < 45 else bad_from(42)(index))
    assert (finding.outcome, suspects(finding), neighbours(finding)) == ("inseparable", [*range(40, 46)], (39, 45))


@given(st.integers(2, 200), st.lists(st.sampled_from(list(Answer)), max_size=300))
def test_any_answers_end_the_search(count: int, answers: list[Answer]) -> None:
    course = iter(answers)
    found(count, lambda _: next(course, Answer.SKIP))


@given(st.integers(2, 60), st.data())
def test_one_wrong_answer_moves_the_finding_by_one_at_most(count: int, data: st.DataObject) -> None:
    """A wrong answer about the bad end is excepted: then the search says that both ends are alike."""
    first = data.draw(st.integers(1, count - 1))
    wrong = data.draw(st.integers(2, 12))
    asked = 0

    def answer(index: int) -> Answer:
        nonlocal asked
        asked += 1
        right = bad_from(first)(index)
        if asked != wrong:
            return right
        return Answer.GOOD if right is Answer.BAD else Answer.BAD

    finding = found(count, answer)
    assert finding.outcome == "cannot tell" or abs(suspects(finding)[0] - first) <= 1


@pytest.mark.parametrize(
    ("answer", "outcome"), [(Answer.GOOD, "alike"), (Answer.SKIP, "cannot tell"), (Answer.UNSURE, "cannot tell")]
)
def test_nothing_more_is_asked_if_the_bad_end_is_not_bad(answer: Answer, outcome: str) -> None:
    finding, questions = asked(10, lambda _: answer)
    assert (finding.outcome, questions, finding.first_bad) == (outcome, 1, None)
    assert found(1, bad_from(0)).outcome == "alike"
