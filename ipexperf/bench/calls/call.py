"""A call of a function, and the session that steps it. Needs no torch: a suite may have nothing to do with it."""

from __future__ import annotations

import functools
import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipexperf.bench import measure
from ipexperf.bench.api import Captured, Look, Session
from ipexperf.bench.calls import results
from ipexperf.bench.device import Device
from ipexperf.proof import fingerprint
from ipexperf.result import Check

AUTO = "auto"
LONG = 0.1
"""Seconds of a long call."""
ONCE = "is called once a process, as `pedantic` asks for one round: more rounds tell more a minute"


@dataclass(slots=True)
class Call:
    """What a test calls, as `perf` and `benchmark` were told."""

    function: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    setup: Callable[[], Any] | None = None
    """Called before each call, untimed. What it returns are the arguments, if it returns any."""
    teardown: Callable[..., Any] | None = None
    """Called after each call with its arguments, untimed."""
    once: bool = False
    """Whether it may be called only once a process."""
    accelerator: str | None = AUTO
    """The device that it works on and is to be waited for. `auto`: the one that it used. None: none."""
    seconds: list[float] = field(default_factory=list)
    """The samples, in seconds a call."""

    def run(self) -> Any:
        """Call it once, with all that belongs to it."""
        __tracebackhide__ = True
        args, kwargs = self.arguments()
        result = self.function(*args, **kwargs)
        if self.teardown is not None:
            self.teardown(*args, **kwargs)
        return result

    def arguments(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Make the arguments of a call."""
        made = self.setup() if self.setup is not None else None
        if made and (self.args or self.kwargs):
            raise TypeError("`setup` returns the arguments, so `args` and `kwargs` must be left out")
        return made or (self.args, self.kwargs)


class CallSession(Session):
    """A call that is stepped. Its first call made the result, so it is warm."""

    warm_limit = 0.25

    def __init__(self, call: Call) -> None:
        self._call = call
        self.result: Any = None
        self._around = call.setup is not None or call.teardown is not None
        if not (self._around or call.once):
            # No frame of ours: at a function of some nanoseconds it would be most of what is measured.
            self.step = functools.partial(call.function, *call.args, **call.kwargs)  # type: ignore[method-assign]
        if not call.once:
            self.result = call.run()

    def step(self) -> None:
        result = self._call.run()
        if self._call.once:
            self.result = result

    def sample(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, float, float]]:
        if self._around and not self._call.once:
            samples = [self._alone(synchronise, block) for _ in range(count)]
        else:
            samples = measure.sample(self.step, synchronise, count, block)
        self._call.seconds += [wall for wall, _, _ in samples]
        return samples

    def _alone(self, synchronise: Callable[[], None], block: int) -> tuple[float, float, float]:
        """The mean of calls that are timed one by one, because others surround each."""
        wall = cpu = delay = 0.0
        for _ in range(block):
            args, kwargs = self._call.arguments()
            [times] = measure.sample(functools.partial(self._call.function, *args, **kwargs), synchronise, 1, 1)
            if self._call.teardown is not None:
                self._call.teardown(*args, **kwargs)
            wall, cpu, delay = wall + times[0], cpu + times[1], delay + times[2]
        return wall / block, cpu / block, delay / block

    @property
    def generated(self) -> Sequence[str]:
        if "torch._inductor" not in sys.modules:
            return ()
        from ipexperf.proof import compilation

        return compilation.generated(0)

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        return {}, []

    def answers(self) -> dict[str, Any] | None:
        return results.sketch(self.result)

    def notes(self) -> list[str]:
        return [ONCE] if self._call.once else []

    def proof(self) -> list[Check]:
        return []

    def fingerprint(self, device: Device) -> dict[str, Any] | None:
        """Captured once of a long call without torch: that takes as long as dozens of calls."""
        looks = self.looks(device)
        long = min(self._call.seconds, default=0.0) > LONG
        return fingerprint.capture(looks, once=True) if long and looks.keys() == {"python"} else None

    def looks(self, device: Device) -> Mapping[str, Look]:
        if self._call.once:
            return {}
        if "torch" in sys.modules:
            return fingerprint.of_step(self.step, device)
        return {"python": functools.partial(_python, self.step)}


def _python(step: Callable[[], Any]) -> dict[str, Captured | str]:
    """What a call without torch does: how often Python calls, and the most memory that it takes at once."""
    calls = fingerprint.python_calls(step)
    tracemalloc.start()
    try:
        step()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"python": Captured({}, beside={"python": calls, "memory": {"peak": peak}})}
