"""Arms that take turns: one that fails ends alone, and a disturbance of one drops the turns of all."""

import contextlib
import itertools
import math
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compare_play import BUSY, CASE, A, Scripted, Sent, case, play, quick

from ipexperf.bench import loading
from ipexperf.compare import together
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import WorkerPlayer
from ipexperf.compare.round import Effort, Round
from ipexperf.compare.together import LEAST
from ipexperf.conduct import gate
from ipexperf.conduct.watch import MachineLoad
from ipexperf.result import Sample

pytestmark = pytest.mark.process

FAKES = Path(__file__).parents[1] / "fakes"
OBEDIENT, COLD = (str(FAKES / name) for name in ("obedient.py", "cold.py"))
DTYPES = ("fp32", "bf16", "fp16")
MIB = 2**20


class Quiet:
    """A watch that looks after each rotation: what says that it was busy is told beforehand."""

    def __init__(self, busy: Callable[[int], bool]) -> None:
        self.looked = 0
        self.due = True
        self._busy = busy

    def begin(self, *workers: int) -> None: ...

    def stretch(self, samples: Sequence[Sample]) -> MachineLoad:
        del samples
        self.looked += 1
        return MachineLoad(1.0, {"others": 0.5}, BUSY if self._busy(self.looked - 1) else "")

    def end(self) -> dict[str, tuple[dict[str, float], str]]:
        return {}


def scripted(
    monkeypatch: pytest.MonkeyPatch, *times: Callable[[int], float], busy: Callable[[int], bool] = lambda _: False
) -> list[Scripted]:
    """Replaces arms by scripts: turn k takes as long as given, and the machine is busy in rotation k if given."""
    found: list[Scripted] = []

    def player(arm: Arm, _: contextlib.ExitStack) -> Scripted:
        found.append(Scripted(arm, times[len(found)]))
        return found[-1]

    monkeypatch.setattr(together, "new_player", player)
    monkeypatch.setattr(together, "Watch", lambda _: Quiet(busy))
    return found


def rounds_of(number: int, effort: Effort) -> Round:
    return play(*(replace(A, name=f"arm {place}") for place in range(number)), effort=effort)


FOUR = Effort(turns=4, most=4)


def test_each_arm_has_its_turns_and_the_ratio_is_that_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that becomes slower and slower slows all arms, and not the ratio of two."""
    scripted(monkeypatch, *(lambda turn, times=times: times * 2.0**turn for times in (1.0, 3.0, 1.0)))  # type: ignore[misc]
    found = rounds_of(3, FOUR)
    assert [side.times for side in found.results[:2]] == [((1.0, 2.0, 4.0, 8.0),), ((3.0, 6.0, 12.0, 24.0),)]
    assert found.log_ratio(0, 1) == pytest.approx(math.log(3))
    assert found.log_ratio(1, 0) == pytest.approx(-math.log(3))
    assert found.log_ratio(0, 2) == 0.0
    assert (found.schedule, found.turns, found.dropped, found.busy) == ("together", 4, 0, False)


def test_who_takes_memory_first_alternates_from_round_to_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one arm would have the pieces that others left in every pair."""
    told: list[str] = []
    monkeypatch.setattr(Scripted, "warm", lambda self: told.append(self.arm.name))
    for number in range(3):
        scripted(monkeypatch, lambda _: 1.0, lambda _: 1.0)
        play(*(replace(A, name=name, index=number) for name in "ab"), effort=FOUR)
    assert told == ["a", "b", "b", "a", "a", "b"]


