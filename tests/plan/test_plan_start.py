"""`--perf-start`: which cases are never forked, and why."""

from __future__ import annotations

import argparse

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.plan import matrix, start
from ipexperf.plan.options import OPTIONS, Options

FACTS = Facts(
    "/env/bin/python",
    {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0", "scikit-learn": "1.7"},
    frozenset({"avx2"}),
    cores=8,
    compiler="/usr/bin/g++",
)


def planned(mode: str, **wish: object) -> Case:
    options = Options(model=("resnet18",), dtype=("fp32",), mode=(mode,), stack=("stock",), **wish)  # type: ignore[arg-type]
    [case] = matrix.make(options, FACTS).cases
    return case


def test_a_case_that_may_be_forked_in_some_rounds_keeps_its_name() -> None:
    """That is the default: nobody's series begins anew."""
    assert Options().start == "auto"
    assert planned("infer") == planned("infer", start="fresh")


@pytest.mark.parametrize("mode", ["load", "train_ddp", "realtime", "infer_compile", "infer_export"])
def test_a_mode_that_is_never_forked_has_a_reason(mode: str) -> None:
    assert start.why_fresh(planned(mode), placed=False) == registry.modes.get(mode).fresh != ""


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_a_case_on_a_card_is_never_forked(device: str) -> None:
    """A card's runtime does not survive a fork."""
    cell = Cell("resnet18", device, "fp32", "infer", "stock")
    assert start.why_fresh(cell, placed=False) == f"the runtime of a device such as {device} does not survive a fork"


def test_what_is_no_start_is_refused() -> None:
    """The kinds are named."""
    [option] = [option for option in OPTIONS if option.name == "start"]
    with pytest.raises(argparse.ArgumentTypeError, match="expected one of auto, fresh, got 'spawn'"):
        option.read("spawn")
