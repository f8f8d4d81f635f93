"""`--perf-start`: which cases are never forked, and why."""

import pytest
from plan_records import facts, plan

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.case import NetworkCase
from ipexperf.plan import start
from ipexperf.plan.options import Options


def planned(mode: str, **wish: object) -> NetworkCase:
    cell = {"model": ("resnet18",), "dtype": ("fp32",), "mode": (mode,), "stack": ("stock",)}
    [case] = plan({**cell, **wish}, facts(cores=8, compiler="/usr/bin/g++")).cases
    return case


def test_a_case_that_may_be_forked_in_some_rounds_keeps_its_name() -> None:
    """That is the default: nobody's series begins anew."""
    assert Options().start == "auto"
    assert planned("infer") == planned("infer", start="fresh")


@pytest.mark.parametrize("mode", ["load", "train_ddp", "realtime", "infer_compile", "infer_export"])
def test_a_mode_that_is_never_forked_has_a_reason(mode: str) -> None:
    assert start.why_fresh(planned(mode), placed=False) == registry.modes.get(mode).fresh != ""


def test_a_case_on_a_card_is_never_forked() -> None:
    cell = Cell("resnet18", "cuda", "fp32", "infer", "stock")
    assert start.why_fresh(cell, placed=False) == "the runtime of a device such as cuda does not survive a fork"
