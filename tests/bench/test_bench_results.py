"""Results of functions as sketches: equal where the results are, and other ones where they are not."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import json
import math
import sys
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench.calls import results
from ipexperf.proof import answers


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
    sides = ([results.sketch(result)] * 2 for result in (before, now))
    return answers.difference(*map(answers.common, sides)).text


def test_equal_results_are_equal() -> None:
    for before, now in [({2, 1}, {1, 2}), (Point(1, 2), Point(1, 2)), (Colour.RED, Colour.RED), (object(), object())]:
        assert told(before, now) == ""


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (1, 2, "its answers changed: 1 -> 2"),
        (1, True, "its answers changed: 1 -> True"),
        ([1], (1,), "its answers changed: list of 1 -> tuple of 1"),
        ({"a": 1}, {"b": 1}, "its answers changed: dict of 'a' -> dict of 'b'"),
        (Point(1, 2), Point(1, 3), "its answers changed: result.y: 2 -> 3"),
        (Colour.RED, Colour.BLUE, "its answers changed: Colour.RED: 1 -> Colour.BLUE: 2"),
        (Made(1), Made(2), "its answers changed: result.x: 1 -> 2"),
        ({1}, {2}, "its answers changed: set of 1 -> set of 2"),
        (1, None, "its answers changed: 1 -> None"),
        (1, "1", "its answers changed: 1 -> '1'"),
        ({"price": 19.99}, {"price": 19.991}, "its answers changed: result['price']: 19.99 -> 19.991 (bound 1e-07 %)"),
        ([1e9, 1.0, 2.0], [1e9, 3.0, 2.5], "its answers changed: result[1]: 1 -> 3 (bound 0.01 %)"),
        ([1e9, 1, 2], [1e9, 3, 3], "its answers changed: result[1]: 1 -> 3 and 1 more"),
        ([math.inf, 1.0], [-math.inf, 1.0], "its answers changed: result[0]: inf -> -inf"),
        ([math.inf, 1.0], [math.nan, 1.0], "its answers changed: result[0]: inf -> nan"),
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


class Endless:
    """Asked anything, it raises. So would one that never ends."""

    def __getattribute__(self, name: str) -> Any:
        raise NotImplementedError(name)

    def _raise(self) -> Any:
        raise NotImplementedError

    __len__ = __iter__ = __bool__ = __repr__ = __hash__ = _raise


@dataclasses.dataclass
class Node:
    """As of a tree."""

    parent: Node | None
    children: list[Node] = dataclasses.field(default_factory=list)


class Unset(Made):
    """Its field has no value."""


def tree(*children: int) -> Node:
    root = Node(None)
    root.children = [Node(root, [one]) for one in children]  # type: ignore[list-item] # a leaf, here a number
    return root


def test_a_tree_whose_nodes_know_their_parents_is_compared() -> None:
    assert told(tree(1, 2), tree(1, 2)) == ""
    assert told(tree(1, 2), tree(1, 3)) == "its answers changed: result.children[1].children[0]: 2 -> 3"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (object(), "it is a object, which nothing compares with another"),
        ([1, mock.MagicMock()], "result[1] is a MagicMock, which nothing compares with another"),
        ({"a": Endless()}, "result['a'] is a Endless, which nothing compares with another"),
        (Node, "it is a type, which nothing compares with another"),
        (Unset.__new__(Unset), "it is a Unset, which cannot be read: AttributeError"),
        ({object()}, "it is a set, which nothing compares with another"),
        (iter([]), "it is a list_iterator, which nothing compares with another"),
        (collections.ChainMap(*[cast("dict[str, int]", Endless())] * 2), "cannot be read: NotImplementedError"),
        (functools.reduce(lambda inner, _: [inner], range(2000), []), "the rest has a part that is a list inside 100"),
        (functools.reduce(lambda inner, _: [inner, inner], range(60), []), "the rest has more than 50,000 values"),
        ([1, "two", tree(1)], ""),
    ],
)
def test_what_cannot_be_compared_is_named_and_the_rest_is_compared(result: Any, reason: str) -> None:
    found = results.sketch(result)
    assert reason in answers.uncompared(found)
    assert bool(reason) == bool(answers.uncompared(found))
    assert len(str(found)) < 10_000
    assert told([1, result], [1, result]) == "" != told([1, result], [2, result])


def test_what_differs_between_processes_of_the_same_code_is_not_compared_and_the_rest_is() -> None:
    before, now = ([results.sketch({"id": identity, "price": price}) for identity in "ab"] for price in (1.5, 2.5))
    assert answers.uncompared(answers.common(before)) == "result['id'] is another one in each process"
    found = answers.difference(*map(answers.common, (before, now)))
    assert found.text == "its answers changed: result['price']: 1.5 -> 2.5 (bound 0.01 %)"


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
ANY |= st.datetimes() | st.decimals() | st.fractions() | st.uuids()
KEYS = st.text() | st.integers() | st.tuples(st.integers(), st.text())
NESTED = st.recursive(ANY, lambda one: st.lists(one) | st.dictionaries(KEYS, one) | st.tuples(one), max_leaves=60)


@given(NESTED)
def test_a_copy_of_any_result_is_equal_and_its_sketch_is_json(result: Any) -> None:
    assert told(result, copy.deepcopy(result)) == ""
    json.dumps(results.sketch(result), allow_nan=False)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.data())
def test_a_number_that_is_another_one_is_told_wherever_it_is_and_rounding_is_not(
    values: list[float], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    other = values[place] * 1.001 + max(map(abs, values)) / 1000 + 1e-3
    assert told(values, [*values[:place], other, *values[place + 1 :]])
    rounded = [value * (1 + 1e-13) for value in values]
    assert told(values, rounded) == "" == told([{"a": one} for one in values], [{"a": one} for one in rounded])


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
    """Such as a loss, whose last digits are another version's own: then float32 can hold it."""
    torch = pytest.importorskip("torch")
    third = torch.tensor(1 / 3)
    assert told(third.item(), (third * (1 + 1e-6)).item()) == "" == told({"a": third}, {"a": third * (1 + 1e-6)})
    assert "its answers changed" in told(third.item(), third.item() * (1 + 1e-6))


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
        assert not answers.uncompared(results.sketch(before))


def test_a_table_is_compared_by_its_columns_and_its_index() -> None:
    pandas = pytest.importorskip("pandas")
    made = {"price": [1.0, 2.0], "shop": ["a", "b"]}
    table = pandas.DataFrame(made, index=[3, 4])
    assert told(table, table.copy()) == "" == told(table, table.assign(price=[1.0, 2 + 1e-12]))
    for other in (table.reset_index(), table.assign(price=[1.0, 2.1]), table.assign(shop=["a", "c"]), table.iloc[::-1]):
        assert "its answers changed" in told(table, other)
    assert not answers.uncompared(results.sketch(table))
