"""A lost device has its own outcome, and nothing more is launched on it in the run."""

from collections.abc import Callable
from pathlib import Path

import conduct_play
import pytest
from free_machine import FREE

from ipexperf.bench import loading, outcome
from ipexperf.case import NetworkCase
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan.options import Options
from ipexperf.result import Measurement

pytestmark = pytest.mark.process

LOSERS = str(Path(__file__).parents[1] / "fakes" / "losers.py")


def case(model: str, device: str = "lossy") -> NetworkCase:
    return NetworkCase(model, device, "fp32", "spin", "plain", 1, 1, 1, "none")


@pytest.fixture
def measure(fake: str, tmp_path: Path) -> Callable[[NetworkCase], Measurement]:
    """Measures case after case in one run of two launches a case."""
    load = (fake, LOSERS)
    loading.load(load)
    options = Options(load=load, samples=5, seconds=0.05, timeout=60, cache=tmp_path)
    conductor = Conductor(options, tmp_path, lambda _: None, policy=FREE)
    return lambda case: conduct_play.measure(conductor, case, launches=2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)", "device_lost"),
        ("Native API failed. Native API returns: ZE_RESULT_ERROR_DEVICE_LOST", "device_lost"),
        ("CUDA error: device-side assert triggered", "device_lost"),
        ("CUDA error: unspecified launch failure", "device_lost"),
        ("CUDA error: uncorrectable ECC error encountered", "device_lost"),
        ("Unable to determine the device handle: GPU is lost. Reboot the system", "device_lost"),
        ("OutOfMemoryError: XPU out of memory. Tried to allocate 4.66 GiB.", "out_of_memory"),
        ("level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "out_of_memory"),
        ("CUDA error: out of memory", "out_of_memory"),
        ("OutOfMemoryError, then UR_RESULT_ERROR_DEVICE_LOST", "device_lost"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied", None),
    ],
)
def test_messages_of_a_lost_device_are_recognised(text: str, told: str | None) -> None:
    """Those of Level Zero, Unified Runtime and CUDA, also after a message that memory was full."""
    assert outcome.indicated(text) == told


@pytest.mark.parametrize(
    ("model", "ended"), [("loses", "device_lost"), ("aborts_lost", "device_lost"), ("aborts_full", "out_of_memory")]
)
def test_a_lost_device_is_recognised_however_the_worker_ends(
    measure: Callable[[NetworkCase], Measurement], model: str, ended: str
) -> None:
    """By an exception in Python, or by the log of a process that C++ ended."""
    (launch,) = measure(case(model)).launches
    assert launch.outcome == ended
    assert "UR_RESULT_ERROR" in launch.reason


@pytest.mark.torch
def test_a_device_that_went_away_after_the_plan_is_lost(
    measure: Callable[[NetworkCase], Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when the run was planned: one sentence, no other device, and no second try."""
    monkeypatch.setenv("ZE_AFFINITY_MASK", "7")  # whatever card there is, it is not this one
    (launch,) = measure(case("tiny", "xpu")).launches
    assert launch.outcome == "device_lost"
    assert launch.reason.endswith("; nothing was run on another device instead")
    assert "Traceback" not in launch.reason
    assert launch.samples == ()
    later = measure(case("spinner", "xpu"))
    assert later.failure.endswith("lost it: not launched")
