"""Make one launch in a round of one arm, or one measurement in a group of one case."""

import random
import time
from pathlib import Path
from typing import Any, Self, cast

from ipexperf.bench import loading, registry
from ipexperf.case import NetworkCase
from ipexperf.compare import together
from ipexperf.compare.arm import Arm
from ipexperf.compare.group import GroupRequest, GroupRun
from ipexperf.compare.round import Effort
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import Worker
from ipexperf.plan.groups import Group
from ipexperf.result import Launch, Measurement


class StandIn:
    """Stands where a worker would be. Its `start` takes the place of `Worker`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def start(self, *_: Any, **__: Any) -> Worker:
        return cast("Worker", self)


def launch(
    case: NetworkCase, index: int, conditions: Conditions, *, accuracy: bool, final: bool = True
) -> tuple[Launch, dict[str, Any]]:
    """A launch of the case alone, and the environment that its worker reported."""
    if case.mode not in registry.modes.names():
        loading.load(conditions.settings.load)  # as a command does before it plans
    arm = Arm(case, conditions, index=index, accuracy=accuracy, final=final)
    chance = random.Random(1)  # noqa: S311 - a start order, no secret
    [side] = together.play([arm], Effort(), chance, lambda _: None).results
    return side.launch, dict(side.environment)


def measure(conductor: Conductor, case: NetworkCase, launches: int = 1) -> Measurement:
    """A case that is alone in its group."""
    run = GroupRun(GroupRequest(Group("alone", (case,)), launches), conductor, lambda _: None)
    for _ in run.play():
        """All launches are made."""
    return run.measurements()[case]


def pids(path: Path) -> tuple[int, ...]:
    """Wait until a fake model has told its process and its children."""
    until = time.monotonic() + 30
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return tuple(map(int, path.read_text().split()))
