"""Pairs until the judge is sure: when they end, what the arms differ in, and whose fault it is where one fails."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import pairs, turns
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.launch import Conditions
from ipexperf.conduct.turns import Arm, Side, Turns
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan import arms, placement
from ipexperf.plan.arms import ArmWords, parse
from ipexperf.plan.options import Options
from ipexperf.result import Check, Launch, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

POLICY = PairPolicy()
FAKES = Path(__file__).parents[1] / "fakes"
LOSERS = str(FAKES / "losers.py")
CASE = Case("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")
A = Arm(CASE, Conditions(Settings()), "arm a")
B = replace(A, case=replace(CASE, dtype="bf16"), name="arm b")
WRONG = Check("dtype", ok=False, found="float32", expected="bf16")


def side(time: float, *checks: Check) -> Side:
    return Side(((Sample(time, time, 0.0),),) * 3, Launch(0, "ok", proof=checks), {"software": {}})


def told(monkeypatch: pytest.MonkeyPatch, found: Iterator[Turns | WorkerError]) -> list[dict[str, Any]]:
    """Lets pairs be these, and tells what was asked of each."""
    asked: list[dict[str, Any]] = []

    def take(*_: object, **more: Any) -> Turns:
        asked.append(more)
        pair = next(found)
        if isinstance(pair, WorkerError):
            raise pair
        return pair

    monkeypatch.setattr(turns, "take", take)
    return asked


def measure(policy: PairPolicy = POLICY, *, a: Arm = A, b: Arm = B, budget: int = 99) -> pairs.Pairs:
    """As many pairs as the judge wants, while the budget of so many looks at it lasts."""
    left = iter([False] * budget)
    effort = pairs.Effort(spent=lambda: next(left, True))
    return pairs.measure(a, b, policy, effort, random.Random(1), lambda _: None)  # noqa: S311 - an order, no secret


def slower(spread: float, shift: float = 1.0) -> Iterator[Turns]:
    chance = random.Random(7)  # noqa: S311 - a simulation, no secret
    while True:
        yield Turns(side(1.0), side(shift * math.exp(chance.gauss(0, spread))))


def test_pairs_end_as_soon_as_the_judge_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four pairs without noise are enough, and only the first is asked for its proof."""
    asked = told(monkeypatch, slower(0.001, 1.2))
    found = measure()
    assert (found.decision.outcome, len(found.taken)) == ("regressed", 4)
    assert found.stopped == "it was decided after 4 of at most 24 pairs"
    assert [more["prove"] for more in asked] == [True, False, False, False]
    assert [more["index"] for more in asked] == [0, 1, 2, 3]


def test_pairs_end_where_there_may_be_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise that hides everything the most pairs are the end, and nothing is claimed."""
    told(monkeypatch, slower(0.5))
    found = measure(PairPolicy(max_pairs=8))
    assert (found.decision.outcome, len(found.taken)) == ("inconclusive", 8)
    assert found.stopped == "there were as many pairs as were allowed: 8"
    assert found.decision.mde is not None
    assert not found.cut


@pytest.mark.parametrize(("budget", "stopped"), [(0, "before it began"), (1, "after 1 pair"), (5, "after 5 pairs")])
def test_pairs_end_with_the_budget(budget: int, stopped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair begins after it; what there is by then is judged, as the last look."""
    told(monkeypatch, slower(0.5))
    found = measure(budget=budget)
    assert len(found.taken) == budget
    assert found.decision.outcome == "inconclusive"
    assert found.stopped == f"the budget (--perf-budget) was spent {stopped}"
    assert found.cut


def test_what_the_budget_ended_may_be_sure_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look spends what is left of the alarm rate."""
    told(monkeypatch, slower(0.001, 2.0))
    found = measure(budget=3)
    assert (found.decision.outcome, found.decision.pairs, found.cut) == ("regressed", 3, False)


@pytest.mark.parametrize("wrong", ["a", "b"])
def test_an_arm_that_is_not_what_its_label_says_ends_the_pairs(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first pair, whichever arm it is: nothing is decided."""
    checks = {name: (WRONG,) if name == wrong else () for name in "ab"}
    told(monkeypatch, iter([Turns(side(1.0, *checks["a"]), side(1.0, *checks["b"]))] * 9))
    found = measure()
    assert len(found.taken) == 1
    assert found.stopped == "an arm is not what its label says, or is wrong"
    assert pairs.wrong(getattr(found.taken[0], wrong).launch) == str(WRONG)
    assert found.decision.outcome == "inconclusive"


