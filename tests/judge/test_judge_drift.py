"""Steps that become slower while a launch runs are told from noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from judge_records import CASE, ENVIRONMENT

from ipexperf.judge.drift import drift
from ipexperf.result import Launch, Measurement, Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

GROWS = [1 + 0.05 * number for number in range(24)]
LAZY = [3.0] * 9 + [1.0] * 15
FLAT = [1 + 0.01 * (number % 5) for number in range(24)]
DISTURBED = [1.0] * 16 + [3.0] * 8
WILD = [1.0, 3.0] * 12


def measured(*launches: Sequence[float]) -> Measurement:
    made = tuple(
        Launch(index, "ok", samples=tuple(Sample(wall, wall, 0.0) for wall in walls))
        for index, walls in enumerate(launches)
    )
    return Measurement(CASE, made, ENVIRONMENT, "", "")


@pytest.mark.parametrize(("launches", "factor"), [((GROWS, GROWS), 1.68), ((LAZY, LAZY, LAZY), 1 / 3)])
def test_steps_that_drift_in_every_launch_are_found(launches: Sequence[Sequence[float]], factor: float) -> None:
    assert drift(measured(*launches)) == pytest.approx(factor, rel=0.01)


@pytest.mark.parametrize(
    "launches",
    [
        (FLAT, FLAT),
        (DISTURBED, FLAT),
        (GROWS, LAZY),
        (GROWS,),
        (WILD, WILD),
        (GROWS[:9], GROWS[:9]),
        (),
        ([0.0] * 24,) * 2,
    ],
)
def test_noise_of_a_moment_and_too_few_samples_are_no_drift(launches: Sequence[Sequence[float]]) -> None:
    """A neighbour disturbs one launch, or two of them at different moments."""
    assert drift(measured(*launches)) is None
