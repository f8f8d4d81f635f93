"""The finding on each row: the best candidate, the replacement, or why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from migrate_records import findings_of, measured, plan, rounds, row, seconds

from ipexperf.case import Case
from ipexperf.report.speeds import Speeds
from ipexperf.result import Check, Launch, Measurement
from ipexperf.tools.experiments import judged
from ipexperf.tools.migrate import advice, findings, page
from ipexperf.tools.migrate.findings import Finding, Findings, Replacement


def at(speed: float) -> object:
    """The new stack is this many times as fast in all its modes."""
    return lambda case: 0.01 / speed if case.stack == "new" else 0.01


@pytest.mark.parametrize(
    ("speed", "noise", "replacement"),
    [
        (1.5, 0.002, Replacement.FASTER),
        (1.0, 0.002, Replacement.EQUAL),
        (0.8, 0.002, Replacement.SLOWER),
        (1.0, 0.2, Replacement.UNCLEAR),
    ],
)
def test_the_interval_decides_the_replacement(speed: float, noise: float, replacement: Replacement) -> None:
    """Faster or slower if it excludes 1, equal if it stays within 5 %, else unclear."""
    one = row(findings_of(plan(), at(speed), noise=noise), "teach")  # type: ignore[arg-type]
    assert one.replacement is replacement
    assert one.best is not None
    assert one.best.speed is not None
    assert one.best.speed.ratio.lo < speed < one.best.speed.ratio.hi  # type: ignore[operator]


def test_of_candidates_that_are_equally_fast_the_plainest_is_the_best() -> None:
    """Nobody should compile without a gain."""
    one = row(findings_of(plan(), at(1.2)), "spin")  # type: ignore[arg-type]
    assert one.best is not None
    assert (one.best.result.case.mode, one.best.result.case.knobs) == ("spin", ())


def failing(case: Case, outcome: str = "error") -> Measurement:
    return replace(measured(case, 0.01), launches=(Launch(0, outcome, "no such module: nets"),))  # type: ignore[arg-type]


def test_a_candidate_that_failed_is_not_the_best_and_says_why() -> None:
    made = plan()
    case = next(case for case in made.cases if case.id == "tiny-fake-fp32-whirl-new")
    one = row(findings_of(made, changed={case: failing(case)}), "spin")
    assert one.best is not None
    assert dict(one.best.result.case.knobs) == {"searched": "on"}
    assert [other.result.problem for other in one.candidates] == ["", "error: no such module: nets", ""]


def test_a_candidate_whose_proof_failed_does_not_count() -> None:
    """However fast it is."""
    made = plan()
    case = next(case for case in made.cases if case.id == "tiny-fake-fp32-whirl-new")
    flaw = Check("dtype", ok=False, found="bf16", expected="fp32")
    wrong = measured(case, 0.001)
    wrong = replace(wrong, launches=tuple(replace(one, proof=(flaw,)) for one in wrong.launches))
    one = row(findings_of(made, changed={case: wrong}), "spin")
    other = next(other for other in one.candidates if other.result.case == case)
    assert other.speed is None
    assert other.result.problem == "proof failed: dtype: found bf16, expected fp32"
    assert other.result.proof == (1, 2)


def test_start_is_the_import_and_the_preparation_of_fresh_processes() -> None:
    """Forked launches have neither."""
    made = plan(mode=("spin",))
    one = row(findings_of(made), "spin")
    assert one.old.start == 1.5
    case = made.rows[0].case
    forked = measured(case, 0.01)
    metrics = forked.launches[0].metrics
    bare = {name: value for name, value in metrics.items() if not name.endswith("_time") or name == "step_time"}
    forked = replace(forked, launches=tuple(replace(one, metrics=bare) for one in forked.launches))
    assert row(findings_of(made, changed={case: forked}), "spin").old.start is None


def test_a_loss_of_accuracy_beyond_the_bound_is_found() -> None:
    """Less than that is rounding."""
    made = plan(mode=("spin",))
    [case] = made.rows[0].candidates
    for accuracy, lost in ((0.97, None), (0.90, pytest.approx(0.08))):
        changed = {case: measured(case, seconds(case), accuracy=accuracy)}
        assert row(findings_of(made, changed=changed), "spin").less_accurate == lost


def test_the_difference_in_kernels_comes_from_the_fingerprints() -> None:
    """Unknown if none was captured."""
    assert row(findings_of(plan()), "spin").ran == "the other arm: nothing was captured"


def in_two_parts(searched: float, noise: float = 0.002) -> Finding:
    """The row `spin`, whose first candidate took turns with it, at half its speed, and the others in another round."""
    made = plan(mode=("spin", "whirl"))
    old, base, *others = made.contests[0].cases
    assert base.id == "tiny-fake-fp32-spin-new"
    times = {case: searched if case.knobs else 0.03 for case in others}
    records = rounds({old: 0.01, base: 0.02}, made.contests[0].name, noise)
    apart = [
        replace(
            record,
            uid=f"{record.uid}b",
            seats=tuple(replace(seat, role="reference" if seat.case == base else "case") for seat in record.seats),
        )
        for record in rounds({base: 0.02, **times}, made.contests[0].name, noise)
    ]
    cases = {case: measured(case, seconds(case)) for case in made.cases}
    speeds = Speeds.of(cases.values(), {case.uid: judged(one) for case, one in cases.items()}, [*records, *apart])
    one = row(findings.find(made, speeds), "spin")
    assert [other.direct for other in one.candidates] == [True, False, False]
    return one


@pytest.mark.parametrize(
    ("searched", "noise", "best"),
    [
        (0.005, 0.002, "tiny-fake-fp32-whirl-new+searched:on"),
        (0.0185, 0.2, "tiny-fake-fp32-spin-new"),
        (0.02, 0.002, "tiny-fake-fp32-spin-new"),
    ],
)
def test_a_candidate_of_another_round_is_the_best_if_it_is_surely_faster(
    searched: float, noise: float, best: str
) -> None:
    """A ratio through a third case has the spread of two, so a smaller lead may be chance."""
    one = in_two_parts(searched, noise)
    assert one.best is not None
    assert one.best.result.case.id == best
    words = "; the two took turns in different rounds, each with a case of both"
    assert (words in advice.advice(Findings((one,), (), {}))[0]) is not one.best.direct
    states = [line[-1] for line in page.make("tiny", Findings((one,), (), {}), []).candidates]
    through = "in another round: compared through a case of both"
    assert sorted(states) == sorted(
        ["the best", *[f"{through}, and not surely faster than the best"] * 2]
        if one.best.direct
        else ["", f"the best, {through}", f"{through}, and not surely faster than the best"]
    )
