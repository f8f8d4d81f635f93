"""The figures of a launch: what is made of its samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.conduct import launch
from ipexperf.result import Sample


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0], 0.5, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([float(n) for n in range(1, 11)], 0.9, 9.0),
        ([float(n) for n in range(1, 12)], 0.9, 10.0),
        ([1.0, 2.0], 1.0, 2.0),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_the_percentile_is_the_nearest_rank(values: list[float], share: float, expected: float) -> None:
    """The percentile is the smallest value that the share of all values reaches."""
    assert launch.percentile(values, share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_the_percentile_was_measured(values: list[float], share: float) -> None:
    """A percentile is one of the values, and at least the share of them is no larger."""
    found = launch.percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9


def test_figures_are_medians_in_base_units() -> None:
    """Step and CPU time are medians of the samples, and throughput is items a second at the median step."""
    walls = (0.010, 0.020, 0.040)
    samples = [Sample(wall, 2 * wall, 0.0) for wall in walls]
    found = launch.figures(samples, {"items": 8, "prepare_time": 1.5, "warm_time": 0.5, "peak_memory": 7})
    assert found == pytest.approx(
        {
            "step_time": 0.020,
            "throughput": 400.0,
            "p50": 0.020,
            "p90": 0.040,
            "cpu_time": 0.040,
            "prepare_time": 1.5,
            "warm_time": 0.5,
            "peak_memory": 7.0,
        }
    )
