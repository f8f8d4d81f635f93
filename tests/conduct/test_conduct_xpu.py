"""A launch on xpu, from the worker's start to its record, with a fake card in the worker."""

import contextlib
from pathlib import Path

import conduct_play
import pytest
from free_machine import FREE

from ipexperf.bench import loading
from ipexperf.case import NetworkCase
from ipexperf.conduct import gate
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan.options import Options

FAKES = Path(__file__).parents[1] / "fakes"
SMALLNET, FAKE_XPU = str(FAKES / "smallnet.py"), str(FAKES / "xpu_here.py")

pytestmark = pytest.mark.torch


@pytest.mark.process
def test_a_launch_on_xpu_is_measured_proven_and_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is pinned to the card that was asked for, and the record says which it was and what was proven."""
    monkeypatch.setenv("ZE_AFFINITY_MASK", "4,6")
    monkeypatch.setattr(gate, "POLICY", FREE)
    loading.load((SMALLNET,))
    options = Options(
        load=(SMALLNET, FAKE_XPU), indices={"xpu": 1}, samples=5, seconds=0.05, without=("roof",), cache=tmp_path
    )
    case = NetworkCase("smallnet", "xpu", "fp32", "infer", "stock", 16, 8, 1, "digits")
    with contextlib.closing(Conductor(options, tmp_path, lambda _: None, policy=FREE)) as conductor:
        found = conduct_play.measure(conductor, case)
    assert found.failure == ""
    assert found.invalid == ""
    [launch] = found.launches
    assert {"device", "input", "arithmetic", "synchronised", "fallbacks"} <= {check.name for check in launch.proof}
    accelerator = found.environment["hardware"]["accelerator"]
    assert accelerator["properties"] == "Intel(R) Arc(TM) A770 Graphics"
    assert accelerator["pinned"] == "ZE_AFFINITY_MASK=6"
    assert found.environment["software"]["accelerator"] == {"driver": "1.6.32567+18"}
    assert found.environment["variables"]["ZE_AFFINITY_MASK"] == "6"
    assert found.environment["machine_key"].startswith("intel-arc-a770")
    assert launch.metrics["peak_memory"] > 0
    assert {"device_time", "reserved_memory"} <= set(launch.metrics)
    assert "the system does not report the clock rate of the xpu device" in launch.notes
    assert any("memory fragments or leaks" in note for note in launch.notes)
