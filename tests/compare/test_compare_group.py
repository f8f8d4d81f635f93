"""The rounds of a run: launches that fail, do not fit into memory, or were contended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compare_play import BUSY, CASE, NOW, QUICK, ScriptedRounds, Sent, case, chance, finish, use
from free_machine import FREE, Clock

from ipexperf.bench import loading
from ipexperf.case import NetworkCase
from ipexperf.compare import rounds as loop
from ipexperf.compare.arm import Arm
from ipexperf.compare.group import GroupRequest, GroupRun
from ipexperf.compare.round import ArmResult, Round
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import WorkerError
from ipexperf.judge import rounds as judge
from ipexperf.plan.groups import Group
from ipexperf.plan.options import Options
from ipexperf.result import Check, Launch, Measurement

pytestmark = pytest.mark.process

FAKES = Path(__file__).parents[1] / "fakes"
HOUR = 3600.0
COLD, LOSERS = (str(FAKES / name) for name in ("cold.py", "losers.py"))
FP32, BF16, FP16 = (case(dtype=dtype) for dtype in ("fp32", "bf16", "fp16"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(fake: str, tmp_path: Path, clock: Clock) -> Callable[..., Conductor]:
    """A conductor of fake cases, on a machine that is ours alone."""
    load = (fake, COLD, LOSERS)
    loading.load(load)

    def make(memory: int | None = None, **options: Any) -> Conductor:
        asked: dict[str, Any] = {"load": load, "samples": 5, "seconds": 0.05, "timeout": 30.0, **options}
        return Conductor(Options(**asked), tmp_path, lambda _: None, policy=FREE, clock=clock, memory=memory)

    return make


def of(
    conductor: Conductor,
    *cases: NetworkCase,
    launches: int = 1,
    say: Callable[[str], None] = lambda _: None,
    together: ScriptedRounds | None = None,
    **more: Any,
) -> GroupRun:
    request = GroupRequest(Group("a group", cases), launches, **more)
    use(together)
    return GroupRun(request, conductor, say, effort=QUICK, chance=chance())


def measured(conductor: Conductor, launches: int = 1, **more: Any) -> Measurement:
    """A case that is alone in its group."""
    run = of(conductor, CASE, launches=launches, **more)
    finish(run)
    return run.measurements()[CASE]


def beside(
    ends: Callable[[Arm, int], str] = lambda *_: "",
    environment: Callable[[Arm], Mapping[str, Any]] = lambda _: {"machine_key": "m"},
    time: Callable[[Arm], float] = lambda _: 1.0,
    **metrics: float,
) -> ScriptedRounds:
    """Have each arm of a round end as given, or well: in this environment, with this step time and these metrics.

    A contended one fails its proof too, which must not matter. Those that are looked at have their number as accuracy.
    """

    def side(arm: Arm, arms: int) -> ArmResult:
        ended = ends(arm, arms)
        if ended and ended != BUSY:
            error = WorkerError(ended, f"{arm.case.axes['dtype']} ended")
            return ArmResult(arm, Launch(arm.index, ended, error.reason), {}, (), error)  # type: ignore[arg-type]
        looked = {"accuracy": float(arm.index)} if arm.accuracy and (arm.final or not ended) else {}
        done = Launch(
            arm.index,
            "ok",
            metrics={"step_time": time(arm), **metrics, **looked},
            accuracy=tuple(Check(name, True, "right", "right") for name in looked),
            proof=(Check("dtype", False, "anything", "fp32"),) * bool(ended),
            contended=ended,
        )
        return ArmResult(arm, done, environment(arm), ((time(arm),) * 2,))

    def script(arms: Sequence[Arm]) -> Round:
        return Round(tuple(side(arm, len(arms)) for arm in arms), "together", NOW, 2)

    return ScriptedRounds(script)


def requests(rounds: ScriptedRounds) -> list[tuple[int, bool, bool]]:
    """The number of each launch, whether it was asked for accuracy, and whether it was the last try."""
    return [(arm.index, arm.accuracy, arm.final) for [arm] in rounds.asked]


def test_a_launch_on_fewer_cores_than_the_first_is_invalid(make: Callable[..., Conductor]) -> None:
    """As after `taskset` during a run. Without torch a launch does not know its threads, which is no difference."""
    environments = [
        {"machine_key": f"m-{cores}c", "hardware": {"cores": cores, "threads": threads}}
        for cores, threads in ((2, 2), (2, None), (1, 2))
    ]
    found = measured(make(), launches=3, together=beside(environment=lambda arm: environments[arm.index]))
    assert found.environment["machine_key"] == "m-2c"
    assert [len(launch.proof) for launch in found.launches] == [0, 0, 1]
    assert found.invalid == (
        "proof failed: same_machine: found machine_key: m-2c -> m-1c; cores: 2 -> 1, expected what the first launch had"
    )


def test_a_launch_under_other_settings_than_the_first_says_so(make: Callable[..., Conductor]) -> None:
    """As after `renice` during a run. The clock of the moment is no setting, nor is a fact that only one side has."""
    hardware: list[dict[str, Any]] = [
        {"cores": 2, "nice": 0, "frequency_khz": "0"},
        {"cores": 2, "nice": 0, "frequency_khz": "1"},
        {"cores": 2, "nice": 10, "frequency_khz": "2", "smt": "on"},
    ]
    environments = [{"machine_key": "m", "hardware": facts} for facts in hardware]
    found = measured(make(), launches=3, together=beside(environment=lambda arm: environments[arm.index]))
    assert [launch.settings for launch in found.launches] == ["", "", "nice: 0 -> 10"]
    assert found.launches[2].notes == ("had other settings than the case's first one: nice: 0 -> 10",)
    assert not found.invalid


def test_a_later_pass_repeats_only_the_launches_that_stayed_contended(make: Callable[..., Conductor]) -> None:
    """Whichever they were, and the notes are not doubled."""
    rounds = beside(lambda arm, _: BUSY if arm.index < 2 else "", time=lambda arm: float(arm.index))
    conductor = make()
    before = measured(conductor, launches=3, together=rounds)
    assert (before.contended, before.values("accuracy")) == (f"machine contended: {BUSY}", (2.0,))
    found = measured(conductor, launches=3, before={CASE: before}, together=rounds)
    assert requests(rounds) == [
        (0, True, False),
        (1, True, False),
        (2, True, False),
        (3, False, False),
        (4, False, False),
    ]
    assert (found.contended, found.failure, found.invalid) == ("", "", "")
    assert [x.outcome for x in found.launches] == ["contended", "contended", "ok", "ok", "ok"]
    assert found.values("step_time") == (2.0, 3.0, 4.0)
    assert found.values("accuracy") == (2.0,)
    assert (found.started_at, found.environment["machine_key"]) == (before.started_at, "m")


def test_on_a_machine_that_stays_busy_the_last_try_has_the_accuracy(make: Callable[..., Conductor]) -> None:
    """Other programs do not change accuracy."""
    rounds = beside(lambda *_: BUSY)
    conductor = make()
    before = measured(conductor, together=rounds)
    found = measured(conductor, before={CASE: before}, together=rounds)
    assert requests(rounds) == [(0, True, False), (1, True, False), (2, True, False), (3, True, True)]
    assert (before.values("accuracy"), found.values("accuracy")) == ((), (3.0,))
    assert found.contended == f"machine contended: {BUSY}"
    assert [x.outcome for x in found.launches] == ["contended"] * 3 + ["ok"]


def test_a_case_that_the_budget_left_no_time_for_is_not_launched(
    make: Callable[..., Conductor], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights are not looked up either. It never began, has a reason, and did not fail."""
    planned = make(budget=HOUR)
    clock.now = HOUR + 1
    monkeypatch.setattr(planned, "ready", lambda _: pytest.fail("weights were looked for"))
    found = measured(planned)
    assert (found.launches, found.failure, found.metrics) == ((), "", ())
    assert found.never_began == "the budget (--perf-budget) was spent already"


