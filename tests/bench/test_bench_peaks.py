"""Peak rates: the best of many tries counts, and a dtype that is not multiplied has none."""

import os
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench import measure, registry
from ipexperf.bench.cell import Settings
from ipexperf.bench.device import Device
from ipexperf.dtypes import DTYPES
from ipexperf.proof import peaks
from ipexperf.proof.peaks import TimedWork

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")


class Clock:
    """Moves on by what was done, which takes as long as the test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def trial(self, *seconds: float) -> TimedWork:
        """Ten operations that take so long, in turns."""
        turns: Iterator[float] = iter(seconds * 1000)

        def run() -> None:
            self.now += next(turns)

        return TimedWork(10.0, run)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(peaks, "perf_counter", made)
    monkeypatch.setattr(measure, "perf_counter", made)
    return made


def nothing() -> None: ...


def test_what_disturbs_only_lowers_and_the_best_try_counts(clock: Clock) -> None:
    trials = {"fp32": [clock.trial(5.0, 5.0, 1.0, 5.0), clock.trial(2.0)]}
    assert peaks.best(trials, nothing) == {"fp32": 10.0}


@pytest.mark.parametrize(("seconds", "all_tries"), [(0.01, peaks.SECONDS), (10.0, 10.0 * peaks.ROUNDS)])
def test_tries_are_spread_over_seconds_and_are_several_however_slow(
    clock: Clock, seconds: float, all_tries: float
) -> None:
    """A moment's contention is outlasted, and one slow try is not taken for the truth."""
    peaks.best({"fp32": [clock.trial(seconds)]}, nothing)
    assert clock.now == pytest.approx(all_tries, abs=0.1)


def cpu() -> Device:
    device = registry.devices.get("cpu")
    device.start(Settings(threads=1))
    return device


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "SIZES", (32,))
    monkeypatch.setattr(peaks, "SECONDS", 0.0)
    monkeypatch.setattr(peaks, "ROUNDS", 1)


@pytest.mark.usefixtures("quick")
def test_every_dtype_has_a_peak_on_a_cpu() -> None:
    found = peaks.measure(cpu())
    assert set(found) == set(DTYPES)
    assert min(found.values()) > 0


@pytest.mark.usefixtures("quick")
def test_every_way_to_multiply_is_there_on_a_cpu() -> None:
    """A way that torch no longer has would lower a peak in silence."""
    found = {dtype: list(peaks._products(cpu(), dtype)) for dtype in DTYPES}
    assert len(found["fp32"]) == len(found["int8"]) == 3, found
    # oneDNN packs no weights in a dtype that the processor does not have: one may have bf16 and no fp16.
    assert len(found["bf16"]) == 2 + torch.ops.mkldnn._is_mkldnn_bf16_supported(), found
    assert len(found["fp16"]) == 2 + torch.ops.mkldnn._is_mkldnn_fp16_supported(), found


@pytest.mark.usefixtures("quick")
def test_a_dtype_without_a_product_has_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(device: Device, dtype: str, size: int) -> TimedWork:
        raise RuntimeError('"addmm" not implemented for this')

    monkeypatch.setattr(peaks, "QUANTISED", (none,))
    assert set(peaks.measure(cpu())) == set(DTYPES) - {"int8"}


def test_a_product_grows_until_it_takes_long_enough(clock: Clock) -> None:
    """One run that takes long is none: it was disturbed."""
    sizes: list[int] = []

    def make(device: Device, dtype: str, size: int) -> TimedWork:
        sizes.append(size)
        seconds = size * peaks.LONG / 1000
        return clock.trial(100 * seconds, 100 * seconds, seconds, seconds)

    peaks.grown(make, cpu(), "fp32")
    assert sizes == [256, 512, 1024]


def test_variables_that_limit_instructions_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's peak shows what such a variable costs; one that it lowered would hide it."""
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    peaks.free()
    assert "ONEDNN_MAX_CPU_ISA" not in os.environ
    assert os.environ["OMP_NUM_THREADS"] == "2"
