"""Turns, figures and the conductor: what is made of workers."""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench import registry
from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import conductor, gate, launch, turns
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.launch import Conditions
from ipexperf.conduct.worker import Worker
from ipexperf.plan.options import Options
from ipexperf.result import Check, Launch, Sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def case(model: str = "tiny", dtype: str = "fp32") -> Case:
    return Case(model, "fake", dtype, "spin", "plain", 1, 1, data="none")


def test_two_workers_take_turns_in_alternating_order(
    fake: str, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]
) -> None:
    """Both are alive together and are stepped A B, B A, A B, with blocks of one length."""
    asked: list[tuple[int, str, dict[str, Any]]] = []
    ask = Worker.ask

    def watched(self: Worker, do: str, timeout: float | None = None, **request: Any) -> dict[str, Any]:
        asked.append((self.pid, do, request))
        return ask(self, do, timeout, **request)

    monkeypatch.setattr(Worker, "ask", watched)
    conditions = Conditions(Settings(load=(fake,)), timeout=30)
    a, b = (turns.Arm(case(dtype=dtype), conditions) for dtype in ("fp32", "bf16"))
    said: list[str] = []
    taken = turns.take(a, b, 10, 2, random.Random(1), said.append)  # noqa: S311 - an order, no secret

    names = {pid: request["case"]["dtype"] for pid, do, request in asked if do == "prepare"}
    samples = [(names[pid], request) for pid, do, request in asked if do == "sample"]
    assert [name for name, _ in samples] == ["fp32", "bf16", "bf16", "fp32"] * 5
    assert len({request["block"] for _, request in samples}) == 1
    assert {request["count"] for _, request in samples} == {2}
    assert [len(turn) for turn in taken.a.turns] == [len(turn) for turn in taken.b.turns] == [2] * 10
    assert all(sample.wall > 0 for turn in (*taken.a.turns, *taken.b.turns) for sample in turn)
    assert said == ["turn 10 of 10"]
    assert len(names) == 2
    assert all(gone(pid) for pid in names)


