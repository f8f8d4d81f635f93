"""The rate of a case and its share of the roof: arithmetic on plain records."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.judge import roof
from ipexperf.result import Launch

PEAKS: dict[str, Any] = {
    "peaks": {"fp32": {"rate": 2e11, "how": "a product"}},
    "missing": {"int8": "no product of int8 on cpu: RuntimeError: none"},
}
WORK = {"items": 8, "flops": 8_000_000_000}


def launch(**more: Any) -> Launch:
    return Launch(0, "ok", metrics={"step_time": 1.0, "throughput": 100.0}, **more)


def test_the_share_follows_from_items_per_second_and_not_from_the_step_time() -> None:
    """The step time does not show the throughput of several instances or ranks. 1e11 of 2e11 operations: half."""
    roofed = roof.with_share(launch(), WORK, PEAKS, "fp32")
    assert roofed.metrics["flop_rate"] == pytest.approx(1e9 * 100)
    assert roofed.metrics["of_roof"] == pytest.approx(0.5)
    assert roofed.roof == {"rate": 2e11, "how": "a product"}


def test_the_roof_of_several_devices_is_their_sum() -> None:
    one, two = (roof.with_share(launch(), WORK, PEAKS, "fp32", count) for count in (1, 2))
    assert one.metrics["of_roof"] == pytest.approx(2 * two.metrics["of_roof"])


@pytest.mark.parametrize(
    ("peaks", "reason"), [(PEAKS, "no product of int8 on cpu: RuntimeError: none"), ("not measured", "not measured")]
)
def test_a_dtype_without_a_peak_has_a_rate_a_note_and_no_share(peaks: Any, reason: str) -> None:
    roofed = roof.with_share(launch(), WORK, peaks, "int8")
    assert "flop_rate" in roofed.metrics
    assert "of_roof" not in roofed.metrics
    assert roofed.roof is None
    assert roofed.notes == (f"has no roof: {reason}",)


def test_any_launch_may_have_the_counted_work() -> None:
    """Of a pair only the first launch is captured, and an old fingerprint has no count."""
    old = launch(fingerprint={"digest": "abc"})
    assert roof.counted_work((launch(), old)) is None
    assert roof.counted_work((launch(), old, launch(fingerprint={"beside": {"work": WORK}}))) == WORK
    unknown = {"work": {"items": 8, "flops": 0}}
    assert roof.counted_work((launch(fingerprint={"beside": unknown}),)) is None