def test_turns_go_on_until_the_ratios_are_precise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noisy arms have the most turns, and quiet ones the least."""
    noise = itertools.cycle((1.0, 1.3, 0.8))
    for second, turns in ((lambda _: 1.0, 4), (lambda _: next(noise), 9)):
        scripted(monkeypatch, lambda _: 1.0, second)
        assert rounds_of(2, Effort(turns=4, most=9)).turns == turns


@pytest.mark.parametrize("wish", [{"samples": 40}, {"seconds": 1.0}])
def test_turns_go_on_until_each_arm_has_the_samples_and_seconds_that_were_asked_for(
    wish: dict[str, Any], arms: Callable[..., list[Arm]]
) -> None:
    """The maximum of turns limits only those for precision."""
    found = play(*arms("tiny", "tiny", **{"seconds": 0.5, **wish}), effort=Effort(turns=2, most=3, seconds=0.02))
    assert found.turns > 3
    for side in found.results:
        assert len(side.launch.samples) >= wish.get("samples", 1)
        sampled = sum(sample.wall for sample in side.launch.samples) * side.launch.block
        assert sampled >= wish.get("seconds", 0.0)
        assert side.launch.fewer == ""


def test_a_fixed_number_of_turns_overrides_samples_and_seconds(arms: Callable[..., list[Arm]]) -> None:
    assert play(*arms("tiny", "tiny", samples=40, seconds=5.0), effort=Effort(turns=3, most=3)).turns == 3


def test_slow_steps_have_two_turns(arms: Callable[..., list[Arm]]) -> None:
    """Whatever else was asked for: a function of a minute would take hours."""
    slow = Effort(turns=4, most=9, slow=1e-9)
    assert play(*arms("tiny", "tiny", samples=40, seconds=5.0), effort=slow).turns == 2


def test_contended_stretches_drop_the_turns_of_every_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a disturbance of one arm would look like its slowdown."""
    busy = {1, 3}
    scripted(
        monkeypatch,
        lambda _: 1.0,
        lambda turn: 20.0 if turn in busy else 2.0,
        busy=lambda rotation: rotation in busy,
    )
    found = rounds_of(2, FOUR)
    assert found.log_ratio(0, 1) == pytest.approx(math.log(2))
    assert (found.turns, found.dropped, found.busy) == (4, 2, False)
    for side in found.results:
        assert len(side.times[0]) == len(side.launch.samples) == 4
        assert side.launch.contended == ""
        assert side.launch.notes == (f"dropped 2 of 6 turns, as did its neighbours: {BUSY}",)
        assert (side.launch.gate["turns"], side.launch.gate["turns_dropped"], side.launch.gate["arms"]) == (4, 2, 2)


@pytest.mark.parametrize(
    ("probes", "warm"),
    [
        ([[3.0, 1.5, *[1.0] * 10]] * 3, 2),
        ([[3.0, 1.5, *[1.0] * 10], [1.0] * 12, [1.0] * 12], 0),
        ([[2.0, 1.0]] * 2, 1),
        ([[*[1.0] * 9, 5.0, 1.0, 1.0]] * 3, 0),
    ],
    ids=["in each", "in one of three", "of few steps", "by chance in the middle"],
)
def test_steps_that_are_slow_after_another_arms_turn_are_warm_up(probes: list[list[float]], warm: int) -> None:
    """As many as are slower than later ones in most of the probes. Only the first half counts, so warm-up ends."""
    player = WorkerPlayer(A, contextlib.ExitStack())
    player.reply = {"step": 0.001}
    player._probes = probes
    assert player.warm_steps() == warm


