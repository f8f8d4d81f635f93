"""int8 is planned where it is built and proven, and is left out or refused with the reason everywhere else."""

import dataclasses
from typing import Any

import plan_records
import pytest
from plan_records import AVX2, CARDS, FOR_CARDS, facts, ids

from ipexperf.bench import registry
from ipexperf.bench.machine.facts import HEADERS
from ipexperf.bench.modes.infer import Infer
from ipexperf.errors import UsageError
from ipexperf.plan import matrix

INT8: dict[str, Any] = {"model": ("resnet18",), "dtype": ("int8",), "mode": ("infer_jit",), "stack": ("all",)}


def plan(flags: frozenset[str] = AVX2, accelerators: dict[str, str] | None = None, **wishes: Any) -> matrix.Plan:
    here = facts(FOR_CARDS if accelerators else None, flags, accelerators=accelerators or {})
    return plan_records.plan({**INT8, **wishes}, here)


def exported(pt2e: str, **wishes: Any) -> matrix.Plan:
    """The plan of compiled int8 if this package has the tools for each device."""
    homes = dict.fromkeys(("x86", "xpu"), pt2e)
    here = facts(accelerators=CARDS, compiler="g++", pt2e=homes, headers=frozenset(HEADERS))
    return plan_records.plan({**INT8, "mode": ("infer_compile",), **wishes}, here)


def test_a_script_is_planned_on_both_stacks_where_the_cpu_has_avx2() -> None:
    """int8 needs no AVX-512: it is planned where bf16 of IPEX is not."""
    found = plan()
    assert ids(found) == ["resnet18-cpu-int8-infer_jit-ipex", "resnet18-cpu-int8-infer_jit-stock"]
    assert found.left_out == ()


def test_eager_int8_is_stocks_alone() -> None:
    """IPEX's converted network computes in fp32 until it is traced: that is no int8, and is not timed as such."""
    found = plan(mode=("infer",))
    assert ids(found) == ["resnet18-cpu-int8-infer-stock"]
    assert found.reasons == {"IPEX int8 computes in fp32 until it is traced: use infer_jit": 1}


def test_dynamic_int8_is_planned_eagerly_on_both_stacks() -> None:
    """Dynamic quantisation has int8 kernels without a trace, whether it was asked for or is the model's own way."""
    asked = plan(mode=("infer",), knobs=(("quantisation", "dynamic"),))
    assert ids(asked) == [f"resnet18-cpu-int8-infer-{stack}+quantisation:dynamic" for stack in ("ipex", "stock")]
    model = registry.models.get("resnet18")
    registry.models.add("former", dataclasses.replace(model, name="former", quantisation="dynamic"))
    own = plan(mode=("infer",), model=("former",))
    assert ids(own) == [f"former-cpu-int8-infer-{stack}" for stack in ("ipex", "stock")]


@pytest.mark.parametrize("home", ["torch.ao.quantization", "torchao.quantization.pt2e"])
def test_compiled_int8_is_stocks_alone(home: str) -> None:
    """Torch's own tools or torchao's will do; IPEX's way through torch.compile is not built."""
    found = exported(home)
    assert ids(found) == ["resnet18-cpu-int8-infer_compile-stock"]
    assert found.reasons == {"IPEX int8 in infer_compile is not built: use infer_jit, or the stack stock": 1}


def test_compiled_int8_of_stock_is_planned_on_xpu() -> None:
    """Its kernels are the card's: the CPU beside it needs no AVX2."""
    plan = exported("torch.ao.quantization", device=("xpu",), stack=("stock",))
    assert ids(plan) == ["resnet18-xpu-int8-infer_compile-stock"]


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"mode": ("infer_jit",)}, "stock int8 on xpu goes through torch.compile: use infer_compile"),
        ({"knobs": (("quantisation", "dynamic"),)}, "PT2E for xpu has no dynamic quantisation"),
        ({"device": ("cuda",)}, "stock int8 is for cpu and xpu: there is no PT2E quantizer for cuda"),
    ],
)
def test_what_stock_int8_cannot_do_on_a_card_is_refused(wishes: dict[str, Any], sentence: str) -> None:
    """Only inductor lowers int8 there, for what is calibrated, on Intel's cards."""
    with pytest.raises(UsageError, match=sentence):
        exported("torch.ao.quantization", **{"device": ("xpu",), "stack": ("stock",), **wishes})


def test_compiled_int8_without_its_tools_says_what_to_install() -> None:
    """A torch that has given its tools to torchao needs that beside it."""
    with pytest.raises(UsageError, match=r"needs torchao, because this torch has no PT2E for cpu: pip install torchao"):
        exported("")


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"flags": frozenset({"sse4_2"})}, "int8 kernels need a CPU with AVX2"),
        ({"stack": ("ipex",), "knobs": (("weights_prepack", "off"),)}, "int8 does not go through ipex.optimize"),
        ({"knobs": (("channels_last", "off"),)}, "int8 convolutions always use the channels-last layout"),
        ({"dtype": ("fp32",), "knobs": (("quantisation", "dynamic"),)}, "quantisation is for int8, not for fp32"),
        ({"knobs": (("quantisation", "half"),)}, "quantisation: expected one of static, dynamic, got 'half'"),
        ({"device": ("xpu",), "stack": ("ipex",), "accelerators": {"xpu": ""}}, "quantize_jit, which is not supported"),
        ({"mode": ("other",)}, "int8 is built for infer, infer_compile, infer_jit"),
    ],
)
def test_what_int8_cannot_do_is_refused_with_the_reason(wishes: dict[str, Any], sentence: str) -> None:
    """A wish that no cell can meet ends in one sentence before anything is measured."""

    class Other(Infer):
        artifact = ""

    registry.modes.add("other", Other())
    assert sentence in plan_records.refusal(plan, wishes)
