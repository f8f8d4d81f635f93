"""`--perf-against`: each case of a run has a measurement and a verdict, whatever became of the other arm."""

import base64
import contextlib
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compare_play import CASE, QUICK, ScriptedRounds, case, chance, failed, finish, pair, scripted, slower, use
from free_machine import FREE, Clock

from ipexperf.bench import loading
from ipexperf.case import AGAINST, ITSELF, NetworkCase
from ipexperf.compare.against import JudgedCase, PairPlan, PairRun
from ipexperf.compare.arm import FLAG
from ipexperf.compare.round import ArmResult
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import WorkerError
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan.arms import ArmSpec, parse
from ipexperf.plan.gates import AS_ALL, GateWish
from ipexperf.plan.options import Options
from ipexperf.verdict import PairsEvidence

pytestmark = pytest.mark.process

LOSERS = str(Path(__file__).parents[1] / "fakes" / "losers.py")
POLICY = PairPolicy()
LOSSY = replace(CASE, device="lossy")
OTHER = f"the arm of {FLAG}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def conductor(fake: str, tmp_path: Path, clock: Clock) -> Conductor:
    loading.load((fake, LOSERS))
    options = Options(load=(fake, LOSERS), cache=tmp_path, without=("roof",), budget=60.0)
    return Conductor(options, tmp_path, lambda _: None, policy=FREE, clock=clock)


def against(other: NetworkCase, words: ArmSpec, policy: PairPolicy = POLICY, *, mine: NetworkCase = CASE) -> PairPlan:
    return PairPlan(words, FLAG, {mine: other}, policy)


def judged(
    conductor: Conductor, other: PairPlan, *, tolerance: float | None = None, together: ScriptedRounds | None = None
) -> JudgedCase:
    """The measurement and verdict of a run with one case."""
    [case] = other.cases
    use(together)
    run = PairRun(other, [(case, GateWish(tolerance))], conductor, lambda _: None, QUICK, chance())
    finish(run)
    return run.judged()[case]


def test_a_case_against_another_arm_has_the_launches_of_its_own_workers(conductor: Conductor) -> None:
    """It is recorded under a name with the other arm, with the verdict and the evidence of the pairs."""
    other = against(case(dtype="bf16"), parse("dtype=bf16", FLAG))
    measurement, verdict, policy = judged(conductor, other, together=scripted(slower(0.001, 1.2)))
    assert dict(measurement.case.knobs)[AGAINST] == "dtype=bf16"
    assert [(one.index, one.outcome) for one in measurement.launches] == [(0, "ok")] * 4
    assert (verdict.outcome, policy, measurement.cut) == ("regressed", POLICY, "")
    evidence = verdict.evidence
    assert isinstance(evidence, PairsEvidence)
    facts = {name: getattr(evidence, name) for name in (AGAINST, "stopped", "differences", "apart")}
    assert facts == {
        AGAINST: "dtype=bf16",
        "stopped": "it was decided after 4 of at most 24 pairs",
        "differences": ("dtype: bf16 -> fp32",),
        "apart": "",
    }
    assert len(evidence.log_ratios) == 4


def test_an_arm_that_failed_is_the_last_launch_of_its_case(conductor: Conductor) -> None:
    """After the launches that it had. The case failed."""
    died = WorkerError("crashed", f"{OTHER}: killed by SIGSEGV", "its last words")
    rounds = scripted(iter([pair(1.0, 1.0), failed(died)]))
    measurement, verdict, _ = judged(conductor, against(CASE, ArmSpec()), together=rounds)
    assert [(one.index, one.outcome) for one in measurement.launches] == [(0, "ok"), (1, "crashed")]
    assert (measurement.launches[1].reason, measurement.launches[1].log) == (died.reason, "its last words")
    assert verdict.outcome == "failed"
    assert dict(measurement.case.knobs)[AGAINST] == ITSELF


def test_what_the_other_tree_lacks_is_not_measured_and_its_baseline_is_unable(conductor: Conductor) -> None:
    """So no network is green because the other arm could not find it: a baseline's numbers judge it."""
    lacking = failed(WorkerError("absent", f"{OTHER}: unknown model"))
    use(scripted(iter([replace(lacking, results=lacking.results[::-1])])))
    run = PairRun(against(CASE, ArmSpec()), [(CASE, AS_ALL)], conductor, lambda _: None, QUICK, chance())
    finish(run)
    measurement, verdict, _ = run.judged()[CASE]
    assert (measurement.launches, measurement.cut, verdict.outcome) == ((), f"{OTHER}: unknown model", "inconclusive")
    assert run.first_arms()[CASE].unable == f"{OTHER}: unknown model"


