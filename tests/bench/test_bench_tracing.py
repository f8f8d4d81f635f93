"""What a step did, call by call: nested by time, its own times, who allocates, and the same without torch."""

import json
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.proof import tracing


def event(name: str, begin: float, length: float, kind: str = "cpu_op", thread: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": kind, "name": name, "ts": begin, "dur": length, "tid": thread}


def memory(begin: float, size: int) -> dict[str, Any]:
    return {"ph": "i", "name": "[memory]", "ts": begin, "tid": 1, "args": {"Bytes": size, "Device Type": 0}}


EVENTS = [
    event(tracing.STEP, 0, 100, "user_annotation"),
    event("nets.py(12): forward", 1, 90, "python_function"),
    event("aten::conv2d", 10, 50),
    event("aten::copy_", 20, 20),
    memory(25, 4096),
    memory(30, -4096),
    event("void kernel<float>(int)", 30, 40, "kernel", 7),
    event("outside", 200, 5),
]


def test_calls_are_nested_by_their_times_and_keep_their_own() -> None:
    made = tracing.summarised(EVENTS, 1)
    (step, seconds, calls, [forward]), device = made["flames"]
    assert (step, calls) == (tracing.STEP, 1.0)
    assert seconds == pytest.approx(100e-6)
    assert forward[0] == "nets.py: forward"
    assert [node[0] for node in forward[3]] == ["aten::conv2d"]
    assert [node[0] for node in forward[3][0][3]] == ["aten::copy_"]
    assert device[0] == tracing.ON_DEVICE
    assert made["allocated"] == {"aten::copy_ in nets.py: forward": [4096.0, 1.0]}


def test_the_own_times_are_those_of_the_device_if_there_is_one() -> None:
    """The host mostly waits for it."""
    host = [one for one in EVENTS if one.get("cat") != "kernel"]
    own = {name: round(seconds * 1e6) for name, (seconds, _) in tracing.summarised(host, 1)["own"].items()}
    assert own == {"nets.py: forward": 40, "aten::conv2d": 30, "aten::copy_": 20}
    assert list(tracing.summarised(EVENTS, 1)["own"]) == ["kernel"]


def test_names_keep_what_is_the_users_and_lose_what_moves() -> None:
    def named(name: str) -> str:
        return tracing.named({"cat": "python_function", "name": name})

    assert named("nets.py(12): layer_1") == "nets.py: layer_1"
    assert named("nn.Module: Conv2d_3") == "nn.Module: Conv2d"
    assert named("<built-in method add of type object at 0x7f00>") == "<built-in method add>"


def test_several_steps_are_told_as_one() -> None:
    again = [{**one, "ts": one["ts"] + 1000} for one in EVENTS[:3]]
    made = tracing.summarised([*EVENTS[:3], *again], 2)
    assert made["flames"][0][1:3] == pytest.approx([100e-6, 1.0])
    assert made["own"]["aten::conv2d"] == pytest.approx([50e-6, 1.0])


def test_without_torch_the_calls_of_python_are_the_trace() -> None:
    def inner() -> int:
        return sum(range(100))

    def outer() -> int:
        return inner() + len(sorted(range(50_000)))

    made = tracing.summarised(tracing.python_events(outer, 3), 3)
    names = [node[0] for node in made["flames"][0][3]]
    assert len(names) == 1
    assert names[0].endswith(": outer")
    assert {node[0] for node in made["flames"][0][3][0][3]} >= {"<built-in sorted>"}
    assert [calls for name, (_, calls) in made["own"].items() if name.endswith(": inner")] == [1.0]


@pytest.mark.torch
def test_a_real_step_is_written_with_its_log_and_its_batch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from bench_cases import bench, network

    made = bench(network, device=registry.devices.get("cpu"))
    session = made.mode.open(made)
    assert tracing.write(session, made.device, tmp_path) == []
    told = json.loads((tmp_path / tracing.SUMMARY).read_text())
    assert any(name.startswith("aten::") for name in told["own"])
    assert (tmp_path / tracing.TRACE).stat().st_size > 0
    assert "convolution" in (tmp_path / tracing.LOG).read_text()
    assert torch.load(tmp_path / tracing.BATCH)["inputs"][0].shape == (16, 3, 8, 8)