def company(rounds: ScriptedRounds) -> list[list[tuple[str, str]]]:
    """The names and dtypes of the arms of each round."""
    return [[(arm.name, arm.case.axes["dtype"]) for arm in arms] for arms in rounds.asked]


REFERENCE, TWIN = ("the reference", "fp32"), ("the twin", "fp32")
OWN = [("", "fp32"), ("", "bf16"), ("", "fp16")]


def test_only_contended_launches_are_repeated(make: Callable[..., Conductor]) -> None:
    """Beside the reference, so that the second try has a ratio too. The first is no seat of its round."""
    rounds = beside(lambda arm, _: BUSY if arm.case == BF16 and arm.index == 0 else "")
    run = of(make(), FP32, BF16, FP16, together=rounds)
    finish(run)
    assert company(rounds) == [OWN, [("", "bf16"), REFERENCE]]
    assert [x.outcome for x in run.measurements()[BF16].launches] == ["contended", "ok"]
    assert [[seat.case for seat in one.seats] for one in run.rounds] == [[FP32, FP16], [BF16, FP32]]
    assert judge.logs(run.rounds, FP32, BF16) == [0.0]


def test_a_case_that_does_not_fit_is_tried_beside_the_reference_and_then_alone(
    make: Callable[..., Conductor],
) -> None:
    """It is the same launch each time, without a recorded failure. Later rounds begin with what fitted."""
    said: list[str] = []
    rounds = beside(lambda arm, arms: "out_of_memory" if arm.case == BF16 and arms > 1 else "")
    run = of(make(), FP32, BF16, FP16, launches=2, say=said.append, together=rounds)
    finish(run)
    first = [OWN, [("", "bf16"), REFERENCE], [("", "bf16")]]
    assert company(rounds) == [*first, [OWN[0], OWN[2]], [("", "bf16")]]
    assert [(x.index, x.outcome) for x in run.measurements()[BF16].launches] == [(0, "ok"), (1, "ok")]
    assert [text.rpartition(": ")[2] for text in said if "bf16 ended" in text] == [
        "it is measured again beside the reference alone",
        "it is measured again beside no other",
    ]