def test_a_device_that_the_other_arm_lost_is_in_quarantine(conductor: Conductor) -> None:
    """The next case against it is not launched. One that stays on its own device is."""
    words = parse("device=lossy", FLAG)
    lost = failed(WorkerError("device_lost", f"{OTHER}: gone"))
    rounds = scripted(iter([replace(lost, results=lost.results[::-1]), pair(1.0, 1.0)]))
    measurement, _, _ = judged(conductor, against(LOSSY, words), together=rounds)
    assert measurement.launches[-1].outcome == "device_lost"
    measurement, _, _ = judged(conductor, against(LOSSY, words), together=rounds)
    assert len(rounds.asked) == 1
    assert "lossy is in quarantine" in measurement.launches[-1].reason
    judged(conductor, against(CASE, ArmSpec(), replace(POLICY, max_pairs=1)), together=rounds)
    assert len(rounds.asked) == 2


@pytest.mark.parametrize("when", ["in a round", "after a round", "before"])
def test_an_interrupted_run_is_judged_on_what_is_known(
    when: str, conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever that is, each case has a measurement and a verdict that is no alarm."""
    cases = {case(dtype=dtype): CASE for dtype in ("fp32", "bf16")}
    ready, stop = conductor.ready, KeyboardInterrupt

    def prepared(one: NetworkCase, *more: str | None) -> Conditions:
        if when == "before" and one.dtype == "bf16":
            raise stop
        return ready(one, *more)  # type: ignore[arg-type]

    def say(text: str) -> None:
        if when == "in a round" and "pair 2" in text:
            raise stop

    monkeypatch.setattr(conductor, "ready", prepared)
    use(scripted(replace(one, results=one.results * 2) for one in slower(0.001, 1.0)))
    other = PairPlan(ArmSpec(), FLAG, cases, POLICY)
    run = PairRun(other, [(one, AS_ALL) for one in cases], conductor, say, QUICK, chance())
    with contextlib.suppress(stop):
        for _ in run.play():
            if when == "after a round":
                break
    known = run.judged("somebody stopped it")
    assert list(known) == list(cases)
    for measurement, verdict, _ in known.values():
        assert len(measurement.launches) == (0 if when == "before" else 1)
        assert measurement.cut == ("somebody stopped it" if when == "before" else "interrupted after 1 pair")
        assert (verdict.outcome, verdict.fails) == ("inconclusive", False)


def of_answers(size: float, loss: float) -> Callable[[ArmResult], ArmResult]:
    """Sides whose network answers with numbers of this size, and whose training ended with this loss."""
    values = base64.b64encode(struct.pack("<d", size)).decode()
    part = {"at": "result", "is": "float64", "shape": [], "bound": 1e-4, "values": values}
    answers = {"parts": [part], "weights": ""}

    def answering(one: ArmResult) -> ArmResult:
        metrics = {**one.launch.metrics, "loss": loss}
        return replace(one, launch=replace(one.launch, answers=answers, metrics=metrics))

    return answering


CHANGED = "its answers changed: 1 -> 1.12 (bound 0.01 %)"


@pytest.mark.parametrize(
    ("lock", "now", "outcome", "words"),
    [
        ("", of_answers(1.12, 2.0), "ok", CHANGED),
        ("a lock", of_answers(1.12, 2.0), "invalid", CHANGED),
        ("a lock", of_answers(1.0, 1.5), "invalid", "loss changed from the baseline's 2 to 1.5, more than 5 %"),
        ("a lock", of_answers(1.0, 2.01), "ok", ""),
    ],
)
def test_other_answers_than_the_first_arms_are_named_and_fail_if_that_is_a_baselines(
    conductor: Conductor, lock: str, now: Callable[[ArmResult], ArmResult], outcome: str, words: str
) -> None:
    rounds = (
        replace(one, results=(of_answers(1.0, 2.0)(one.results[0]), now(one.results[1]))) for one in slower(0.001, 1.0)
    )
    other = replace(against(CASE, parse("PACE=1", FLAG)), lock=lock)
    _, verdict, _ = judged(conductor, other, together=scripted(rounds))
    assert (verdict.outcome, verdict.alone.outcome) == (outcome, "ok")
    assert words in verdict.reason
    assert ("changed" in verdict.reason) == bool(words)