def test_an_arm_that_crashes_takes_the_other_with_it(fake: str, gone: Callable[[int], bool]) -> None:
    """Where one arm ends, the pair ends with its outcome, and no worker is left."""
    from ipexperf.errors import WorkerError

    conditions = Conditions(Settings(load=(fake,)), timeout=30)
    a, b = turns.Arm(case(), conditions), turns.Arm(case("segfault"), conditions)
    with pytest.raises(WorkerError, match="killed by SIGSEGV") as error:
        turns.take(a, b, 2, 1, random.Random(1), lambda _: None)  # noqa: S311 - an order, no secret
    assert error.value.outcome == "crashed"


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0], 0.5, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([float(n) for n in range(1, 11)], 0.9, 9.0),
        ([float(n) for n in range(1, 12)], 0.9, 10.0),
        ([1.0, 2.0], 1.0, 2.0),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_the_percentile_is_the_nearest_rank(values: list[float], share: float, expected: float) -> None:
    """The percentile is the smallest value that the share of all values reaches."""
    assert launch.percentile(values, share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_the_percentile_was_measured(values: list[float], share: float) -> None:
    """A percentile is one of the values, and at least the share of them is no larger."""
    found = launch.percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9


def test_figures_are_medians_in_base_units() -> None:
    """Step and CPU time are medians of the samples, and throughput is items a second at the median step."""
    walls = (0.010, 0.020, 0.040)
    samples = [Sample(wall, 2 * wall, 0.0) for wall in walls]
    found = launch.figures(samples, {"items": 8, "prepare_time": 1.5, "warm_time": 0.5, "peak_memory": 7})
    assert found == pytest.approx(
        {
            "step_time": 0.020,
            "throughput": 400.0,
            "p50": 0.020,
            "p90": 0.040,
            "cpu_time": 0.040,
            "prepare_time": 1.5,
            "warm_time": 0.5,
            "peak_memory": 7.0,
        }
    )


@pytest.fixture
def make(fake: str, tmp_path: Path) -> Callable[..., Conductor]:
    """A conductor of fake cases."""
    registry.load([fake])

    def make(launches: int = 2, **options: Any) -> Conductor:
        quick: dict[str, Any] = {"load": (fake,), "samples": 5, "seconds": 0.05, "timeout": 30.0, **options}
        return Conductor(Options(**quick), launches, tmp_path, lambda _: None)

    return make


def test_a_measurement_has_every_launch(make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch) -> None:
    """A case is launched as often as planned, each time in a process of its own."""
    monkeypatch.setattr(gate, "contended", lambda _: "")
    found = make(launches=2).measure(case())
    assert [(x.index, x.outcome) for x in found.launches] == [(0, "ok"), (1, "ok")]
    assert (found.failure, found.invalid) == ("", "")
    assert len(found.values("step_time")) == 2
    assert found.environment["git"] == {"commit": None, "branch": None, "dirty": None}
    assert found.started_at < found.finished_at


def test_the_first_failed_launch_is_the_last(make: Callable[..., Conductor]) -> None:
    """A case that failed is not launched again, and its measurement still says on which machine."""
    found = make(launches=3).measure(case("segfault"))
    assert [x.outcome for x in found.launches] == ["crashed"]
    assert found.failure == "crashed: killed by SIGSEGV"
    assert found.environment["machine_key"]


def test_a_contended_launch_is_measured_once_more(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second try counts; where it is contended too, the case says why. Accuracy is of the first that is not."""
    asked = launched(monkeypatch, [BUSY, "", BUSY, BUSY])
    found = make(launches=2).measure(case())
    assert asked == [(0, True, False), (1, True, False), (2, False, False), (3, False, False)]
    assert [(x.index, x.outcome, bool(x.contended)) for x in found.launches] == [
        (0, "contended", True),
        (1, "ok", False),
        (2, "contended", True),
        (3, "ok", True),
    ]
    assert found.failure == ""
    assert found.contended == f"machine contended: {BUSY}"


def test_a_launch_that_was_measured_again_is_kept_and_does_not_count(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers and its reason are recorded; no statistic, no check and no outcome of the case is made of them."""
    launched(monkeypatch, [BUSY, "", ""])
    found = make(launches=2).measure(case())
    assert (found.failure, found.contended, found.invalid) == ("", "", "")
    assert [x.index for x in found.counted] == [1, 2]
    assert found.values("step_time") == (1.0, 2.0)
    assert found.values("accuracy") == (1.0,)
    first = found.launches[0]
    assert (first.outcome, first.reason, first.metrics["step_time"]) == ("contended", BUSY, 0.0)
    assert not first.proof[0].ok


def test_what_stayed_contended_is_made_again_and_the_rest_stays(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later in the run only the launch that was disturbed is made again, whichever it was, and told of once."""
    asked = launched(monkeypatch, [BUSY, BUSY, "", "", ""])
    conductor = make(launches=3)
    before = conductor.measure(case())
    assert (before.contended, before.values("accuracy")) == (f"machine contended: {BUSY}", (2.0,))
    found = conductor.again(case(), before)
    assert asked == [(0, True, False), (1, True, False), (2, True, False), (3, False, False), (4, False, False)]
    assert (found.contended, found.failure, found.invalid) == ("", "", "")
    assert [x.outcome for x in found.launches] == ["contended", "contended", "ok", "ok", "ok"]
    assert found.values("step_time") == (2.0, 3.0, 4.0)
    assert found.values("accuracy") == (2.0,)
    assert (found.started_at, found.environment["machine_key"]) == (before.started_at, "m")


def test_what_is_kept_is_held_against_the_ceilings_once(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second time would tell the notes of its roof twice."""
    launched(monkeypatch, [BUSY, BUSY, "", ""])
    roofed: list[list[int]] = []

    def over(launches: list[Launch], *_: Any) -> list[Launch]:
        roofed.append([x.index for x in launches])
        return [dataclasses.replace(x, notes=(*x.notes, "has a roof")) for x in launches]

    conductor = make(launches=2)
    monkeypatch.setattr(conductor._roofs, "over", over)
    found = conductor.again(case(), conductor.measure(case()))
    assert roofed == [[0, 1, 2], [3]]
    assert [x.notes for x in found.launches] == [("has a roof",)] * 4


def test_a_machine_that_is_never_ours_is_told_of_with_the_accuracy(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very last try is asked for accuracy, contended or not: it is none the worse for it."""
    asked = launched(monkeypatch, [BUSY] * 6)
    conductor = make(launches=1)
    before = conductor.measure(case())
    found = conductor.again(case(), before)
    assert asked == [(0, True, False), (1, True, False), (2, True, False), (3, True, True)]
    assert (before.values("accuracy"), found.values("accuracy")) == ((), (3.0,))
    assert found.contended == f"machine contended: {BUSY}"
    assert [x.outcome for x in found.launches] == ["contended"] * 3 + ["ok"]


def test_nothing_is_made_again_once_the_budget_is_spent(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then what was measured stays as it was, contended and all."""
    launched(monkeypatch, [BUSY] * 2)
    conductor = make(launches=1, budget=3600.0)
    before = conductor.measure(case())
    monkeypatch.setattr(conductor, "_deadline", 0.5)
    assert conductor.again(case(), before) is before


def test_a_failure_after_a_contended_launch_is_the_cases(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the second try ended with is the outcome of the case, on the machine that the first one told of."""
    launched(monkeypatch, [BUSY, "crashed"])
    found = make(launches=3).measure(case())
    assert [x.outcome for x in found.launches] == ["contended", "crashed"]
    assert found.failure == "crashed: it fell over"
    assert found.environment["machine_key"] == "m"
    assert found.values("step_time") == ()


BUSY = "other processes took 50% (limit 25%)"


def launched(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> list[tuple[int, bool, bool]]:
    """Lets launches be contended or crash as told, each with its number as step time; what they were asked is kept.

    Contended ones seem unproven as well: it must not matter.
    """
    asked: list[tuple[int, bool, bool]] = []

    def run(
        case: Case, index: int, conditions: Conditions, *, accuracy: bool, final: bool
    ) -> tuple[Launch, dict[str, Any]]:
        asked.append((index, accuracy, final))
        if told[index] == "crashed":
            return Launch(index, "crashed", "it fell over"), {}
        looked = accuracy and (final or not told[index])
        metrics = {"step_time": float(index), **({"accuracy": float(index)} if looked else {})}
        proof = (Check("dtype", not told[index], "anything", "fp32"),)
        right = (Check("accuracy", True, "right", "right"),) if looked else ()
        done = Launch(index, "ok", metrics=metrics, accuracy=right, proof=proof, contended=told[index])
        return done, {"machine_key": "m"}

    monkeypatch.setattr(conductor.launch, "run", run)
    return asked


def test_a_case_that_the_budget_left_no_time_for_is_not_launched(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even its weights are looked for: it never began, it says why, and it did not fail."""
    planned = make(budget=0.001)
    monkeypatch.setattr(planned, "_deadline", 0.5)
    monkeypatch.setattr(planned, "ready", lambda _: pytest.fail("weights were looked for"))
    found = planned.measure(case())
    assert (found.launches, found.failure, found.metrics) == ((), "", ())
    assert found.never_began == "the budget (--perf-budget) was spent before it began"


def test_launches_that_the_budget_left_no_time_for_are_told(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launches that there was time for count, and the measurement says how many are missing."""
    planned = make(launches=3, budget=3600.0)

    def the_last(case: Case, index: int, conditions: Conditions, **asked: bool) -> tuple[Launch, dict[str, Any]]:
        monkeypatch.setattr(planned, "_deadline", 0.5)
        return Launch(index, "ok", metrics={"step_time": 0.1}), {"machine_key": "m"}

    monkeypatch.setattr(conductor.launch, "run", the_last)
    found = planned.measure(case())
    assert (found.values("step_time"), found.failure, found.never_began) == ((0.1,), "", "")
    assert found.cut == "the budget (--perf-budget) was spent after 1 of 3 launches"


def test_a_contended_launch_is_not_measured_again_once_the_budget_is_spent(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No launch begins after the budget, not a second try either: the case stays contended."""
    asked = launched(monkeypatch, [BUSY, ""])
    planned = make(launches=1, budget=3600.0)
    spent = iter(["", "", "the budget was spent"])
    monkeypatch.setattr(planned, "_cut", lambda _: next(spent))
    assert planned.measure(case()).contended == f"machine contended: {BUSY}"
    assert asked == [(0, True, False)]
