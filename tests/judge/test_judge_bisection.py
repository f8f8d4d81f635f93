"""The search over changes: it names what is proven, says when it cannot, and needs few questions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import answered, anything, candidates, explains, packages, tied, truth

from ipexperf.judge.bisection import Answer, Candidate, Change, Search, SearchResult, listed

THIRTY = packages(30)
NAMING = {"culprit", "together", "several", "inseparable"}


def found(
    changes: tuple[Change, ...],
    answer: Callable[[Candidate], Answer],
    fits: Callable[[Candidate], bool] = anything,
    ties: dict[Change, list[Change]] | None = None,
) -> SearchResult:
    """The finding, after checks that every search must pass."""
    finding, questions = answered(Search(changes, fits, ties).run(), answer)
    assert len(set(questions)) == len(questions) == finding.questions
    assert all(fits(question) for question in questions if question != frozenset(changes))
    assert frozenset() not in questions
    assert (finding.outcome in NAMING) == bool(finding.culprits)
    return finding


@dataclass(frozen=True)
class World:
    """What is true of a made-up comparison. `failing` are the candidates that fit and do not work."""

    changes: tuple[Change, ...]
    culprits: tuple[Candidate, ...]
    needs: tuple[tuple[Change, Change], ...]
    failing: frozenset[Candidate]
    apart: tuple[Candidate, ...]

    def fits(self, candidate: Candidate) -> bool:
        return all(other in candidate for one, other in self.needs if one in candidate)

    def bad(self, candidate: Candidate) -> bool:
        return any(culprit <= candidate for culprit in self.culprits)

    def works(self, candidate: Candidate) -> bool:
        ends = (frozenset(), frozenset(self.changes))
        return candidate in ends or (candidate not in self.failing and tied(*self.apart)(candidate))

    def answer(self, candidate: Candidate) -> Answer:
        if not self.works(candidate):
            return Answer.SKIP
        return Answer.BAD if self.bad(candidate) else Answer.GOOD

    def fitting(self) -> list[Candidate]:
        return [candidate for candidate in candidates(self.changes) if self.fits(candidate)]

    def ties(self) -> dict[Change, list[Change]]:
        return {change: [other for one, other in self.needs if one == change] for change in self.changes}


@st.composite
def worlds(draw: st.DrawFn, *, skips: bool) -> World:
    changes = packages(draw(st.integers(1, 7)))
    some = st.sampled_from(changes)
    culprit = st.frozensets(some, min_size=1, max_size=2)
    return World(
        changes,
        tuple(draw(st.lists(culprit, min_size=1, max_size=3))),
        tuple(draw(st.lists(st.tuples(some, some), max_size=6))),
        draw(st.frozensets(st.frozensets(some), max_size=20)) if skips else frozenset(),
        tuple(draw(st.lists(st.frozensets(some, min_size=1, max_size=3), max_size=2))) if skips else (),
    )


@settings(max_examples=200)
@given(world=worlds(skips=True), knows_ties=st.booleans())
def test_no_wrong_change_is_ever_named(*, world: World, knows_ties: bool) -> None:
    finding = found(world.changes, world.answer, world.fits, world.ties() if knows_ties else None)
    if finding.outcome == "cannot tell":
        assert finding.suspects & frozenset().union(*world.culprits)
    else:
        assert explains(finding, world.bad, world.fitting())


@settings(max_examples=200)
@given(worlds(skips=False))
def test_the_finding_explains_every_candidate_that_fits_if_all_of_them_work(world: World) -> None:
    finding = found(world.changes, world.answer, world.fits, world.ties())
    assert finding.outcome in NAMING
    if finding.outcome == "inseparable":
        tied_sets = [one for one in finding.culprits if len(one) > 1]
        assert any(is_tied(world, one, other) for culprit in tied_sets for one, other in combinations(culprit, 2))


def is_tied(world: World, one: Change, other: Change) -> bool:
    return all((one in candidate) == (other in candidate) for candidate in world.fitting())


@settings(max_examples=200)
@given(worlds(skips=True), st.lists(st.integers(1, 20), max_size=4))
def test_unsure_answers_never_lead_to_a_wrong_name(world: World, unsure: list[int]) -> None:
    count = 0

    def answer(candidate: Candidate) -> Answer:
        nonlocal count
        count += 1
        return Answer.UNSURE if count in unsure else world.answer(candidate)

    finding = found(world.changes, answer, world.fits, world.ties())
    if finding.outcome == "cannot tell":
        assert finding.suspects & frozenset().union(*world.culprits)
    else:
        assert explains(finding, world.bad, world.fitting())


@settings(max_examples=200)
@given(worlds(skips=True), st.lists(st.sampled_from(list(Answer)), max_size=80))
def test_any_answers_end_the_search_within_its_contract(world: World, answers: list[Answer]) -> None:
    course = iter(answers)
    found(world.changes, lambda _: next(course, Answer.GOOD), world.fits, world.ties())


@pytest.mark.parametrize(
    ("size", "count", "outcome", "most"),
    [(1, 1, "culprit", 8), (2, 1, "together", 16), (1, 2, "several", 15)],
)
def test_culprits_among_thirty_changes_are_found_in_few_questions(
    size: int, count: int, outcome: str, most: int
) -> None:
    for changed in combinations(THIRTY, size * count):
        culprits = {frozenset(changed[place : place + size]) for place in range(0, len(changed), size)}
        finding = found(THIRTY, truth(*culprits))
        assert (finding.outcome, set(finding.culprits)) == (outcome, culprits)
        assert finding.questions <= most


def test_three_changes_are_found_that_are_slow_only_together() -> None:
    culprit = frozenset({THIRTY[2], THIRTY[17], THIRTY[29]})
    finding = found(THIRTY, truth(culprit))
    assert (finding.outcome, finding.culprits) == ("together", (culprit,))
    assert finding.reason == "p02, p17 and p29 are slower only together"


def test_more_than_three_culprits_are_not_named_whether_independent_or_together() -> None:
    alone, together = found(THIRTY, truth(*({change} for change in THIRTY[4:8]))), found(THIRTY, truth(THIRTY[4:8]))
    assert (alone.outcome, alone.suspects) == ("cannot tell", frozenset(THIRTY[4:8]))
    assert together.outcome == "cannot tell"
    assert together.suspects >= frozenset(THIRTY[4:8])


@pytest.mark.parametrize(
    ("changes", "culprits", "outcome", "questions"),
    [((), (), "alike", 0), (THIRTY, (), "alike", 1), (THIRTY[:1], (frozenset(THIRTY[:1]),), "culprit", 1)],
)
def test_alike_ends_and_single_changes_need_no_more_than_the_bad_end(
    changes: tuple[Change, ...], culprits: tuple[Candidate, ...], outcome: str, questions: int
) -> None:
    finding = found(changes, truth(*culprits))
    assert (finding.outcome, finding.culprits, finding.questions) == (outcome, culprits, questions)


@pytest.mark.parametrize("answer", [Answer.SKIP, Answer.UNSURE])
def test_a_bad_end_without_an_answer_leaves_every_change_suspect(answer: Answer) -> None:
    finding = found(THIRTY, lambda _: answer)
    assert (finding.outcome, finding.suspects, finding.questions) == ("cannot tell", frozenset(THIRTY), 1)


@pytest.mark.parametrize("knows_ties", [True, False])
def test_packages_pinned_to_one_another_move_together(*, knows_ties: bool) -> None:
    pinned = (THIRTY[3], THIRTY[17], THIRTY[28])
    ties = {one: list(pinned) for one in pinned} if knows_ties else None
    for culprit in THIRTY:
        finding = found(THIRTY, truth({culprit}), tied(pinned), ties)
        if culprit in pinned:
            assert (finding.outcome, finding.culprits) == ("inseparable", (frozenset(pinned),))
        else:
            assert (finding.outcome, finding.culprits) == ("culprit", (frozenset({culprit}),))
        assert finding.questions <= 9


def test_a_package_that_needs_a_newer_one_is_named_alone() -> None:
    """The newer one is good without it. That the first needs it is no reason to suspect it."""
    plain, extension, other = packages(3)

    def fits(candidate: Candidate) -> bool:
        return plain in candidate or extension not in candidate

    finding = found((plain, extension, other), truth({extension}), fits, {extension: [plain]})
    assert (finding.outcome, finding.culprits) == ("culprit", (frozenset({extension}),))
    assert finding.first_bad == {plain, extension}
    assert finding.last_good == {plain}
    assert finding.reason.startswith(f"{extension.name} is enough, with {plain.name} that it needs, and without it")
    assert finding.proof == ((frozenset({plain, extension}), Answer.BAD), (frozenset({plain, other}), Answer.GOOD))


def test_groups_that_start_only_together_are_named_as_a_set() -> None:
    """No tie between them was given: candidates that separate them are skipped."""
    group = (THIRTY[3], THIRTY[17], THIRTY[28])
    works = tied(group)
    for culprit in (THIRTY[0], *group, THIRTY[29]):
        answer = truth({culprit})
        finding = found(THIRTY, lambda one, answer=answer: answer(one) if works(one) else Answer.SKIP)
        expected = frozenset(group) if culprit in group else frozenset({culprit})
        assert finding.culprits == (expected,)
        assert finding.outcome == ("inseparable" if culprit in group else "culprit")
        assert finding.questions <= 29


def test_a_search_whose_candidates_never_start_names_all_of_them() -> None:
    everything = frozenset(THIRTY)
    finding = found(THIRTY, lambda one: Answer.BAD if one == everything else Answer.SKIP)
    assert (finding.outcome, finding.culprits) == ("inseparable", (everything,))
    assert "could not be measured apart" in finding.reason


def test_a_third_unsure_answer_ends_the_search() -> None:
    finding = found(THIRTY, lambda one: Answer.BAD if len(one) == 30 else Answer.UNSURE)
    assert (finding.outcome, finding.questions) == ("cannot tell", 4)
    assert finding.suspects == frozenset(THIRTY)


def test_answers_that_contradict_one_another_name_nothing() -> None:
    """A change of the bad end repairs what another broke: alone it is slow, with the other it is not."""
    repair, harm, other = packages(3)

    def answer(candidate: Candidate) -> Answer:
        if harm in candidate and (repair not in candidate or other in candidate):
            return Answer.BAD
        return Answer.GOOD

    finding = found((repair, harm, other), answer)
    assert (finding.outcome, finding.suspects) == ("cannot tell", {harm, repair, other})
    assert "contradict" in finding.reason


def wrong_at(place: int, answer: Callable[[Candidate], Answer]) -> Callable[[Candidate], Answer]:
    count = 0

    def disturbed(candidate: Candidate) -> Answer:
        nonlocal count
        count += 1
        right = answer(candidate)
        if count != place:
            return right
        return Answer.GOOD if right is Answer.BAD else Answer.BAD

    return disturbed


def test_one_wrong_answer_about_a_single_culprit_never_names_another() -> None:
    """The search may end without a name. If the bad end itself is wrongly good, it says that both ends are alike."""
    changes = packages(9)
    for culprit in changes:
        for place in range(2, 30):
            finding = found(changes, wrong_at(place, truth({culprit})))
            assert finding.outcome == "cannot tell" or finding.culprits == (frozenset({culprit}),)


@given(count=st.integers(1, 40), data=st.data())
def test_the_questions_left_are_never_more_than_estimated_for_one_culprit(count: int, data: st.DataObject) -> None:
    changes = packages(count)
    search, left = Search(changes, anything), []
    right = truth({data.draw(st.sampled_from(changes))})

    def answer(candidate: Candidate) -> Answer:
        left.append(search.left())
        return right(candidate)

    finding, _ = answered(search.run(), answer)
    assert left[0] <= math.ceil(math.log2(count)) + 3
    assert all(most >= finding.questions - asked for asked, most in enumerate(left))


def test_names_are_listed_as_in_a_sentence() -> None:
    assert [listed(THIRTY[:count]) for count in range(4)] == ["", "p00", "p00 and p01", "p00, p01 and p02"]
