"""`--perf-start fork` makes another case, and where that makes no sense the plain one; `auto` leaves names alone."""

from __future__ import annotations

import argparse

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.errors import UsageError
from ipexperf.plan import knobs, matrix, placement, start
from ipexperf.plan.options import Options
from ipexperf.report.table import to_beat

FACTS = Facts(
    "/env/bin/python",
    {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0", "scikit-learn": "1.7"},
    frozenset({"avx2"}),
    cores=8,
    compiler="/usr/bin/g++",
)
FORK = (("start", "fork"),)


def planned(mode: str, **wish: object) -> Case:
    options = Options(model=("resnet18",), dtype=("fp32",), mode=(mode,), stack=("stock",), **wish)  # type: ignore[arg-type]
    [case] = matrix.make(options, FACTS).cases
    return case


@pytest.mark.parametrize("mode", ["infer", "infer_jit", "train"])
def test_a_case_that_is_to_be_forked_is_another_case(mode: str) -> None:
    """It never shares a series with a fresh one, and its id says what it is and how it is asked for."""
    fresh, forked = planned(mode), planned(mode, start="fork")
    assert (fresh.knobs, forked.knobs) == ((), FORK)
    assert fresh.uid != forked.uid
    assert forked.id == f"{fresh.id}+start:fork"
    assert start.plain(forked) == fresh
    assert knobs.option(*forked.knobs[0]) == "--perf-start fork"


def test_a_case_that_may_be_forked_in_some_rounds_keeps_its_name() -> None:
    """That is the default: nobody's series begins anew."""
    assert Options().start == "auto"
    assert planned("infer") == planned("infer", start="fresh") == planned("infer", start="auto")


@pytest.mark.parametrize("mode", ["load", "train_ddp", "realtime", "infer_compile", "infer_export"])
def test_a_mode_that_is_never_forked_keeps_its_name(mode: str) -> None:
    """Its launches are what they are without the option, and it has a reason."""
    assert planned(mode, start="fork") == planned(mode)
    assert start.why_fresh(planned(mode), placed=False) == registry.modes.get(mode).fresh != ""


def test_a_placed_case_is_never_forked() -> None:
    """It takes its cores, memory and OpenMP before it imports anything: its server could not have."""
    case = planned("infer", start="fork", placement=placement.read("cores=0"))
    assert case.knobs == (("placement", "cores=0"),)


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_a_case_on_a_card_is_never_forked(device: str) -> None:
    """A card's runtime does not survive a fork."""
    cell = Cell("resnet18", device, "fp32", "infer", "stock")
    assert knobs.named(cell, Options(start="fork")) == ()
    assert start.why_fresh(cell, placed=False) == f"the runtime of a device such as {device} does not survive a fork"


def test_the_start_is_no_knob_that_can_be_turned() -> None:
    """It has an option of its own: `--perf-knobs start=fork` would label a case without forking it."""
    with pytest.raises(UsageError, match="unknown knob 'start'"):
        matrix.check_names(Options(knobs=(("start", "fork"),)))


def test_what_is_no_start_is_refused() -> None:
    """The kinds are named."""
    assert [start.read(text) for text in ("auto", "fresh", "fork")] == ["auto", "fresh", "fork"]
    with pytest.raises(argparse.ArgumentTypeError, match="expected auto, fresh or fork, got 'spawn'"):
        start.read("spawn")


def test_a_forked_case_is_held_against_a_forked_one() -> None:
    """What the table compares it with began as the case did."""
    assert to_beat(planned("infer_jit", start="fork")) == planned("infer", start="fork")
