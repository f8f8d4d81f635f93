"""The search over packages: it names what turns the verdict, with two proofs, and needs few questions."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import answered, candidates, packages

from ipexperf.judge.bisection import Answer, Candidate, Change, Search, SearchResult, listed, most

THIRTY = packages(30)
NAMING = {"culprit", "not alone", "inseparable"}


def truth(*culprits: Iterable[Change]) -> Callable[[Candidate], Answer]:
    """Return a function that answers BAD for candidates that contain one of these sets."""
    sets = [frozenset(culprit) for culprit in culprits]
    return lambda candidate: Answer.BAD if any(one <= candidate for one in sets) else Answer.GOOD


def closures(changes: Iterable[Change], ties: Iterable[tuple[Change, Change]] = ()) -> dict[Change, Candidate]:
    """What must be taken with each change, if the first of each pair needs the second."""
    ties = list(ties)
    needs = {change: frozenset({change}) for change in changes}
    for _ in needs:
        needs = {
            change: all_of_them.union(*(needs[other] for one, other in ties if one in all_of_them))
            for change, all_of_them in needs.items()
        }
    return needs


def asked(
    changes: tuple[Change, ...], answer: Callable[[Candidate], Answer], ties: Iterable[tuple[Change, Change]] = ()
) -> tuple[SearchResult, int]:
    """The finding and the number of questions, after checks that every search must pass."""
    needs = closures(changes, ties)
    finding, questions = answered(Search(changes, needs).run(), answer)
    assert len(set(questions)) == len(questions)
    assert all(needs[change] <= question for question in questions for change in question)
    assert frozenset() not in questions
    assert (finding.outcome in NAMING) == bool(finding.culprits)
    return finding, len(questions)


def found(
    changes: tuple[Change, ...], answer: Callable[[Candidate], Answer], ties: Iterable[tuple[Change, Change]] = ()
) -> SearchResult:
    return asked(changes, answer, ties)[0]


@dataclass(frozen=True)
class World:
    """What is true of a made-up comparison. `failing` are candidates that do not work."""

    changes: tuple[Change, ...]
    culprits: tuple[Candidate, ...]
    ties: tuple[tuple[Change, Change], ...]
    failing: frozenset[Candidate]

    def answer(self, candidate: Candidate) -> Answer:
        works = candidate not in self.failing or candidate == frozenset(self.changes)
        return truth(*self.culprits)(candidate) if works else Answer.SKIP

    def explains(self, finding: SearchResult) -> bool:
        """Whether what is named takes part in a cause, and is enough and needed, or not, as the finding says."""
        culprit = finding.culprits
        needs, right = closures(self.changes, self.ties), truth(*self.culprits)
        enough = right(frozenset().union(*(needs[change] for change in culprit)))
        rest = right(frozenset(change for change in self.changes if not needs[change] & culprit))
        return bool(culprit & self.guilty()) and (finding.outcome == "not alone") == (enough is rest)

    def guilty(self) -> Candidate:
        needs = closures(self.changes, self.ties)
        return frozenset().union(*(needs[change] for cause in self.culprits for change in cause))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    changes = packages(draw(st.integers(1, 7)))
    some = st.sampled_from(changes)
    return World(
        changes,
        tuple(draw(st.lists(st.frozensets(some, min_size=1, max_size=2), min_size=1, max_size=3))),
        tuple(draw(st.lists(st.tuples(some, some), max_size=6))),
        draw(st.frozensets(st.sampled_from(candidates(changes)), max_size=20)),
    )


@settings(max_examples=300)
@given(worlds(), st.lists(st.integers(1, 12), max_size=3))
def test_no_wrong_change_is_ever_named(world: World, unsure: list[int]) -> None:
    """Whatever fits together, does not start or is lost in the noise."""
    count = 0

    def answer(candidate: Candidate) -> Answer:
        nonlocal count
        count += 1
        return Answer.UNSURE if count in unsure else world.answer(candidate)

    finding = found(world.changes, answer, world.ties)
    assert finding.suspects & world.guilty() if finding.outcome == "cannot tell" else world.explains(finding)


@settings(max_examples=200)
@given(worlds(), st.lists(st.sampled_from(list(Answer)), max_size=80))
def test_any_answers_end_the_search_within_its_contract(world: World, answers: list[Answer]) -> None:
    course = iter(answers)
    found(world.changes, lambda _: next(course, Answer.GOOD), world.ties)


def test_one_culprit_among_thirty_changes_is_found_in_eight_questions() -> None:
    for changed in THIRTY:
        finding, questions = asked(THIRTY, truth({changed}))
        assert (finding.outcome, finding.culprits) == ("culprit", {changed})
        assert finding.reason == f"{changed.name} is enough, and without it the bad end is not slower"
        assert questions <= 8
        assert finding.first_bad is not None
        assert finding.first_bad - (finding.last_good or frozenset()) == {changed}


def test_a_culprit_beside_another_and_one_that_is_slow_only_with_another_are_said_to_be_not_alone() -> None:
    finding = found(THIRTY, truth({THIRTY[4]}, {THIRTY[20]}))
    assert (finding.outcome, finding.culprits) == ("not alone", {THIRTY[4]})
    assert finding.reason == "p04 is enough, but without it the bad end is slower too"
    finding = found(THIRTY, truth({THIRTY[4], THIRTY[20]}))
    assert (finding.outcome, finding.culprits) == ("not alone", {THIRTY[20]})
    assert finding.reason == "without p20 the bad end is not slower, but it is not enough: others take part"


def test_a_change_that_is_neither_enough_nor_needed_is_not_named() -> None:
    """It is slow together with another, and a third is enough."""
    finding = found(THIRTY, truth({THIRTY[4], THIRTY[12]}, {THIRTY[20]}))
    assert (finding.outcome, finding.suspects) == ("cannot tell", {THIRTY[12]})
    assert finding.reason.endswith("not this one alone")


@pytest.mark.parametrize(
    ("changes", "culprits", "outcome", "questions"),
    [((), (), "alike", 0), (THIRTY, (), "alike", 1), (THIRTY[:1], THIRTY[:1], "culprit", 1)],
)
def test_alike_ends_and_single_changes_need_no_more_than_the_bad_end(
    changes: tuple[Change, ...], culprits: tuple[Change, ...], outcome: str, questions: int
) -> None:
    finding, number = asked(changes, truth(*([culprits] if culprits else [])))
    assert (finding.outcome, finding.culprits, number) == (outcome, frozenset(culprits), questions)


def test_packages_pinned_to_one_another_move_together() -> None:
    pinned = (THIRTY[3], THIRTY[17], THIRTY[28])
    ties = list(zip(pinned, (*pinned[1:], pinned[0]), strict=True))
    for culprit in THIRTY:
        finding = found(THIRTY, truth({culprit}), ties)
        if culprit in pinned:
            assert (finding.outcome, finding.culprits) == ("inseparable", frozenset(pinned))
        else:
            assert (finding.outcome, finding.culprits) == ("culprit", {culprit})


def test_a_package_that_another_needs_is_reverted_with_it() -> None:
    plain, extension, other = packages(3)
    finding = found((extension, other, plain), truth({plain}), [(extension, plain)])
    assert (finding.outcome, finding.culprits) == ("culprit", {plain})
    assert finding.reason == f"{plain.name} is enough, and without it the bad end is not slower"
    assert finding.shown == {plain}
    needing = found((plain, extension, other), truth({extension}), [(extension, plain)])
    assert needing.culprits == {extension}
    assert needing.reason.startswith(f"{extension.name} is enough, with {plain.name} that it needs, and without it")


@pytest.mark.parametrize(
    ("size", "answer", "reason"),
    [
        (1, Answer.SKIP, "p04 could not be measured alone"),
        (29, Answer.SKIP, "the bad end could not be measured without p04"),
        (1, Answer.UNSURE, "whether p04 is enough is lost in the noise"),
        (29, Answer.UNSURE, "whether the bad end is good without p04 is lost in the noise"),
    ],
)
def test_a_culprit_without_both_proofs_is_only_a_suspect(size: int, answer: Answer, reason: str) -> None:
    right = truth({THIRTY[4]})
    finding = found(THIRTY, lambda candidate: answer if len(candidate) == size else right(candidate))
    assert (finding.outcome, finding.suspects, finding.reason) == ("cannot tell", {THIRTY[4]}, reason)


def test_a_search_whose_candidates_never_start_names_all_of_them() -> None:
    everything = frozenset(THIRTY)
    finding = found(THIRTY, lambda one: Answer.BAD if one == everything else Answer.SKIP)
    assert (finding.outcome, finding.culprits) == ("inseparable", everything)
    assert "could not be measured apart" in finding.reason


def test_a_third_unsure_answer_ends_the_search() -> None:
    finding, questions = asked(THIRTY, lambda one: Answer.BAD if len(one) == 30 else Answer.UNSURE)
    assert (finding.outcome, questions) == ("cannot tell", 4)
    assert finding.suspects == frozenset(THIRTY)


def wrong_at(place: int, right: Callable[[Candidate], Answer]) -> Callable[[Candidate], Answer]:
    count = 0

    def disturbed(candidate: Candidate) -> Answer:
        nonlocal count
        count += 1
        said = right(candidate)
        if count != place:
            return said
        return Answer.GOOD if said is Answer.BAD else Answer.BAD

    return disturbed


def test_one_wrong_answer_about_a_single_culprit_never_names_another_as_enough() -> None:
    """If the bad end itself is wrongly good, the search says that both ends are alike."""
    changes = packages(9)
    for culprit in changes:
        for place in range(2, 12):
            finding = found(changes, wrong_at(place, truth({culprit})))
            assert finding.outcome in ("cannot tell", "not alone") or finding.culprits == {culprit}


@given(count=st.integers(1, 40), data=st.data())
def test_one_culprit_needs_no_more_questions_than_is_said_beforehand(count: int, data: st.DataObject) -> None:
    changes = packages(count)
    _, questions = asked(changes, truth({data.draw(st.sampled_from(changes))}))
    assert questions <= most(count) == math.ceil(math.log2(count)) + 3


def test_names_are_listed_as_in_a_sentence() -> None:
    assert [listed(THIRTY[:count]) for count in range(4)] == ["", "p00", "p00 and p01", "p00, p01 and p02"]
