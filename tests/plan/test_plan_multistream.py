"""multistream in the plan: IPEX on the CPU, with Intel's OpenMP, and no more streams than cores or images."""

from collections.abc import Mapping
from typing import Any

import plan_records
import pytest
from plan_records import CARDS, facts, ids

from ipexperf.errors import UsageError
from ipexperf.plan import matrix
from ipexperf.plan.placement import read

CELL: dict[str, Any] = {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("multistream",), "stack": ("ipex",)}
ID = "resnet18-cpu-fp32-multistream-ipex"


def plan(
    iomp5: str = "/env/lib/libiomp5.so", packages: Mapping[str, str | None] | None = None, **wishes: Any
) -> matrix.Plan:
    here = facts(packages, accelerators=CARDS, cores=4, iomp5=iomp5)
    return plan_records.plan({**CELL, **wishes}, here)


def test_streams_are_ipexs_alone() -> None:
    """Stock PyTorch has no runtime extension, and is left out with that."""
    found = plan(stack=("all",))
    assert ids(found) == [ID]
    assert [left.reason for left in found.left_out] == ["multistream is IPEX's runtime extension: stock has none"]


def test_without_intels_openmp_it_is_left_out_with_how_to_get_it() -> None:
    """Asked for by name it ends the run; in the full preset it is one cell among others."""
    told = "it needs Intel's OpenMP, and /env/bin/python has no libiomp5.so: pip install intel-openmp"
    with pytest.raises(UsageError, match=told):
        plan(iomp5="")
    with pytest.raises(UsageError, match="intel-extension-for-pytorch not installed"):
        plan(iomp5="", packages={"intel-extension-for-pytorch": None})
    found = plan(iomp5="", mode=None, preset="full", stack=("all",))
    assert ID not in ids(found)
    [reason] = [left.reason for left in found.left_out if left.id == ID]
    assert reason.endswith("pip install intel-openmp")


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        ({"knobs": (("streams", "0"),)}, "streams: expected a whole number of at least 1, got '0'"),
        ({"knobs": (("streams", "5"),)}, "5 streams need as many cores, but only 4 may be used here"),
        ({"knobs": (("streams", "4"),), "batch": 3}, "4 streams share a batch of 3: some of them would get no image"),
        ({"placement": read("openmp=gomp")}, "multistream runs only with openmp=iomp5"),
        ({"placement": read("threads=2")}, "multistream always uses one thread per core: threads=2 does not apply"),
        ({"device": ("cuda",)}, "it is for cpu, not for cuda"),
        ({"dtype": ("int8",)}, "int8 is built for .+, not for multistream"),
        ({"ablate": ("streams",)}, "the knob streams is a number"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(wishes: dict[str, Any], told: str) -> None:
    """Before anything is measured, with what is wrong."""
    with pytest.raises(UsageError, match=told):
        plan(**wishes)


@pytest.mark.parametrize(
    ("wishes", "label"),
    [
        ({}, ""),
        ({"knobs": (("streams", "fit"),)}, ""),
        ({"knobs": (("streams", "2"),)}, "+streams:2"),
        ({"batch": 2}, ""),
        ({"placement": read("openmp=iomp5")}, ""),
        ({"placement": read("cores=0-1,openmp=iomp5")}, "+placement:cores=0-1"),
        ({"placement": read("cores=0-1")}, "+placement:cores=0-1"),
    ],
)
def test_the_same_work_has_one_name(wishes: dict[str, Any], label: str) -> None:
    """Its OpenMP runtime is the mode's own: who asks for it by name gets the case that is there without."""
    assert ids(plan(**wishes)) == [ID + label]


def test_intels_openmp_is_in_the_name_of_other_modes() -> None:
    """They can do without, so it is another series."""
    [name] = ids(plan(mode=("infer_jit",), placement=read("openmp=iomp5")))
    assert name == "resnet18-cpu-fp32-infer_jit-ipex+placement:openmp=iomp5"
