"""Players: the warm-up of a turn, when an arm has enough turns, and its failure."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from compare_play import CASE, A, quick

from ipexperf.compare import players
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import LONG, NEVER_COLD, Stepper, Turn, guarded
from ipexperf.errors import WorkerError
from ipexperf.result import Sample


def stepper(*probes: list[float], arm: Arm = A, **told: Any) -> Stepper:
    """A player with these first steps measured, and this reply."""
    found = Stepper(arm, contextlib.ExitStack())
    found.reply = {"step": 0.001, **told}
    found._probes = list(probes)
    return found


class Answers:
    """A worker that stands in: it takes steps of one length, or fails."""

    def __init__(self, step: float, *, fails: WorkerError | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.killed = False
        self._step, self._fails = step, fails

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        self.asked.append({"do": do, **request})
        if self._fails:
            raise self._fails
        return {"samples": [[self._step, self._step, 0.0]] * request["count"]}

    def kill(self) -> None:
        self.killed = True


def test_steps_that_are_slow_after_another_arms_turn_are_warm_up() -> None:
    """As many as are slower than later ones in most of the probes."""
    cold = [3.0, 1.5, *[1.0] * 10]
    assert stepper(cold, cold, cold).warm_steps() == 2
    assert stepper([1.0] * 12, [1.0] * 12, [1.0] * 12).warm_steps() == 0
    assert stepper(cold, [1.0] * 12, [1.0] * 12).warm_steps() == 0
    assert stepper([2.0, 1.0], [2.0, 1.0]).warm_steps() == 1


def test_a_step_that_is_slow_by_chance_in_the_middle_is_no_warm_up() -> None:
    """Only the first half counts, or an arm could be warmed up for ever."""
    late = [*[1.0] * 9, 5.0, 1.0, 1.0]
    assert stepper(late, late, late).warm_steps() == 0


@pytest.mark.parametrize(("step", "count"), [(0.001, 24), (0.01, 10), (0.02, 5)])
def test_a_look_is_short(step: float, count: int) -> None:
    """24 steps, or as many as there is time for, and at least four. Each is one sample without warm-up."""
    one, answers = stepper(step=step), Answers(step)
    one._worker = answers  # type: ignore[assignment] # what is asked of a worker is all that is needed
    one.probe()
    assert answers.asked == [{"do": "sample", "count": count, "block": 1}]


@pytest.mark.parametrize(("told", "warm"), [({"step": LONG}, 1), ({"step": NEVER_COLD}, 0), ({"cold": True}, 0)])
def test_an_arm_with_long_steps_or_a_cold_start_has_no_look(told: dict[str, Any], warm: int) -> None:
    """A long step is warm-up enough, a very long one needs none, and a cold start has one step."""
    one, answers = stepper(**told), Answers(1.0)
    one._worker = answers  # type: ignore[assignment]
    one.probe()
    assert (answers.asked, one.warm_steps()) == ([], warm)


def turn(wall: float, samples: int = 1, block: int = 1) -> Turn:
    return Turn.of([Sample(wall, wall, 0.0)] * samples, block)


def test_an_arm_has_enough_with_both_the_samples_and_the_seconds() -> None:
    """A few long steps do not suffice, nor do many short ones in an instant."""
    one = stepper(arm=Arm(CASE, quick(samples=4, seconds=1.0)))
    assert not one.enough([turn(0.01, samples=4)])
    assert not one.enough([turn(0.6), turn(0.6)])
    assert one.enough([turn(0.3)] * 4)
    assert one.enough([turn(0.01, samples=2, block=50)] * 2)


def test_a_player_that_fails_is_ended_and_keeps_its_error() -> None:
    """The error does not leave the block."""
    one, died = stepper(), WorkerError("crashed", "killed by SIGSEGV", "a log")
    answers = Answers(1.0, fails=died)
    one._worker = answers  # type: ignore[assignment]
    with guarded(one):
        one.turn()
    assert one.failure is not None
    assert (one.failure.outcome, one.failure.reason) == ("crashed", "arm a: killed by SIGSEGV")
    assert answers.killed
    record = players.failed(one)
    assert (record.outcome, record.reason, record.log) == ("crashed", "arm a: killed by SIGSEGV", "a log")
