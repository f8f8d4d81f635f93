"""The cover: rows come from the registries, and few cases show all of them, what only this machine can show first."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import get_args

import pytest

from ipexperf.bench import loading, precision, registry
from ipexperf.bench.api import Knob
from ipexperf.bench.machine.facts import Facts
from ipexperf.plan.options import Options
from ipexperf.tools.evidence import NETWORKS, cover, features
from ipexperf.tools.evidence.cover import Cover, Planner
from ipexperf.tools.evidence.features import Row

FAKES = Path(__file__).parents[1] / "fakes"
FOR_EVIDENCE = str(NETWORKS)
INSTALLED = {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0"}
AVX2 = frozenset({"avx2"})
BF16 = AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16"}
AMX = BF16 | {"amx_tile", "amx_bf16", "amx_int8"}


def facts(flags: frozenset[str] = BF16) -> Facts:
    """An interpreter that has both stacks, on a CPU with these flags."""
    return Facts("python", INSTALLED, cpu_flags=flags, cores=4, compiler="/bin/g++", iomp5="/lib/libiomp5.so")


def planner(here: Facts | None = None) -> Planner:
    loading.load([FOR_EVIDENCE])
    return Planner("cpu", Options(load=(FOR_EVIDENCE,)), here or facts())


_COVERS: dict[frozenset[str], Cover] = {}


def covered(flags: frozenset[str] = BF16) -> tuple[Planner, Cover]:
    """The planner and cover of such a CPU. The cover is made once for all tests, because that takes a second."""
    made = planner(facts(flags))
    if flags not in _COVERS:
        _COVERS[flags] = made.make()
    return made, _COVERS[flags]


def row(kind: str, **subject: str) -> Row:
    return Row(kind, tuple(subject.items()))  # type: ignore[arg-type]


@pytest.fixture
def fakes(registries: None) -> None:
    """The fakes alone: the shipped modes would run on the fake device too."""
    for leaves in (registry.modes, registry.models, registry.stacks):
        leaves._items.clear()
    loading.load([str(FAKES / "fake.py"), str(FAKES / "movers.py")])


def test_a_new_leaf_is_a_new_row() -> None:
    """A mode, a stack and a setting that somebody adds need no list."""
    before = set(features.every("cpu"))
    loading.load([str(FAKES / "fake.py"), str(FAKES / "movers.py")])
    new = set(features.every("cpu")) - before
    assert row("mode", mode="whirl", dtype="bf16", stack="stock") in new
    assert row("mode", mode="infer", dtype="fp32", stack="old") in new
    assert row("knob", knob="packed", value="off", stack="old") in new
    assert row("model", model="tiny") in new


def test_every_row_is_shown_by_a_case_or_has_a_reason() -> None:
    """And each case shows a row that no case before it shows."""
    made, whole = covered()
    left = set(made.rows) - set(whole.impossible)
    for one in whole.planned:
        shown = {x for x in left if made.shows(x, one.case)}
        assert shown, one.case.id
        left -= shown
    assert left == set()
    assert all(whole.impossible.values())


@pytest.mark.parametrize("flags", [BF16, AVX2])
def test_most_valuable_rows_come_first_and_models_after_them(flags: frozenset[str]) -> None:
    """A large model is only there for its own row. After all of them come emulated dtypes in modes that take long."""
    _, whole = covered(flags)
    cases = [one.case for one in whole.planned]
    small = {*cover.SMALL, *map(features.failing, features.PROVOKED)}
    large = [number for number, case in enumerate(cases) if case.model not in small]
    assert large[0] > len(cases) / 2
    assert large == list(range(large[0], large[-1] + 1))
    assert len({cases[number].model for number in large}) == len(large)
    last = cases[large[-1] + 1 :]
    assert {case.mode for case in last} >= {"infer_compile", "realtime"}
    assert all(precision.emulated("cpu", case.dtype, flags) for case in last)
    assert ("train_compile", "fp32") in {(case.mode, case.dtype) for case in cases[: large[0]]}


@pytest.mark.parametrize(
    ("flags", "shown", "reason"),
    [
        (AVX2, (), "this CPU has no amx_bf16"),
        (BF16, ("AVX-512 BF16",), "this CPU has no amx_bf16"),
        (AMX, ("AMX",), ""),
    ],
)
def test_instructions_are_rows_of_the_processors_that_have_them(
    flags: frozenset[str], shown: tuple[str, ...], reason: str
) -> None:
    """Where there are better ones, oneDNN takes those."""
    rows = [one for one in features.every("cpu") if one.kind == "instructions" and one.of("dtype") == "bf16"]
    why = {one.of("instructions"): features.not_here(one, "cpu", facts(flags)) for one in rows}
    assert tuple(name for name, text in why.items() if not text) == shown
    assert why["AMX"] == reason
    if flags == AMX:
        assert why["AVX-512 BF16"] == "this CPU computes bf16 with AMX"


def test_a_row_that_no_case_can_show_says_why() -> None:
    why = covered()[1].impossible
    assert why[row("mode", mode="multistream", dtype="fp32", stack="stock")].startswith("multistream is IPEX's runtime")
    assert (
        why[row("mode", mode="train", dtype="int8", stack="ipex")] == "int8 is for inference: there is no int8 training"
    )
    assert why[row("knob", knob="optimizer", value="lamb", stack="stock")].startswith("Lamb comes with IPEX")
    assert why[row("mode", mode="decode", dtype="fp32", stack="torchao")].startswith("torchao not installed")


@pytest.fixture
def with_settings(fakes: None, monkeypatch: pytest.MonkeyPatch) -> tuple[Planner, Cover]:
    """The planner and cover of the fakes, with two more settings of the mode `teach`."""
    mode = registry.modes.get("teach")
    monkeypatch.setattr(
        mode, "knobs", (*mode.knobs, Knob("more", "a setting"), Knob("still", "another")), raising=False
    )
    made = Planner("fake", Options(), Facts("python", {}))
    return made, made.make()


def test_one_case_shows_several_settings(with_settings: tuple[Planner, Cover]) -> None:
    _, whole = with_settings
    settings = [dict(one.case.knobs) for one in whole.planned]
    assert {"searched": "on"} in settings
    assert {one["update"] for one in settings if "update" in one} == {"quick", "own"}
    assert {"more": "off", "still": "off"} in settings


def test_a_case_of_several_settings_falls_apart(with_settings: tuple[Planner, Cover]) -> None:
    """Into the plain one and one for each setting, so that one that fails does not take others along."""
    made, whole = with_settings
    packed = next(one for one in whole.planned if len(one.case.knobs) > 1)
    alone = made.alone(packed)
    assert [one.case.knobs for one in alone] == [(), *((setting,) for setting in packed.case.knobs)]
    assert [one.case.knobs for one in made.alone(alone[1])] == [()]
    assert made.alone(alone[0]) == []


def test_conditions_are_rows_of_the_host_alone(fakes: None) -> None:
    """An accelerator's workers are not placed, and its device may be lost instead."""
    assert {one.kind for one in features.every("cpu")} == set(get_args(features.Kind))
    kinds = {one.kind for one in features.every("cuda")}
    assert kinds == {"failure", "mode", "knob", "model"}
    lost = row("failure", outcome="device_lost")
    assert lost in features.every("xpu")
    assert features.not_here(lost, "xpu", facts()) == "it cannot be provoked safely on xpu"
    assert features.not_here(lost, "cuda", facts()) == ""


