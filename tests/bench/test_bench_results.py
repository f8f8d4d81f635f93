"""Results of functions as sketches: equal where the results are, and other ones where they are not."""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ipexperf.bench.calls import results
from ipexperf.judge import answers


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Made:
    """As attrs makes classes."""

    __attrs_attrs__ = (SimpleNamespace(name="x"),)

    def __init__(self, x: int) -> None:
        self.x = x


def told(before: Any, now: Any) -> str:
    return answers.difference(results.sketch(before), results.sketch(now)).text


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (None, None),
        ([1, (2.5, "three"), {"four": b"5"}], [1, (2.5, "three"), {"four": b"5"}]),
        ({2, 1}, {1, 2}),
        (Point(1, 2), Point(1, 2)),
        (Colour.RED, Colour.RED),
        (object(), object()),
        (math.nan, math.nan),
        ("x" * 1000, "x" * 1000),
    ],
)
def test_equal_results_are_equal(before: Any, now: Any) -> None:
    assert told(before, now) == ""


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (1, 2, "its answers changed: 1 -> 2"),
        (1, True, "its answers changed: 1 -> True"),
        ([1], (1,), "its answers changed: list of 1, 1 -> tuple of 1, 1"),
        ({"a": 1}, {"b": 1}, "its answers changed: dict of a, 1 -> dict of b, 1"),
        (Point(1, 2), Point(1, 3), "its answers changed: Point, 1, 2 -> Point, 1, 3"),
        (Colour.RED, Colour.BLUE, "its answers changed: <Colour.RED: 1> -> <Colour.BLUE: 2>"),
        (Made(1), Made(2), "its answers changed: Made, 1 -> Made, 2"),
        ({1}, {2}, "its answers changed: set of 1 -> set of 2"),
        (1, None, "its answers changed: 1 -> None"),
    ],
)
def test_other_results_are_named(before: Any, now: Any, text: str) -> None:
    assert told(before, now) == text


@pytest.mark.parametrize("before", ["x" * 1000, list(range(1000))])
def test_a_long_result_is_kept_as_a_digest(before: Any) -> None:
    """It is compared whole, and takes little room."""
    now = before[:-1] + type(before)("y")
    assert told(before, now)
    assert len(str(results.sketch(before))) < 1500


def test_what_cannot_be_compared_is_named_by_its_type() -> None:
    assert results.incomparable([1, object()]) == "a object"
    assert results.incomparable([1, "two"]) == ""
    assert results.sketch(object())["unknown"] == "a object"


@pytest.mark.torch
@pytest.mark.parametrize(("dtype", "allowed"), [("float32", 1e-6), ("bfloat16", 1e-6)])
def test_tensors_are_compared_within_the_rounding_of_their_dtype(dtype: str, allowed: float) -> None:
    torch = pytest.importorskip("torch")
    before = torch.linspace(1, 2, 1000, dtype=torch.float64)

    def of(values: Any) -> Any:
        return {"out": values.to(getattr(torch, dtype))}

    assert told(of(before), of(before * (1 + allowed))) == ""
    assert "its answers changed" in told(of(before), of(before * 1.1))
    assert "its answers changed" in told(of(before), of(before[:-1]))
    assert "its answers changed" in told(of(before), of(torch.cat([before[:-1], torch.tensor([math.nan])])))


@pytest.mark.torch
def test_a_float_may_come_from_a_tensor() -> None:
    """Such as a loss, whose last digits are another version's own. Beside torch it is compared as such numbers are."""
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    assert told(torch.tensor(1 / 3).item(), 1 / 3) == "" == told(numpy.float32(1 / 3), numpy.float32(0.33333334))
    assert "its answers changed" in told(1 / 3, 0.334)


@pytest.mark.torch
def test_whole_numbers_and_arrays_are_compared_exactly() -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    numbers = torch.arange(100)
    assert told(numbers, numbers.clone()) == ""
    assert "its answers changed" in told(numbers, torch.cat([numbers[:-1], numbers[:1]]))
    assert told(numpy.ones(5), numpy.ones(5)) == ""
    assert "its answers changed" in told(numpy.ones(5), 2 * numpy.ones(5))
    assert told(torch.empty(3, device="meta"), torch.empty(3, device="meta")) == ""


@pytest.mark.torch
def test_a_tensor_of_a_class_of_its_own_is_compared_as_others_are() -> None:
    """Its class is in a module of the user's."""
    torch = pytest.importorskip("torch")

    class Mine(torch.Tensor):  # type: ignore[misc] # torch is imported late, and has no types here
        pass

    ones = torch.ones(5).as_subclass(Mine)
    assert told(ones, ones.clone()) == ""
    assert "its answers changed" in told(ones, 2 * ones)


def test_arrays_are_compared_where_torch_is_not_imported_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums in another order are the same. Texts, times and whole numbers are compared exactly."""
    numpy = pytest.importorskip("numpy")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    sums = numpy.linspace(1, 2, 1000)
    assert told([sums, sums * 1j], [sums * (1 + 1e-12), sums * 1j]) == "" == told(0.1 + 0.2, numpy.float64(0.3))
    assert told([], []) == "" == told(numpy.array([1, None]), numpy.array([1, None]))
    moved = [sums[:-1], -sums, sums + 1e-6j, 1.1]
    exact = [numpy.arange(3), numpy.array(["a", "b"]), numpy.datetime64("2020-01-01"), numpy.array(["a", None])]
    others = [numpy.array([0, 1, 3]), numpy.array(["a", "c"]), numpy.datetime64("2020-01-02"), numpy.array(["b", None])]
    for before, now in (*((sums, one) for one in moved), *zip(exact, others, strict=True)):
        assert "its answers changed" in told(before, now)
        assert not results.incomparable(before)


def test_a_table_is_compared_by_its_columns_and_its_index() -> None:
    pandas = pytest.importorskip("pandas")
    made = {"price": [1.0, 2.0], "shop": ["a", "b"]}
    table = pandas.DataFrame(made, index=[3, 4])
    assert told(table, table.copy()) == "" == told(table, table.assign(price=[1.0, 2 + 1e-12]))
    for other in (table.reset_index(), table.assign(price=[1.0, 2.1]), table.assign(shop=["a", "c"]), table.iloc[::-1]):
        assert "its answers changed" in told(table, other)
    assert not results.incomparable(table)
