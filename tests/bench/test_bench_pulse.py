"""The pulse: two kernels that are made once, of the dtype that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench import loading, registry
from ipexperf.bench.evidence import ceilings
from ipexperf.bench.machine import placement
from ipexperf.bench.process import pulse
from ipexperf.bench.process.pulse import Pulse
from ipexperf.bench.process.worker import Worker


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
def test_a_copy_is_made_as_often_as_takes_a_while(seconds: float, times: int) -> None:
    """A card may be done with one in less time than the call takes. The quickest look counts."""
    looks = iter([seconds * 9, seconds, seconds * 2])
    trial = pulse.copy(registry.devices.get("cpu"), timed=lambda *_: next(looks))
    assert trial.how == f"a copy of 64 MiB, {times} times"
    assert trial.amount == 2 * pulse.COPIED * times
    assert operators(trial.run)["aten::copy_"] == times


def test_a_reading_is_the_median_of_the_same_kernels() -> None:
    """One that was disturbed is none of its business, and nothing is built between readings."""
    made: list[str] = []
    times = {"product": [9.0, 1.0, 1.0, 2.0, 1.0], "copy": [3.0, 3.0, 3.0, 8.0, 8.0]}

    def making(name: str) -> Callable[..., ceilings.TimedWork]:
        def make(*_: object) -> ceilings.TimedWork:
            made.append(name)
            return ceilings.TimedWork(name, 1.0, lambda: None)

        return make

    taken: list[str] = []

    def timed(one: ceilings.TimedWork, *_: Any) -> float:
        taken.append(one.how)
        return times[one.how][(taken.count(one.how) - 1) % pulse.TIMES]

    kernels = {name: making(name) for name in times}
    felt = Pulse(registry.devices.get("cpu"), "fp32", kernels=kernels, awake=0.0, timed=timed)
    assert felt.read() == felt.read() == {"product": 1.0, "copy": 3.0}
    assert made == ["product", "copy"]
    assert taken[:4] == ["product", "copy", "product", "copy"]


def test_what_has_rested_is_woken_before_it_is_timed() -> None:
    """By products, for as long as a clock needs to rise; what they take is no part of the reading."""
    clock, done = [0.0], []

    def timed(one: ceilings.TimedWork, *_: Any) -> float:
        done.append(one.how)
        clock[0] += 1.0
        return 9.0 if len(done) <= 4 else 1.0

    trials = {name: ceilings.TimedWork(name, 1.0, lambda: None) for name in ("product", "copy")}
    kernels = {name: lambda *_, trial=trial: trial for name, trial in trials.items()}
    cpu = registry.devices.get("cpu")
    felt = Pulse(cpu, "fp32", kernels=kernels, awake=4.0, timed=timed, clock=lambda: clock[0])
    done.clear()
    assert felt.read() == {"product": 1.0, "copy": 1.0}
    assert done == ["product"] * 4 + ["product", "copy"] * pulse.TIMES


class Said:
    """A pulse that says what it is of."""

    def __init__(self, *names: str) -> None:
        self._name = " ".join(names)

    def read(self) -> dict[str, float]:
        return {self._name: 1.0}


def test_the_process_is_placed_once_and_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is imported finds the cores of the cases. Another dtype is another product, made in the same place."""
    done: list[tuple[str, Any]] = []
    cpu = registry.devices.get("cpu")
    monkeypatch.setattr(placement, "apply", lambda asked: done.append(("placed", asked)))
    monkeypatch.setattr(loading, "load", lambda names: done.append(("loaded", names)))
    monkeypatch.setattr(type(cpu), "start", lambda _, settings: done.append(("threads", settings.threads)))
    monkeypatch.setattr(pulse, "Pulse", lambda device, dtype: Said(device.name, dtype))
    worker = Worker(lambda _: None)
    request = {"device": "cpu", "load": ["mine.py"], "placement": {"cores": [1]}, "threads": 1}
    assert worker.pulse({**request, "dtype": "fp32"}) == {"seconds": {"cpu fp32": 1.0}}
    assert worker.pulse({**request, "dtype": "bf16", "threads": 9}) == {"seconds": {"cpu bf16": 1.0}}
    assert done == [("placed", {"cores": [1]}), ("loaded", ("mine.py",)), ("threads", 1)]