def test_a_planned_case_is_under_its_condition() -> None:
    planned = [one for one in covered()[1].planned if dict(one.case.knobs).keys() & {"placement", "start"}]
    assert len(planned) == sum(one.kind == "condition" for one in features.every("cpu"))
    for one in planned:
        text = str(one.options.placement) if one.options.placement else one.options.start
        assert text in dict(one.case.knobs).values()
        assert one.case.settings == ()


def test_a_card_has_a_plan_without_a_list_of_its_own() -> None:
    """On cuda a lost device is provoked, and what the stack or the mode cannot do there has its reason."""
    loading.load([FOR_EVIDENCE])
    here = dataclasses.replace(facts(), accelerators={"cuda": ""})
    made = Planner("cuda", Options(device=("cuda",), load=(FOR_EVIDENCE,)), here)
    whole = made.make()
    ids = {one.case.id for one in whole.planned}
    assert "provokes_device_lost-cuda-fp32-infer-stock" in ids
    assert any(one.case.dtype == "fp16" and one.case.mode == "train" for one in whole.planned)
    assert any(dict(one.case.knobs).get("input") == "host" for one in whole.planned)
    assert {one.case.device for one in whole.planned} == {"cuda"}
    why = whole.impossible[row("mode", mode="infer", dtype="fp32", stack="ipex")]
    assert why == "IPEX optimises for cpu and xpu, not for cuda"


def test_what_does_little_to_convolutions_is_shown_by_linear_layers() -> None:
    """On a network of convolutions, such a setting changes nothing that proof could find."""
    made, whole = covered()
    wanted = [one for one in made.rows if (one.of("knob"), one.of("value")) in cover.OF_LINEAR_LAYERS]
    assert {(one.of("knob"), one.of("stack")) for one in wanted} >= {
        ("linear_bn_folding", "ipex"),
        ("quantisation", "ipex"),
        ("quantisation", "stock"),
    }
    for one in (one for one in wanted if one not in whole.impossible):
        cases = [planned.case for planned in whole.planned if features.shows(one, planned.case, made.facts)]
        assert features.LINEAR in {case.model for case in cases}