def test_an_arm_that_fails_ends_the_pairs_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs before it are there, and nothing is decided by them."""
    died = WorkerError("crashed", "arm b: killed by SIGSEGV")
    told(monkeypatch, iter([Turns(side(1.0), side(1.0)), died]))
    found = measure()
    assert (len(found.taken), found.error) == (1, died)
    assert found.decision.outcome == "inconclusive"


def test_arms_that_are_the_same_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """An A/A has no differences, however its processes found the machine; any thing asked for is one."""
    told(monkeypatch, slower(0.001))
    assert measure(b=A).differences == ()
    assert measure().differences == ("dtype: fp32 -> bf16",)
    more = replace(A.conditions, python="/other/python", variables={"OMP_NUM_THREADS": "1"})
    other = replace(A, conditions=more, case=replace(CASE, knobs=(("level", "O0"),)))
    lines = measure(b=other).differences
    assert lines[:2] == ("level: as it is -> O0", "OMP_NUM_THREADS: as it is -> 1")
    assert lines[2].endswith(" -> /other/python")


def test_a_pair_is_two_launches_on_record(fake: str) -> None:
    """Real workers: both arms have numbers, proof and accuracy, and share what the machine did."""
    conditions = Conditions(Settings(load=(fake,)), timeout=30)
    a, b = (Arm(CASE, conditions, name) for name in ("arm a", "arm b"))
    pair = turns.take(a, b, 4, 2, random.Random(1), lambda _: None, index=3, prove=True)  # noqa: S311 - an order
    for one in (pair.a, pair.b):
        assert (one.launch.index, one.launch.outcome, len(one.launch.samples)) == (3, "ok", 8)
        assert one.launch.metrics["step_time"] > 0
        assert one.launch.metrics["accuracy"] == 1.0
        assert [check.name for check in one.launch.proof] == ["dtype"]
        assert one.environment["machine_key"]
    assert {name: pair.a.launch.gate[name] for name in ("others", "steal")} == {
        name: pair.b.launch.gate[name] for name in ("others", "steal")
    }
    assert math.isfinite(pair.log_ratio)


def test_a_failure_says_which_arm_it_is(fake: str) -> None:
    """The one that crashed, not the one that was waiting."""
    conditions = Conditions(Settings(load=(fake,)), timeout=30)
    a, b = Arm(CASE, conditions, "arm a"), Arm(replace(CASE, model="segfault"), conditions, "arm b")
    with pytest.raises(WorkerError, match=r"^arm b: killed by SIGSEGV$"):
        turns.take(a, b, 2, 1, random.Random(1), lambda _: None)  # noqa: S311 - an order, no secret


@pytest.mark.parametrize("spelling", ["here/bin/python", "here/bin/python3", "here/bin/../bin/python"])
def test_two_spellings_of_an_interpreter_are_no_difference(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But two environments are, though both have the same file behind their `python`."""
    for name in ("here", "there"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").symlink_to(sys.executable)
        (tmp_path / name / "bin" / "python3").symlink_to("python")
    monkeypatch.chdir(tmp_path)
    told(monkeypatch, slower(0.001))
    a, b, c = (
        replace(A, conditions=replace(A.conditions, python=python))
        for python in (str(tmp_path / "here" / "bin" / "python"), spelling, "there/bin/python")
    )
    assert measure(a=a, b=b).differences == ()
    assert measure(a=a, b=c).differences == (f"interpreter: {tmp_path}/here/bin/python -> there/bin/python",)


def test_what_was_asked_for_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes found it around them too, with all that came of it."""
    around = [{"software": {"threads": threads}, "variables": {"A": value}} for threads, value in ((2, "0"), (1, "1"))]
    sides = [replace(side(1.0), environment=environment) for environment in around]
    told(monkeypatch, iter([Turns(*sides)] * 9))
    monkeypatch.setenv("A", "0")
    b = replace(A, conditions=replace(A.conditions, variables={"A": "1"}))
    assert measure(b=b).differences == ("A: 0 -> 1", "threads: 2 -> 1")


def test_what_the_shell_says_too_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is what the processes get, whoever says it."""
    told(monkeypatch, slower(0.001))
    b = replace(A, conditions=replace(A.conditions, variables={"ONEDNN_MAX_CPU_ISA": "AVX2"}))
    assert measure(b=b).differences == ("ONEDNN_MAX_CPU_ISA: as it is -> AVX2",)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert measure(b=b).differences == ()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    assert measure(b=b).differences == ("ONEDNN_MAX_CPU_ISA: SSE41 -> AVX2",)


def test_the_threads_of_an_arm_are_those_of_its_workers(fake: str, tmp_path: Path) -> None:
    """A worker has a thread a core, whatever the variable says: an arm that says it means it."""
    registry.load((fake,))
    conductor = Conductor(Options(load=(fake,), threads=2), 1, tmp_path, lambda _: None)
    plain, single = (pairs.arm(conductor, CASE, parse(text, "arm")) for text in ("", "OMP_NUM_THREADS=1"))
    assert (plain.conditions.settings.threads, single.conditions.settings.threads) == (2, 1)
    assert single.conditions.variables["OMP_NUM_THREADS"] == "1"


def test_the_threads_of_an_arm_are_no_breach_of_its_placement(fake: str, tmp_path: Path) -> None:
    """What the placement says of threads is what the arm says; multistream, which has a thread a core, refuses it."""
    registry.load((fake,))
    placed = placement.read("cores=0")
    conductor = Conductor(Options(load=(fake,), placement=placed), 1, tmp_path, lambda _: None)
    one = replace(CASE, knobs=((placement.KNOB, "cores=0"),))
    plain, told = (
        pairs.arm(conductor, one, parse(text, "arm")).conditions.settings for text in ("", "OMP_NUM_THREADS=3")
    )
    assert plain.placement is not None
    assert told.placement == {**plain.placement, "threads": 3}
    streams = Case("resnet18", "cpu", "fp32", "multistream", "ipex", 64, 32, 1, "digits")
    packages = dict.fromkeys(("torch", "torchvision", "intel-extension-for-pytorch", "scikit-learn"), "2.8.0")
    facts = Facts("python", {**packages, "torchvision": "0.23.0"}, frozenset({"avx2", "fma"}), iomp5="libiomp5.so")
    assert arms.why_not(streams, facts, None) is None
    assert "thread a core always" in str(arms.why_not(streams, facts, None, 1))


def test_a_driver_that_ends_the_process_says_that_it_was_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last words are what counts, as they are for a launch alone; on the CPU nobody's words are."""
    words = "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"
    aborted = WorkerError("crashed", "arm b: killed by SIGABRT", words)
    monkeypatch.setattr(turns, "apart", lambda *_, **__: Turns(side(1.0), side(1.0), apart=True))
    for accelerator in (True, False):
        told(monkeypatch, iter([aborted]))
        a = replace(A, conditions=replace(A.conditions, accelerator=accelerator))
        found = measure(a=a, b=replace(B, conditions=a.conditions))
        assert (found.apart, found.error) == ((True, None) if accelerator else (False, aborted))


def test_what_does_not_fit_together_is_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first pair on that did not, and it is said. What does not fit even so is a failure."""
    full = WorkerError("out_of_memory", "arm b: took more than there is")
    asked = told(monkeypatch, iter([full]))
    made = slower(0.001, 1.2)
    seen: list[dict[str, Any]] = []

    def apart(*_: object, **more: Any) -> Turns:
        seen.append(more)
        return replace(next(made), apart=True)

    monkeypatch.setattr(turns, "apart", apart)
    said: list[str] = []
    found = pairs.measure(A, B, POLICY, pairs.Effort(), random.Random(1), said.append)  # noqa: S311 - an order
    assert (found.decision.outcome, len(found.taken), found.apart, found.error) == ("regressed", 4, True, None)
    assert (len(asked), [more["prove"] for more in seen]) == (1, [True, False, False, False])
    assert f"arm b: took more than there is: {turns.APART}" in said

    def full_again(*_: object, **__: object) -> Turns:
        raise full

    told(monkeypatch, iter([full]))
    monkeypatch.setattr(turns, "apart", full_again)
    found = measure()
    assert (found.stopped, found.error, found.apart) == ("an arm failed", full, False)


def test_a_pair_apart_is_four_launches_of_which_one_is_alive_at_a_time(
    fake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A B B A, or B A A B: each arm has all its turns, its proof, and the note that says so."""
    alive: set[int] = set()
    order: list[str] = []
    ask, end = Worker.ask, Worker.__exit__

    def watched(self: Worker, do: str, timeout: float | None = None, **request: Any) -> dict[str, Any]:
        alive.add(self.pid)
        assert len(alive) == 1
        if do == "prepare":
            order.append(request["case"]["dtype"])
        return ask(self, do, timeout, **request)

    def ended(self: Worker, *error: Any) -> None:
        end(self, *error)
        alive.discard(self.pid)

    monkeypatch.setattr(Worker, "ask", watched)
    monkeypatch.setattr(Worker, "__exit__", ended)
    conditions = Conditions(Settings(load=(fake,)), timeout=30)
    a, b = (Arm(replace(CASE, dtype=dtype), conditions) for dtype in ("fp32", "bf16"))
    chance = random.Random(1)  # noqa: S311 - a start order, no secret
    pair = turns.apart(a, b, 5, 2, chance, lambda _: None, index=2, prove=True)
    assert order in (["fp32", "bf16", "bf16", "fp32"], ["bf16", "fp32", "fp32", "bf16"])
    for one in (pair.a, pair.b):
        assert [len(turn) for turn in one.turns] == [2] * 6
        assert (one.launch.index, len(one.launch.samples), one.launch.metrics["accuracy"]) == (2, 12, 1.0)
        assert [check.name for check in one.launch.proof] == ["dtype"]
        assert one.launch.notes[0] == turns.APART
    assert pair.apart
    assert math.isfinite(pair.log_ratio)


def test_an_even_drift_drops_out_of_a_pair_apart() -> None:
    """A B B A: the second process of an arm is as much later than the other's as its first was sooner."""

    def at(*moments: float) -> Side:
        return Side(tuple((Sample(math.exp(0.1 * moment), 1.0, 0.0),) for moment in moments), Launch(0, "ok"), {})

    assert Turns(at(0, 0, 3, 3), at(1, 1, 2, 2), apart=True).log_ratio == pytest.approx(0)
    assert Turns(at(0, 0, 3), at(1, 1, 2)).log_ratio == pytest.approx(0.1)


def test_a_device_that_the_other_arm_lost_is_that_arms(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next case against it is not launched; one that stays on its own device is."""
    registry.load((fake, LOSERS))
    lossy = replace(CASE, device="lossy")
    conductor = Conductor(Options(load=(fake, LOSERS), cache=tmp_path), 1, tmp_path, lambda _: None)
    words = parse("device=lossy", "--perf-against")
    lost = WorkerError("device_lost", f"the arm of {pairs.FLAG}: gone")
    asked = told(monkeypatch, iter([lost, Turns(side(1.0), side(1.0)), lost]))
    measured, _ = conductor.against(CASE, lossy, words, POLICY)
    assert measured.launches[-1].outcome == "device_lost"
    measured, found = conductor.against(CASE, lossy, words, POLICY)
    assert (found, len(asked)) == (None, 1)
    assert "lossy is in quarantine" in measured.launches[-1].reason
    conductor.against(CASE, CASE, ArmWords(), replace(POLICY, max_pairs=1))
    assert len(asked) == 2


def test_a_device_that_is_lost_while_the_other_arm_is_made_ready_is_that_arms(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case's own device stays in use, and the reason says whose failure it was."""
    registry.load((fake, LOSERS))
    lossy = replace(CASE, device="lossy")
    conductor = Conductor(Options(load=(fake, LOSERS), cache=tmp_path), 1, tmp_path, lambda _: None)
    ready = conductor.ready

    def lost(case: Case, python: str | None = None) -> Conditions:
        if case.device == "lossy":
            raise WorkerError("device_lost", "gone")
        return ready(case, python)

    monkeypatch.setattr(conductor, "ready", lost)
    measured, _ = conductor.against(CASE, lossy, parse("device=lossy", pairs.FLAG), POLICY)
    assert (measured.launches[-1].outcome, measured.launches[-1].reason) == (
        "device_lost",
        f"the arm of {pairs.FLAG}: gone",
    )
    assert conductor._quarantine.launches(CASE) == []
    assert conductor._quarantine.launches(lossy)
