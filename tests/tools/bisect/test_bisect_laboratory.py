"""How the laboratory of `ipexperf bisect` decides what is slow."""

import math
from pathlib import Path
from typing import Any

import pytest

from ipexperf.errors import LockError, UsageError
from ipexperf.judge import sequential
from ipexperf.judge.bisection import Answer
from ipexperf.judge.policy import PairPolicy
from ipexperf.ratio import Ratio
from ipexperf.tools.bisect.answers import AnswerLog, Measured
from ipexperf.tools.bisect.laboratory import SHARE, Laboratory, in_doubt


class Named:
    """Software that is only a name."""

    def __init__(self, key: str) -> None:
        self.key = key


class Told(Laboratory):
    """A laboratory in which every measurement ends as the test says."""

    def __init__(self, folder: Path, *ends: Measured, policy: PairPolicy | None = None) -> None:
        nothing: Any = None
        progress: Any = self
        log = AnswerLog(folder / "log.jsonl")
        super().__init__(nothing, nothing, folder, nothing, policy or PairPolicy(), progress, log)
        self.ends = list(ends)
        self.policies: list[PairPolicy] = []

    def say(self, text: str) -> None:
        del text

    def _measure(self, candidate: Any, policy: PairPolicy) -> Measured:
        del candidate
        self.policies.append(policy)
        return self.ends.pop(0)


BAD: Any = Named("bad")
CANDIDATE: Any = Named("night")
VAGUE = Measured(Answer.BAD, "seen", Ratio(1.134, 1.085, 1.19))
SHARP = Measured(Answer.BAD, "seen", Ratio(1.08, 1.07, 1.09))


def test_a_difference_that_is_known_well_is_not_measured_again(tmp_path: Path) -> None:
    clear = Measured(Answer.BAD, "seen", Ratio(3.0, 2.7, 3.4))
    laboratory = Told(tmp_path, clear)
    assert laboratory.bad_end(BAD) is clear
    assert len(laboratory.policies) == 1


@pytest.mark.parametrize("most", [24, 10])
def test_a_vague_difference_is_measured_again_with_a_fixed_number_of_pairs(tmp_path: Path, most: int) -> None:
    """What stopped early because it looked large says nothing of how large it is. The judge looks once, at the end."""
    laboratory = Told(tmp_path, VAGUE, SHARP, policy=PairPolicy(max_pairs=most))
    assert laboratory.bad_end(BAD) is SHARP
    [_, policy] = laboratory.policies
    assert next(pairs for pairs in range(1, 25) if sequential.due(pairs, policy)) == most
    assert sequential.decide([math.log(1.08)] * most, policy).outcome == "regressed"
    again = Told(tmp_path, policy=PairPolicy(max_pairs=most))
    assert again.bad_end(BAD) == SHARP, "both answers are kept for the next try"


def test_a_difference_that_does_not_come_again_is_unsure(tmp_path: Path) -> None:
    ends = Told(tmp_path, VAGUE, Measured(Answer.GOOD, "it is ok", Ratio(1.0, 0.98, 1.02))).bad_end(BAD)
    assert (ends.answer, ends.reason) == (Answer.UNSURE, "the second time: it is ok")


def test_candidates_are_judged_by_what_is_sure_of_the_difference(tmp_path: Path) -> None:
    """A candidate as slow as the bad end must not be called good because the bad end once looked slower."""
    laboratory = Told(tmp_path, VAGUE, SHARP, Measured(Answer.GOOD, "it is ok", Ratio(1.0, 0.98, 1.02)))
    laboratory.bad_end(BAD)
    laboratory.timed(CANDIDATE)
    policy = laboratory.policies[-1]
    assert policy.tolerance == pytest.approx(SHARE * 0.07)
    as_slow = [math.log(1.08 + wobble) for wobble in (-0.01, 0.01) * 12]
    assert sequential.decide(as_slow, policy, last=True).outcome == "regressed"
    harmless = [math.log(1 + wobble) for wobble in (-0.01, 0.01) * 12]
    assert sequential.decide(harmless, policy, last=True).outcome == "ok"


@pytest.mark.parametrize(("now", "expected"), [(1.2, Answer.BAD), (1.9, Answer.GOOD)])
def test_a_candidate_between_both_ends_is_judged_by_the_bad_end_of_now(
    now: float, expected: Answer, tmp_path: Path
) -> None:
    """A night of torch was called good at +26 %: the bad end, at +91 % two minutes before, was at +27 % by then."""
    between = Measured(Answer.GOOD, "seen", Ratio(1.26, 1.18, 1.35))
    laboratory = Told(
        tmp_path,
        Measured(Answer.BAD, "seen", Ratio(2.0, 1.91, 2.1)),
        between,
        Measured(Answer.BAD, "seen", Ratio(now + 0.07, now, now + 0.14)),
        Measured(Answer.BAD, "seen", Ratio(1.26, 1.18, 1.35)),
    )
    laboratory.bad_end(BAD)
    assert laboratory.timed(CANDIDATE).answer is expected
    _, first, again, *second = laboratory.policies
    assert (first.tolerance, again.tolerance) == (pytest.approx(SHARE * 0.91), PairPolicy().tolerance)
    assert [policy.tolerance for policy in second] == ([pytest.approx(SHARE * 0.2)] if second else [])


@pytest.mark.parametrize(
    ("answer", "lo", "expected"),
    [
        (Answer.GOOD, 0.98, Answer.GOOD),
        (Answer.GOOD, 1.01, Answer.GOOD),
        (Answer.GOOD, 1.06, Answer.UNSURE),
        (Answer.BAD, 1.06, Answer.BAD),
    ],
)
def test_what_is_surely_slower_is_not_good(answer: Answer, lo: float, expected: Answer) -> None:
    """Neither is it bad: half of the difference may be another culprit's, and nothing is guessed."""
    measured = in_doubt(Measured(answer, "seen", Ratio(lo + 0.02, lo, lo + 0.04)), math.log(1.02))
    assert measured.answer is expected


def test_the_device_is_held_before_anything_is_built(tmp_path: Path) -> None:
    """A build would disturb what somebody else measures."""
    steps: list[str] = []

    class Unmade:
        """Software that cannot be made, and a conductor with nothing to conduct."""

        key = "unmade"

        def ready(self, *_: object) -> None:
            steps.append("build")
            raise LockError("its build ended with 1")

        def reserve(self, cases: list[str]) -> None:
            steps.extend(cases)

    stub: Any = Unmade()
    case: Any = "case"
    progress: Any = Told(tmp_path)
    log = AnswerLog(tmp_path / "other.jsonl")
    real = Laboratory(case, stub, tmp_path, stub, PairPolicy(), progress, log)
    with pytest.raises(UsageError, match="the good end cannot be measured: its build ended with 1"):
        real.timed(stub)
    assert steps == ["case", "build"]
