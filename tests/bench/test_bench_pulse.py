"""The pulse: two kernels that are made once, of the dtype that is asked for."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench import ceilings, pulse, registry  # noqa: E402 - nothing here without torch
from ipexperf.bench.pulse import Pulse  # noqa: E402


def operators(run: Any) -> set[str]:
    """What torch computes."""
    with torch.profiler.profile() as seen:
        run()
    return {event.key for event in seen.key_averages()}


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


def test_a_copy_moves_what_it_says() -> None:
    """All of it, to another place."""
    trial = pulse.copy(registry.devices.get("cpu"))
    copied = trial.run()
    assert copied.nbytes == pulse.COPIED
    assert bool((copied == 1).all())
    assert trial.amount == 2 * pulse.COPIED
    assert "aten::copy_" in operators(trial.run)


def test_a_reading_is_the_median_of_the_same_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was disturbed is none of its business, and nothing is built between readings."""
    made: list[str] = []
    times = {"product": [9.0, 1.0, 1.0, 2.0, 1.0], "copy": [3.0, 3.0, 3.0, 8.0, 8.0]}

    def trial(name: str) -> ceilings.Trial:
        made.append(name)
        return ceilings.Trial(name, 1.0, lambda: None)

    taken: list[str] = []

    def timed(one: ceilings.Trial, *_: Any) -> float:
        taken.append(one.how)
        return times[one.how][(taken.count(one.how) - 1) % pulse.TIMES]

    monkeypatch.setattr(pulse, "product", lambda *_: trial("product"))
    monkeypatch.setattr(pulse, "copy", lambda *_: trial("copy"))
    monkeypatch.setattr(ceilings, "timed", timed)
    felt = Pulse(registry.devices.get("cpu"), "fp32")
    assert felt.read() == felt.read() == {"product": 1.0, "copy": 3.0}
    assert made == ["product", "copy"]
    assert taken[:4] == ["product", "copy", "product", "copy"]
