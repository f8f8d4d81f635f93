"""`--perf-yardstick`: a case that takes turns with it is another case; one that cannot is the plain one."""

from __future__ import annotations

import pytest

from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.errors import UsageError
from ipexperf.plan import arms, knobs, matrix, yardstick
from ipexperf.plan.options import Options

PACKAGES = {"torch": "2.8.0", "torchvision": "0.23.0", "scikit-learn": "1.7"}
FACTS = Facts("/env/bin/python", PACKAGES, frozenset({"avx2"}), cores=8, compiler="/usr/bin/g++")


def planned(mode: str, model: str = "resnet18", dtype: str = "fp32", **wish: object) -> Case:
    options = Options(model=(model,), dtype=(dtype,), mode=(mode,), stack=("stock",), **wish)  # type: ignore[arg-type]
    [case] = matrix.make(options, FACTS).cases
    return case


@pytest.mark.parametrize("mode", ["infer", "infer_jit", "train"])
def test_a_case_beside_a_yardstick_is_another_case(mode: str) -> None:
    """It never shares a series with a worker alone, and its id says how it is asked for."""
    alone, beside = planned(mode), planned(mode, yardstick=True)
    assert beside.knobs == (("yardstick", "on"),)
    assert (alone.uid != beside.uid, beside.id) == (True, f"{alone.id}+yardstick:on")
    assert knobs.option(*beside.knobs[0]) == "--perf-yardstick"


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("load", "load is timed once per process, and takes no turns"),
        ("realtime", "the steps of realtime run in several processes"),
        ("train_ddp", "the steps of train_ddp run in several processes"),
    ],
)
def test_a_case_that_takes_no_turns_keeps_its_name(mode: str, told: str) -> None:
    """It is measured as ever, in seconds, and there is a reason."""
    case = planned(mode, yardstick=True)
    assert case == planned(mode)
    assert yardstick.why_not(case) == told


@pytest.mark.parametrize(
    ("model", "dtype", "kind"),
    [("resnet18", "fp32", ("convolution", "float32")), ("resnet18", "bf16", ("convolution", "bfloat16"))],
)
def test_the_work_is_of_the_kind_of_the_case(model: str, dtype: str, kind: tuple[str, str]) -> None:
    """Images convolve, texts multiply, and bf16 is bf16."""
    from ipexperf.bench import registry

    cpu = registry.devices.get("cpu")
    assert cpu.yardstick(planned("infer", model, dtype)) == kind
    assert cpu.yardstick(Case("distilbert", "cpu", "fp32", "infer", "stock", 1, 1)) == ("product", "float32")


def test_on_an_accelerator_there_is_none() -> None:
    """What a CPU does meanwhile says nothing of a card."""
    case = Case("resnet18", "cuda", "fp32", "infer", "stock", 1, 32)
    assert yardstick.why_not(case) == "it has no work for cuda"


def test_pairs_refuse_it_wherever_it_was_said() -> None:
    with pytest.raises(UsageError, match=r"^ipexperf_yardstick: pairs take turns with the other arm"):
        arms.check(Options(yardstick=True, sources={"yardstick": "ipexperf_yardstick"}))
