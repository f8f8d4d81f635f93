"""Each thing that makes a step slower in secret is named by the fingerprint: that, and nothing else."""

import importlib.util
import re
from typing import Any

import pytest
from bench_cases import alone

from ipexperf.bench.machine import facts
from ipexperf.proof import losses, structure

pytest.importorskip("torch")

IPEX = importlib.util.find_spec("intel_extension_for_pytorch") is not None
Prints = dict[str, dict[str, Any]]


def fingerprints(what: str, **variables: str) -> Prints:
    prints = alone("injected.py", arguments=(what,), **variables)
    for name, fingerprint in prints.items():
        assert fingerprint["unstable"] == [], name
        assert fingerprint["missing"] == {}, name
        assert fingerprint["unparsed"] == [], name
    return prints


@pytest.fixture(scope="module")
def stock() -> Prints:
    return fingerprints("stock")


@pytest.fixture(scope="module")
def ipex() -> Prints:
    if not IPEX:
        pytest.skip("needs IPEX, in a process of its own")
    return fingerprints("ipex")


def differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    return "\n".join(structure.diff(old, new).lines())


def lost(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    """The kinds of losses. The way back has none."""
    assert structure.diff(new, old).losses() == []
    return {change.loss for change in structure.diff(old, new).changes} - {""}


@pytest.mark.torch
def test_instructions_that_were_masked_are_named(stock: Prints) -> None:
    """Every convolution takes another kernel, oneDNN says why, and no operator of torch's changed."""
    masked = fingerprints("plain", ONEDNN_MAX_CPU_ISA="SSE41")
    difference = differences(stock["plain"], masked["plain"])
    assert re.search(r"^convolution: \S+ -> jit:sse41 in 2 of 2 calls", difference, re.MULTILINE), difference
    assert "ONEDNN_MAX_CPU_ISA: not set -> SSE41" in difference
    assert "oneDNN's instructions: " in difference
    assert "aten::" not in difference
    assert lost(stock["plain"], masked["plain"]) == {losses.WEAKER}


@pytest.mark.parametrize(
    ("before", "after", "only"),
    [
        ("turned", "turned, contiguous", "+1 aten::contiguous a step (1 -> 2): a copy, to lie contiguous"),
        ("plain", "cast", "+2 aten::to a step (0 -> 2): a cast or a copy"),
    ],
)
def test_work_that_slipped_in_is_one_line(stock: Prints, before: str, after: str, only: str) -> None:
    """An extra copy, an extra cast: that, and nothing else."""
    assert [line.split("; ")[0] for line in differences(stock[before], stock[after]).splitlines()] == [only]
    assert lost(stock[before], stock[after]) == set()


@pytest.mark.parametrize(
    ("before", "after", "lines", "kinds"),
    [
        (
            "jit",
            "not frozen",
            ["graph no longer frozen: ", "+2 aten::batch_norm a step (0 -> 2): BatchNorm that is not folded"],
            {losses.UNFROZEN, losses.UNFOLDED},
        ),
        (
            "bf16",
            "bf16, autocast off",
            ["aten::conv2d a step (4 -> 2), bfloat16 no more", "bfloat16 -> float32 in "],
            {losses.WIDER},
        ),
        (
            "int8",
            "int8, observed",
            ["+1 aten::aminmax a step (0 -> 1): an observer that watches values"],
            {losses.OBSERVER},
        ),
        ("plain", "channels_last off", ["images acdb", "reorder: +"], set()),
    ],
)
def test_what_stock_lost_is_named(stock: Prints, before: str, after: str, lines: list[str], kinds: set[str]) -> None:
    difference = differences(stock[before], stock[after])
    assert [line for line in lines if line not in difference] == [], difference
    if before == "bf16" and "avx512bw" not in facts.cpu_flags():
        kinds = set()  # oneDNN has no bf16 kernels for this CPU, so none of them can be lost
    assert lost(stock[before], stock[after]) == kinds


@pytest.mark.torch
@pytest.mark.parametrize(
    ("before", "after", "lines", "kinds"),
    [
        (
            "plain",
            "weights_prepack off",
            ["torch_ipex::convolution_forward a step (4 -> 0): no packed convolution is left"],
            {losses.UNPACKED},
        ),
        (
            "plain",
            "conv_bn_folding off",
            ["+2 aten::batch_norm a step (0 -> 2): BatchNorm that is not folded"],
            {losses.UNFOLDED},
        ),
        (
            "jit",
            "fusion off",
            ["relu no longer fused: 2 relu alone (2 -> 0 fused)", "fused eltwise_relu -> none in 2 of 2 calls"],
            {losses.UNFUSED, losses.UNPACKED},
        ),
    ],
)
def test_what_ipex_lost_is_named(ipex: Prints, before: str, after: str, lines: list[str], kinds: set[str]) -> None:
    difference = differences(ipex[before], ipex[after])
    assert [line for line in lines if line not in difference] == [], difference
    assert lost(ipex[before], ipex[after]) == kinds


@pytest.mark.torch
def test_nothing_is_named_where_nothing_changed(stock: Prints) -> None:
    """Another process of the same software tells the same."""
    assert fingerprints("plain")["plain"]["digest"] == stock["plain"]["digest"]
