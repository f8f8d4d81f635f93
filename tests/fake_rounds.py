"""Rounds without workers: what each arm takes is said, and what becomes of that is looked at."""

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any

import pytest

from ipexperf.compare import together
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import ArmResult, Effort, Round
from ipexperf.conduct import launch
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.forking import FRESH
from ipexperf.errors import WorkerError
from ipexperf.result import Check, Launch, Sample

WHERE: Mapping[str, Any] = {"machine_key": "fake-2c", "hardware": {}, "software": {}, "variables": {}}


def played(
    monkeypatch: pytest.MonkeyPatch,
    seconds: Callable[[Arm], float],
    *checks: Check,
    wrong: Mapping[str, Sequence[Check]] = MappingProxyType({}),
    environment: Mapping[str, Any] = WHERE,
    beside: Callable[[Arm], Mapping[str, float]] = lambda _: {},
) -> list[list[Arm]]:
    """Lets each arm of a round take so many seconds a step, or fail. Returns the arms of each round, as they come.

    `checks` are what every arm finds of itself that is asked for its proof, and `wrong` what the arms of a name find.
    `beside` has the other metrics of an arm.
    """
    rounds: list[list[Arm]] = []

    def side(arm: Arm) -> ArmResult:
        try:
            time = seconds(arm)
        except WorkerError as error:
            blamed = arm.blamed(error)
            ended = launch.how_it_ended(blamed, arm.conditions.accelerator)
            return ArmResult(arm, Launch(arm.index, *ended, log=error.log), environment, error=blamed)
        one = Launch(arm.index, "ok", samples=(Sample(time, time, 0.0),), metrics={"step_time": time, **beside(arm)})
        found = (*checks, *wrong.get(arm.name, ())) if arm.prove else ()
        return ArmResult(arm, dataclasses.replace(one, proof=found), environment, ((time,),))

    def play(arms: Sequence[Arm], effort: Effort, chance: random.Random, say: Callable[[str], None]) -> Round:
        del effort, chance, say
        rounds.append(list(arms))
        return Round(tuple(side(arm) for arm in arms), "together", "2026-11-22T12:00:00.000+00:00", turns=1)

    monkeypatch.setattr(together, "play", play)
    monkeypatch.setattr(Conductor, "forking", lambda *_: nullcontext(FRESH))
    return rounds
