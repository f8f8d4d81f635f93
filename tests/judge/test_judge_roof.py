"""Rates and their share of the roof: arithmetic on plain records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.judge import roof
from ipexperf.result import Launch

CEILINGS: dict[str, Any] = {
    "peaks": {"fp32": {"rate": 2e11, "how": "a product"}, "bf16": {"rate": 1e12, "how": "a product"}},
    "bandwidth": {"rate": 2e10, "how": "a copy"},
    "missing": {"int8": "no product of int8 on cpu: RuntimeError: none"},
    "emulated": ["bf16"],
}
WORK = {"items": 8, "flops": 8_000_000_000, "elements": 4_000_000}
LARGE = st.floats(1e3, 1e15)


def launch(throughput: float = 100.0, **more: Any) -> Launch:
    return Launch(0, "ok", metrics={"step_time": 1.0, "throughput": throughput}, **more)


def test_rates_follow_from_items_per_second_and_not_from_the_step_time() -> None:
    """The step time does not show the throughput of several instances or ranks."""
    rated = roof.with_rates(launch(), WORK, "fp32")
    assert rated.metrics["flop_rate"] == pytest.approx(1e9 * 100)
    assert rated.metrics["byte_rate"] == pytest.approx(500_000 * 4 * 100)


def test_a_case_is_bound_by_the_lower_roof() -> None:
    """1e11 of 2e11 operations, and 2e8 of 2e10 bytes: half of what it could compute."""
    roofed = roof.with_share(roof.with_rates(launch(), WORK, "fp32"), CEILINGS, "fp32")
    assert roofed.metrics["of_roof"] == pytest.approx(0.5)
    assert roofed.roof is not None
    assert roofed.roof["bound"] == "compute"
    light = {**WORK, "flops": 8_000_000}
    roofed = roof.with_share(roof.with_rates(launch(), light, "fp32"), CEILINGS, "fp32")
    assert roofed.metrics["of_roof"] == pytest.approx(0.01)
    assert roofed.roof is not None
    assert roofed.roof["bound"] == "memory"


@given(LARGE, LARGE, LARGE, LARGE)
def test_the_share_is_that_of_the_roof_at_the_intensity_of_the_case(
    flops: float, moved: float, peak: float, bandwidth: float
) -> None:
    """The lower of the peak and of what memory can feed."""
    ceilings = {
        **CEILINGS,
        "peaks": {"fp32": {"rate": peak, "how": ""}},
        "bandwidth": {"rate": bandwidth, "how": ""},
    }
    rated = Launch(0, "ok", metrics={"flop_rate": flops, "byte_rate": moved})
    expected = flops / min(peak, flops / moved * bandwidth)
    assert roof.with_share(rated, ceilings, "fp32").metrics["of_roof"] == pytest.approx(expected)


def test_the_roof_of_several_devices_is_their_sum() -> None:
    rated = roof.with_rates(launch(), WORK, "fp32")
    shares = [roof.with_share(rated, CEILINGS, "fp32", count).metrics["of_roof"] for count in (1, 2)]
    assert shares[0] == pytest.approx(2 * shares[1])


def test_a_dtype_without_a_ceiling_has_a_note_and_no_share() -> None:
    roofed = roof.with_share(roof.with_rates(launch(), WORK, "int8"), CEILINGS, "int8")
    assert "of_roof" not in roofed.metrics
    assert roofed.roof is None
    assert roofed.notes == ("has no roof: no product of int8 on cpu: RuntimeError: none",)


def test_a_case_faster_than_its_ceiling_has_a_note_that_the_ceiling_is_too_low() -> None:
    """The ceiling was measured on a busy machine."""
    fast = roof.with_share(roof.with_rates(launch(throughput=300), WORK, "fp32"), CEILINGS, "fp32")
    assert len(fast.notes) == 1
    assert fast.notes[0].startswith("computed 1.50 times its ceiling: that was measured on a busy machine")
    # What lies in caches may well be above the roof of memory.
    cached = roof.with_share(roof.with_rates(launch(throughput=1e5), {**WORK, "flops": 1}, "fp32"), CEILINGS, "fp32")
    assert cached.metrics["of_roof"] > 1
    assert cached.notes == ()


def test_any_launch_may_have_the_counted_work() -> None:
    """Of a pair only the first launch is captured, and an old fingerprint has no count."""
    old = launch(fingerprint={"digest": "abc"})
    assert roof.counted_work((launch(), old)) is None
    assert roof.counted_work((launch(), old, launch(fingerprint={"beside": {"work": WORK}}))) == WORK
    unknown = {"work": {"items": 8, "flops": 0, "elements": 0}}
    assert roof.counted_work((launch(fingerprint={"beside": unknown}),)) is None
