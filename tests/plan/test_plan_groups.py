"""Groups: which cases of a run share their rounds, and which of them the others are held against."""

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.case import NetworkCase
from ipexperf.plan import groups

CASE = NetworkCase("resnet18", "cpu", "fp32", "infer_jit", "stock", 32, 32, 1, "digits")


def other(**changes: Any) -> NetworkCase:
    return dataclasses.replace(CASE, **changes)


@pytest.mark.parametrize(
    "changes",
    [{"dtype": "bf16"}, {"stack": "ipex"}, {"mode": "infer"}, {"mode": "infer_compile"}, {"knobs": (("level", "O0"),)}],
)
def test_what_does_the_same_kind_of_step_shares_a_group(changes: dict[str, Any]) -> None:
    """Whatever stack, dtype, knob or way of inference: their ratio means something."""
    [group] = groups.groups([CASE, other(**changes)])
    assert group.cases == (CASE, other(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "resnet50"},
        {"device": "xpu"},
        {"batch": 64},
        {"size": 224},
        {"data": "cifar10"},
        {"mode": "train"},
        {"mode": "load"},
        {"mode": "realtime"},
    ],
)
def test_what_cannot_be_compared_is_in_a_group_of_its_own(changes: dict[str, Any]) -> None:
    """Another model, device, input or kind of step: a training step leaves other caches than an answer does."""
    assert len(groups.groups([CASE, other(**changes)])) == 2


@pytest.mark.parametrize(
    ("plainer", "case"),
    [
        ({}, {"stack": "ipex"}),
        ({}, {"dtype": "bf16"}),
        ({"dtype": "bf16"}, {"stack": "ipex"}),
        ({}, {"knobs": (("level", "O0"),)}),
        ({"mode": "infer"}, {"mode": "infer_jit"}),
        ({"mode": "infer_jit"}, {"mode": "infer_compile"}),
    ],
)
def test_the_plainest_case_is_the_reference(plainer: dict[str, Any], case: dict[str, Any]) -> None:
    """Stock before any other stack, then fp32 before any other dtype, then nothing turned, then the shortest mode."""
    for order in itertools.permutations([other(**plainer), other(**case)]):
        assert groups.reference(order) == other(**plainer)


@given(
    st.lists(
        st.builds(
            other,
            model=st.sampled_from(("resnet18", "resnet50")),
            dtype=st.sampled_from(("fp32", "bf16")),
            mode=st.sampled_from(("infer", "infer_jit", "train")),
            batch=st.sampled_from((1, 32)),
        ),
        unique=True,
    )
)
def test_each_case_is_in_one_group_and_the_plan_keeps_its_order(cases: list[NetworkCase]) -> None:
    found = groups.groups(cases)
    assert sorted(case.uid for group in found for case in group.cases) == sorted(case.uid for case in cases)
    assert [group.cases[0] for group in found] == sorted((group.cases[0] for group in found), key=cases.index)
    for group in found:
        assert list(group.cases) == [case for case in cases if groups.name(case) == group.name]
        assert group.reference in group.cases
