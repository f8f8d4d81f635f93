"""Players: the warm-up of a turn, when an arm has enough turns, and its failure."""

from __future__ import annotations

import contextlib
from typing import Any

from compare_play import A

from ipexperf.compare.arm import Arm
from ipexperf.compare.players import Stepper


def stepper(*probes: list[float], arm: Arm = A, **told: Any) -> Stepper:
    """A player with these first steps measured, and this reply."""
    found = Stepper(arm, contextlib.ExitStack())
    found.reply = {"step": 0.001, **told}
    found._probes = list(probes)
    return found


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