def test_cases_whose_known_peaks_do_not_fit_together_are_not_tried_together(make: Callable[..., Conductor]) -> None:
    """They take turns with the reference one after the other."""
    rounds = beside(peak_memory=4.0)
    run = of(make(memory=10), FP32, BF16, FP16, launches=2, together=rounds)
    finish(run)
    assert company(rounds) == [OWN, OWN[:2], [("", "fp16"), REFERENCE]]


def test_more_arms_than_may_take_turns_are_split_around_the_reference(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part has the reference, so that all have a ratio to it."""
    monkeypatch.setattr(loop, "MOST_ARMS", 3)
    rounds = beside()
    cases = [case(dtype="fp32"), *(case(dtype="bf16", batch=batch) for batch in range(1, 6))]
    run = of(make(), *cases, together=rounds)
    finish(run)
    assert [len(one) for one in company(rounds)] == [3, 3, 2]
    assert [one[1] for one in company(rounds)[1:]] == [REFERENCE] * 2
    assert all(len(judge.logs(run.rounds, FP32, one)) == 1 for one in cases[1:])


@pytest.mark.parametrize("others", [(), (("optimizer", "adam"),)])
def test_a_setting_takes_turns_with_the_same_case_without_it(
    others: tuple[tuple[str, str], ...], make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a later part: it is worth a few percent, and a ratio through the reference may be off by more.

    The other settings of both are the same.
    """
    monkeypatch.setattr(loop, "MOST_ARMS", 3)
    plain = replace(case(dtype="bf16"), knobs=others)
    off = replace(plain, knobs=(*others, ("packed", "off")))
    cases = [FP32, plain, case(dtype="bf16", batch=2), case(dtype="bf16", batch=3), off]
    rounds = beside()
    run = of(make(), *cases, together=rounds)
    finish(run)
    parts = [{seat.case: seat.role for seat in record.seats} for record in run.rounds]
    assert parts == [
        {FP32: "case", plain: "case", cases[2]: "case"},
        {cases[3]: "case", FP32: "reference"},
        {off: "case", FP32: "reference", plain: "reference"},
    ]
    assert [len(found.launches) for found in run.measurements().values()] == [1] * 5


def test_a_lost_device_ends_the_other_cases_on_it(make: Callable[..., Conductor]) -> None:
    """Nothing is launched there in the next round or group. Cases on other devices go on."""
    lossy = [case(dtype=dtype, device="lossy") for dtype in ("fp32", "bf16")]
    rounds = beside(lambda arm, _: "device_lost" if arm.case == lossy[1] else "")
    conductor = make()
    run = of(conductor, *lossy, launches=3, together=rounds)
    finish(run)
    found = run.measurements()
    assert [x.outcome for x in found[lossy[1]].launches] == ["device_lost"]
    assert [x.outcome for x in found[lossy[0]].launches] == ["ok", "device_lost"]
    assert "lossy is in quarantine" in found[lossy[0]].launches[-1].reason
    next_group = of(conductor, lossy[0], FP32, together=rounds)
    finish(next_group)
    found = next_group.measurements()
    assert [x.outcome for x in found[lossy[0]].launches] == ["device_lost"]
    assert [x.outcome for x in found[FP32].launches] == ["ok"]
    assert len(rounds.asked) == 2


def test_a_case_whose_weights_cannot_be_trained_fails_alone(
    make: Callable[..., Conductor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has one launch with the reason."""
    rounds = beside()
    conductor = make()
    ready = conductor.ready

    def prepared(one: NetworkCase, python: str | None = None) -> Conditions:
        if one == BF16:
            raise WorkerError("error", "its weights cannot be trained", "a log")
        return ready(one, python)

    monkeypatch.setattr(conductor, "ready", prepared)
    run = of(conductor, FP32, BF16, launches=2, together=rounds)
    finish(run)
    found = run.measurements()
    assert found[BF16].failure == "error: its weights cannot be trained"
    assert [x.log for x in found[BF16].launches] == ["a log"]
    assert (found[FP32].failure, company(rounds)) == ("", [OWN[:1]] * 2)


def test_cold_starts_are_interleaved_and_never_alive_together(
    make: Callable[..., Conductor], alive: list[int], sent: Sent
) -> None:
    """Each round has one cold start of each case and of the twin, in random order, because the machine drifts."""
    cases = [replace(one, mode="start") for one in (FP32, BF16)]
    run = of(make(without=("roof",)), *cases, launches=2, twin=True)
    finish(run)
    started = sent.of("begin")
    assert [sorted(started[:3]), sorted(started[3:])] == [["bf16", "fp32", "fp32"]] * 2
    assert alive == [1] * 6
    roles = [(one.schedule, [seat.role for seat in one.seats]) for one in run.rounds]
    assert roles == [("apart", ["case", "case", "twin"])] * 2
    for found in run.measurements().values():
        assert [(x.outcome, len(x.samples), x.proof[0].ok) for x in found.launches] == [("ok", 1, True)] * 2


@pytest.mark.parametrize(
    ("factors", "precision", "rounds"),
    [
        ((1.0, 1.0), 0.12, 2),
        ((1.0, 1.3, 1.1, 1.2), 0.12, 4),
        ((1.0, 1.12, 1.06, 1.06), 0.12, 3),
        ((1.0, 1.3, 1.1, 1.2), None, 2),
    ],
    ids=["precise", "never precise", "precise with one more", "not asked for"],
)
def test_a_group_with_an_imprecise_ratio_gets_more_rounds(
    factors: tuple[float, ...], precision: float | None, rounds: int, make: Callable[..., Conductor]
) -> None:
    """Up to twice as many as planned, with a launch of every case in each."""
    together = beside(time=lambda arm: factors[arm.index] if arm.case == BF16 else 1.0)
    run = of(make(start="fresh"), FP32, BF16, launches=2, precision=precision, together=together)
    finish(run)
    assert len(run.rounds) == rounds
    for one in run.measurements("interrupted").values():
        assert ([launch.index for launch in one.launches], one.cut) == ([*range(rounds)], "")
