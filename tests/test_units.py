"""Numbers with units, for people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.units import amount, digits, percent, plural, seconds, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (0.0123456, "12.3 ms"),
        (0.9999, "1.00 s"),
        (1.5e-7, "150 ns"),
        (2.5e-5, "25.0 us"),
        (83.2, "83.2 s"),
        (150, "2 min 30 s"),
        (7260, "2 h 01 min"),
        (1e300, "1.0e+300 s"),
        (1e-300, "1.0e-291 ns"),
    ],
)
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (1536, "1.50 KiB"), (2**30 * 1.2, "1.20 GiB")])
def test_sizes(value: float, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.0, "+0.0 %"), (1.234, "+23.4 %"), (1.96, "+96.0 %"), (2.0, "2.0 times"), (12.34, "12.3 times")],
)
def test_ratios(ratio: float, text: str) -> None:
    assert percent(ratio) == text


def test_the_rest() -> None:
    assert (digits(81.23), digits(12345.6)) == ("81.2", "12,346")
    assert digits(float("nan")) == "nan"
    assert (amount(4.1e11, "FLOP/s"), amount(1159, "items/s")) == ("410 GFLOP/s", "1,159 items/s")
    assert (digits(-2e15), percent(4.6e299), size(1e300)) == ("-2.0e+15", "4.6e+299 times", "9.1e+287 TiB")
    assert (plural(1, "case"), plural(2, "case"), plural(2, "launch", "launches")) == (
        "1 case",
        "2 cases",
        "2 launches",
    )


@given(st.floats(1e-9, 100))
def test_three_digits_are_enough_to_get_the_value_back(value: float) -> None:
    number, unit = seconds(value).split()
    scale = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(value, rel=6e-3)
