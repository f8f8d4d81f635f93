"""The pulse: two kernels that are made once, of the dtype that is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench import registry
from ipexperf.bench.evidence import ceilings
from ipexperf.bench.process import pulse
from ipexperf.bench.process.pulse import Pulse


def operators(run: Any) -> dict[str, int]:
    """What torch computes, and how often."""
    with torch.profiler.profile() as seen:
        run()
    return {event.key: event.count for event in seen.key_averages()}


@pytest.mark.parametrize(("dtype", "operator"), [("fp32", "aten::mm"), ("bf16", "aten::mm"), ("int8", "aten::_int_mm")])
def test_a_product_is_of_the_dtype_that_is_asked_for(dtype: str, operator: str) -> None:
    """The operator and the operands that torch tells."""
    trial = pulse.product(registry.devices.get("cpu"), dtype)
    with torch.profiler.profile(record_shapes=True) as seen:
        result = trial.run()
    assert operator in {event.key for event in seen.key_averages()}
    assert result.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int32}[dtype]


def test_where_there_is_no_product_of_a_dtype_fp32_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(ceilings, "integers", refused)
    assert pulse.product(registry.devices.get("cpu"), "int8").run().dtype == torch.float32


@pytest.mark.parametrize(("seconds", "times"), [(0.01, 1), (0.004, 1), (0.0039, 2), (0.00003, 134)])
def test_a_copy_is_made_as_often_as_takes_a_while(seconds: float, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card may be done with one in less time than the call takes. The quickest look counts."""
    looks = iter([seconds * 9, seconds, seconds * 2])
    monkeypatch.setattr(ceilings, "timed", lambda *_: next(looks))
    trial = pulse.copy(registry.devices.get("cpu"))
    assert trial.how == f"a copy of 64 MiB, {times} times"
    assert trial.amount == 2 * pulse.COPIED * times
    assert operators(trial.run)["aten::copy_"] == times


class Kernels:
    """Kernels that do nothing, and take as long as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: Callable[[str], float]) -> None:
        self.made: list[str] = []
        self.ran: list[str] = []
        self.now = 0.0
        self._seconds = seconds
        for name in ("product", "copy"):
            monkeypatch.setattr(pulse, name, self._making(name))
        monkeypatch.setattr(pulse, "perf_counter", lambda: self.now)
        monkeypatch.setattr(pulse, "timed", self._timed)

    def _making(self, name: str) -> Callable[..., ceilings.TimedWork]:
        def make(*_: object) -> ceilings.TimedWork:
            self.made.append(name)
            return ceilings.TimedWork(name, 1.0, lambda: name)

        return make

    def _timed(self, run: Callable[[], str], _: object) -> float:
        self.ran.append(run())
        self.now += 1.0
        return self._seconds(run())


def test_a_reading_is_the_median_of_the_same_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was disturbed is none of its business, and nothing is built between readings."""
    times = {"product": itertools.cycle([9.0, 1.0, 1.0, 2.0, 1.0]), "copy": itertools.cycle([3.0, 3.0, 3.0, 8.0, 8.0])}
    kernels = Kernels(monkeypatch, lambda name: next(times[name]))
    monkeypatch.setattr(pulse, "AWAKE", 0.0)
    felt = Pulse(registry.devices.get("cpu"), "fp32")
    assert felt.read() == felt.read() == {"product": 1.0, "copy": 3.0}
    assert kernels.made == ["product", "copy"]
    assert kernels.ran[:4] == ["product", "copy", "product", "copy"]


def test_what_has_rested_is_woken_before_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By products, for as long as a clock needs to rise; what they take is no part of the reading."""
    kernels = Kernels(monkeypatch, lambda _: 9.0 if len(kernels.ran) <= 4 else 1.0)
    monkeypatch.setattr(pulse, "AWAKE", 4.0)
    felt = Pulse(registry.devices.get("cpu"), "fp32")
    kernels.ran.clear()
    assert felt.read() == {"product": 1.0, "copy": 1.0}
    assert kernels.ran == ["product"] * 4 + ["product", "copy"] * pulse.TIMES