def test_if_too_few_turns_count_all_do_and_the_launch_is_contended(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it has numbers, and a reason."""
    scripted(monkeypatch, lambda _: 1.0, lambda _: 2.0, busy=lambda rotation: rotation > 0)
    found = rounds_of(2, FOUR)
    assert found.busy
    assert (found.turns, found.dropped) == (1, 2 * FOUR.most - 1)
    for side in found.results:
        assert side.launch.contended == BUSY
        assert len(side.times[0]) == 2 * FOUR.most
    assert found.log_ratio(0, 1) == pytest.approx(math.log(2))


def test_patience_ends_the_turns_of_slow_arms_after_at_least_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """After twelve times the seconds that were asked for."""
    monkeypatch.setattr(together, "PATIENCE", 0)
    scripted(monkeypatch, lambda _: 1.0, lambda _: 2.0)
    assert rounds_of(2, Effort(turns=50, most=99)).turns == LEAST


def test_a_time_of_zero_gives_no_ratio_and_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, lambda _: 1.0, lambda turn: math.inf if turn == 2 else 1.0)
    found = rounds_of(2, FOUR)
    assert math.isnan(found.log_ratio(0, 1))
    assert "a turn has no valid time" in found.results[1].launch.notes
    assert found.results[0].launch.notes == ()


@pytest.fixture
def arms(fake: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Arm]]:
    """Real workers, one of each dtype, in rounds that no busy machine ends early."""
    monkeypatch.setattr(together, "PATIENCE", 1000)
    load = (fake, OBEDIENT, COLD)
    loading.load(load)

    def arms(*models: str, **more: Any) -> list[Arm]:
        conditions = quick(*load, **more)
        return [Arm(case(model, dtype), conditions) for model, dtype in zip(models, DTYPES, strict=False)]

    return arms


def test_workers_that_are_alive_together_take_turns_in_a_balanced_order(
    arms: Callable[..., list[Arm]], sent: Sent, gone: Callable[[int], bool]
) -> None:
    """Each rotation has one turn of each, each follows each other equally often, and the turns of an arm are equal."""
    found = play(*arms("tiny", "tiny", "tiny"), effort=Effort(turns=6, most=6, seconds=0.01))
    turns = [(pid, request) for pid, do, request in sent.requests if do == "sample" and "warm" in request]
    assert len(turns) == 18
    rotations = [[sent.names[pid] for pid, _ in turns[at : at + 3]] for at in range(0, 18, 3)]
    assert all(sorted(rotation) == sorted(DTYPES) for rotation in rotations)
    follows = Counter(neighbours for rotation in rotations for neighbours in itertools.pairwise(rotation))
    assert set(follows.values()) == {2}
    assert len(follows) == 6
    assert len({(pid, request["block"]) for pid, request in turns}) == 3
    assert all(len(side.times[0]) == 6 for side in found.results)
    assert sent.of("warm") == sorted(sent.of("warm"), key=DTYPES.index)
    assert len(sent.names) == 3
    assert all(gone(pid) for pid in sent.names)


def test_workers_build_one_at_a_time(arms: Callable[..., list[Arm]], sent: Sent) -> None:
    """They import at the same time. Two builds at once would share the cores and slow each other down."""
    play(*arms("tiny", "tiny"))
    starts = [do for _, do, _ in sent.requests if do in ("begin", "prepare", "environment")]
    assert starts == ["begin", "begin", "prepare", "environment", "prepare", "environment"]


def test_arms_with_known_warm_steps_have_no_look(arms: Callable[..., list[Arm]], sent: Sent) -> None:
    """Each turn begins with as many as an earlier round found, or with one more."""
    known = [replace(arm, warm=2) for arm in arms("tiny", "tiny")]
    found = play(*known, effort=Effort(turns=6, most=6, seconds=0.01))
    samples = [request for _, do, request in sent.requests if do == "sample"]
    assert {request.get("warm") for request in samples} <= {2, 3}
    assert {side.launch.gate["turn_warm"] for side in found.results} == {2.0}


def test_each_arm_of_a_round_is_a_launch(arms: Callable[..., list[Arm]]) -> None:
    """Real workers: both have numbers, proof and accuracy, and the same figures of the machine."""
    found = play(*(replace(arm, index=3, accuracy=True) for arm in arms("tiny", "other")))
    for side in found.results:
        assert (side.launch.index, side.launch.outcome, side.launch.notes) == (3, "ok", ())
        assert len(side.launch.samples) >= 4
        assert side.launch.metrics["step_time"] > 0
        assert side.launch.metrics["accuracy"] == 1.0
        assert [check.name for check in side.launch.proof] == ["dtype"]
        assert side.environment["machine_key"]
    first, second = (side.launch.gate for side in found.results)
    assert {name: first[name] for name in ("others", "steal")} == {name: second[name] for name in ("others", "steal")}
    assert math.isfinite(found.log_ratio(0, 1))


@pytest.mark.parametrize(
    ("told", "outcome", "reason"),
    [
        ("raise", "error", "it had enough"),
        ("hang", "timed_out", "no reply within 4 s"),
        ("die", "crashed", "killed by SIGKILL"),
    ],
)
def test_an_arm_that_fails_in_the_middle_of_a_round_ends_alone(
    told: str,
    outcome: str,
    reason: str,
    arms: Callable[..., list[Arm]],
    sent: Sent,
    gone: Callable[[int], bool],
    tmp_path: Path,
) -> None:
    """However it fails: it is named and killed, and the others have their turns, launches and proof."""
    sign = tmp_path / "sign"
    one, bad, other = arms("tiny", "obedient", "tiny", variables={"FAKE_SIGN": str(sign)}, memory=400 * MIB)
    bad = replace(bad, name="the bad one", conditions=replace(bad.conditions, timeout=4.0 if told == "hang" else 60.0))

    def act(dtype: str, do: str, earlier: int, pid: int) -> None:
        # Its probes are over by then, and so are a few turns of each.
        if (dtype, do, earlier) != (bad.case.axes["dtype"], "sample", 6):
            return
        if told == "die":
            os.kill(pid, signal.SIGKILL)
        else:
            sign.write_text(told)

    sent.before = act
    found = play(one, bad, other, effort=Effort(turns=12, most=12, seconds=0.01))
    first, failed, last = found.results
    assert (failed.launch.outcome, failed.launch.samples, failed.times) == (outcome, (), ())
    assert failed.launch.reason.startswith(f"the bad one: {reason}")
    for side in (first, last):
        assert (side.launch.outcome, side.error) == ("ok", None)
        assert [check.ok for check in side.launch.proof] == [True]
        assert side.launch.samples
    assert len(first.times[0]) == len(last.times[0]) == found.turns
    assert math.isfinite(found.log_ratio(0, 2))
    assert all(gone(pid) for pid in sent.names)


@pytest.mark.parametrize(
    "filling",
    [
        [{"room": 0.5}, {"room": 0.03}, {"room": 0.5}, {"room": 0.03}],
        [{"room": 1.0, "taken": 0.4}, {"room": 1.0, "taken": 0.57}, {"room": 1.0, "taken": 0.4}, {"taken": 0.97}],
    ],
)
def test_an_arm_that_fills_its_card_beside_others_is_out_of_memory(
    arms: Callable[..., list[Arm]], monkeypatch: pytest.MonkeyPatch, filling: list[dict[str, float]]
) -> None:
    """Some drivers move memory to the host instead of refusing it. Alone it may have all of the card.

    Not all drivers tell how much is free, so what the arms have is added up.
    """
    rooms = iter(filling)
    warm = WorkerPlayer.warm

    def told(player: WorkerPlayer) -> None:
        warm(player)
        player.reply |= next(rooms)

    monkeypatch.setattr(WorkerPlayer, "warm", told)
    found = play(*arms("tiny", "tiny", "tiny"))
    assert [side.launch.outcome for side in found.results] == ["ok", "out_of_memory", "ok"]
    reason = "3 % of the memory of the fake device is left beside the other arms of its round"
    assert found.results[1].launch.reason.endswith(reason)
    assert play(*arms("tiny")).results[0].launch.outcome == "ok"


def test_the_worker_that_grew_is_killed_and_not_the_one_that_is_waited_for(
    arms: Callable[..., list[Arm]], sent: Sent, tmp_path: Path
) -> None:
    """The limit is for the memory of all together."""
    sign = tmp_path / "sign"
    variables = {"FAKE_SIGN": str(sign)}
    grown, waiting = arms("obedient", "hang", variables=variables, timeout=5.0, memory=400 * MIB)

    def act(dtype: str, do: str, *_: int) -> None:
        # The other hangs in its first step: the one that is warm grows while nobody asks it.
        if (dtype, do) == (waiting.case.axes["dtype"], "warm"):
            sign.write_text("grow")

    sent.before = act
    found = play(grown, waiting)
    assert found.results[0].launch.outcome == "out_of_memory"
    assert found.results[0].launch.reason.endswith(", together with the other arms of its round")
    assert found.results[1].launch.reason == "no reply within 5 s"


def test_a_cold_start_has_one_step_however_busy_the_machine_is(
    arms: Callable[..., list[Arm]], sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second step would not be cold. The launch has a note."""
    monkeypatch.setattr(gate, "contended", lambda *_: BUSY)
    [arm] = arms("tiny")
    [side] = play(replace(arm, case=replace(CASE, mode="start"))).results
    assert (len(sent.of("sample")), sent.of("warm")) == (1, [])
    assert (len(side.launch.samples), side.launch.contended) == (1, BUSY)
    assert side.launch.proof[0].ok
