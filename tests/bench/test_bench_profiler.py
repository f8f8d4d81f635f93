"""Torch's profiler where a card's kernels cannot be recorded, and where a step makes more calls than memory holds."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_cases import bench, network

from ipexperf.bench import registry
from ipexperf.proof import fingerprint, profiler, tracing

torch = pytest.importorskip("torch")
CPU = registry.devices.get("cpu")
REFUSED = "Fail to enable Kineto Profiler on XPU due to error code: 2"


def calls(events: list[dict[str, Any]]) -> list[str]:
    return [str(event.get("name")) for event in events if event.get("cat") == "cpu_op"]


def addition() -> Any:
    return torch.ones(2) + 1


@pytest.mark.parametrize(("always", "error"), [(False, RuntimeError), (True, RuntimeError), (True, AssertionError)])
def test_operators_are_seen_where_the_library_of_a_card_refuses(
    monkeypatch: pytest.MonkeyPatch, *, always: bool, error: type[Exception]
) -> None:
    """As on drivers that Intel's PTI does not know: it raises once in a process, or whenever kernels are asked for.

    A build of torch without PTI refuses the device.
    """
    real, asked = torch.autograd.profiler.profile, []

    class Refusing(real):
        def __init__(self, *, use_device: str | None, **what: Any) -> None:
            asked.append(use_device)
            super().__init__(**what)

        def __enter__(self) -> Any:
            if len(asked) == 1 or (always and asked[-1]):
                raise error(REFUSED)
            return super().__enter__()

    monkeypatch.setattr(torch.autograd.profiler, "profile", Refusing)
    for device in ("xpu", "cpu", "xpu"):
        assert "aten::add" in calls(profiler.traced(addition, device=device))
    assert asked == ["xpu", None, None, "xpu", *([None] if always else [])]


def many() -> Any:
    """A step of many operators, whose result is known."""
    value = torch.zeros(1)
    for _ in range(20_000):
        value += 1
    return value


class Counted(torch.autograd.Function):
    """Calls operators of torch in its backward pass, where the profiler cannot be ended."""

    @staticmethod
    def forward(context: Any, value: Any) -> Any:
        del context
        return value * 1

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        del context
        return gradient * many()


def in_backward() -> Any:
    value = torch.ones(1, requires_grad=True)
    Counted.apply(value).backward()
    return value.grad


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler, "KEPT", 2**20)
    monkeypatch.setattr(profiler, "_SECONDS", 0.005)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("function", [many, in_backward])
def test_a_step_of_too_many_calls_ends_the_profiler_and_not_the_step(function: Callable[[], Any]) -> None:
    results = []
    before = signal.getsignal(profiler._SIGNAL)
    looks = fingerprint.of_step(lambda: results.append(float(function())), CPU)
    found = fingerprint.capture({"operators": looks["operators"]})
    assert found["missing"] == {"operators": profiler.TOO_MANY}
    assert found["digest"] is None
    assert set(results) == {20_000.0}
    assert signal.getsignal(profiler._SIGNAL) is before
    assert calls(profiler.traced(addition)).count("aten::add") == 1, "nothing of the profiler that was ended is left"


def test_a_step_within_the_limit_keeps_its_events() -> None:
    most, returned = profiler.most(addition)
    assert returned.tolist() == [2, 2]
    assert "aten::add" in calls(profiler.traced(addition, memory=True, most=most))


@pytest.mark.usefixtures("small")
def test_a_trace_of_too_many_calls_tells_the_own_time_of_each_function(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tracing, "CALLS", 0)
    made = bench(network, device=CPU)
    session = made.mode.open(made)
    monkeypatch.setattr(session, "step", many)
    missing = tracing.write(session, CPU, tmp_path)
    assert missing[0].startswith("the order of Python's calls: a step makes ")
    assert missing[1] == f"the trace: {profiler.TOO_MANY}"
    told = json.loads((tmp_path / tracing.SUMMARY).read_text())
    assert told["missing"] == missing
    [calls] = [calls for name, (_, calls) in told["own"].items() if name.endswith("test_bench_profiler.py: many")]
    assert calls == 1
    assert not (tmp_path / tracing.TRACE).exists()
