"""Workers beside one another, and models that leave the cores that they were given. Loaded beside `fake.py`."""

import os
import time
from collections.abc import Sequence

from ipexperf.bench import registry
from ipexperf.bench.api import Mode
from ipexperf.bench.machine.placement import allowed
from ipexperf.case import Case

Spin = type(registry.modes.get("spin"))


class Beside(Spin):  # type: ignore[misc, valid-type] # it is known only where the fakes are loaded
    """As many workers as the knob says, each with one core."""

    name = "beside"
    batch = 1

    def shares(self, case: Case, cores: Sequence[int]) -> list[tuple[int, ...]]:
        return [(core,) for core in cores[:2]]


beside: Mode = Beside()
registry.modes.add("beside", beside)


def model(name: str):  # type: ignore[no-untyped-def] # the decorator of a registry that is typed there
    return registry.model(name, size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)


def spin() -> int:
    return sum(number * number for number in range(2_000))


@model("mover")
def mover():  # type: ignore[no-untyped-def]
    """Stays where it was put until it is stepped, then takes every core there is."""

    def step() -> int:
        os.sched_setaffinity(0, allowed())
        return spin()

    return step


@model("half_dead")
def half_dead():  # type: ignore[no-untyped-def]
    """Dies in the instance that has the last core, once it was stepped for a while."""
    begin = time.monotonic()

    def step() -> int:
        if os.sched_getaffinity(0) != {min(allowed())} and time.monotonic() - begin > 0.3:
            os._exit(3)
        return spin()

    return step
