"""A row holds if a case that shows it has proven it, and only then."""

from __future__ import annotations

import dataclasses

import pytest
from evidence_records import BF16, FP32, INT8, UNTOLD, USED, WRONG, evidence, proven, row
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.result import Check
from ipexperf.tools.evidence import records
from ipexperf.tools.evidence.records import CaseRecord


def state(kind: str, *cases: CaseRecord, **subject: str) -> str:
    return next(one.state for one in evidence(*cases).rows if one.row == row(kind, **subject))


MODE = {"mode": "infer", "dtype": "bf16", "stack": "stock"}


def test_a_row_holds_by_a_case_whose_proof_holds() -> None:
    assert state("mode", proven(BF16), **MODE) == "held"
    assert state("mode", proven(FP32), **MODE) == "unreached"


def test_a_check_that_fails_is_the_reason_of_the_row() -> None:
    """Of the proof as of the accuracy."""
    for wrong in (proven(BF16, WRONG), proven(BF16, accuracy=(WRONG,))):
        [one] = [one for one in evidence(wrong).rows if one.row == row("mode", **MODE)]
        assert (one.state, one.why) == ("failed", "dtype: found float32, expected bfloat16")


def test_a_case_without_a_proof_shows_nothing() -> None:
    assert state("mode", CaseRecord(BF16, "ok"), **MODE) == "failed"


def test_one_case_that_holds_is_enough() -> None:
    """Another of the same row may have failed, for a reason of its own."""
    other = dataclasses.replace(BF16, model="resnet50")
    assert state("mode", proven(BF16, WRONG), proven(other), **MODE) == "held"


def test_a_case_with_a_setting_that_says_how_does_not_show_the_mode() -> None:
    """It may switch off what the row is about. One that says what is done does."""
    loaded = dataclasses.replace(BF16, knobs=(("input", "loader"),))
    assert state("mode", proven(loaded), **MODE) == "unreached"
    assert state("knob", proven(loaded), knob="input", value="loader", stack="stock") == "held"
    train = dataclasses.replace(BF16, mode="train", knobs=(("optimizer", "adam"),))
    assert state("mode", proven(train), mode="train", dtype="bf16", stack="stock") == "held"
    assert state("knob", proven(train), knob="optimizer", value="adam", stack="stock") == "held"


def test_a_setting_that_nobody_applies_is_not_shown_by_default() -> None:
    """IPEX makes no int8, and a text has no images to lay out."""
    ipex = dataclasses.replace(BF16, stack="ipex", knobs=(("weights_prepack", "off"),))
    assert state("knob", proven(ipex), knob="weights_prepack", value="off", stack="ipex") == "held"
    assert row("knob", knob="weights_prepack", value="on", stack="ipex") not in {one.row for one in evidence().rows}
    text = dataclasses.replace(FP32, model="gpt_small")
    assert state("knob", proven(text), knob="channels_last", value="off", stack="stock") == "unreached"


def test_instructions_are_shown_by_the_check_that_saw_them() -> None:
    """Not by a library that reports none, and not by a case of the dtype alone."""
    assert state("instructions", proven(BF16, USED), dtype="bf16", instructions="AVX-512 BF16") == "held"
    assert state("instructions", proven(BF16), dtype="bf16", instructions="AVX-512 BF16") == "unreached"
    assert state("instructions", proven(INT8, UNTOLD), dtype="int8", instructions="AVX-512 VNNI") == "unreached"


def test_a_failure_is_shown_by_a_launch_that_ends_so() -> None:
    case = dataclasses.replace(FP32, model="provokes_out_of_memory")
    full = CaseRecord(case, "out_of_memory", "can't allocate memory")
    assert state("failure", full, outcome="out_of_memory") == "held"
    assert state("failure", proven(case), outcome="out_of_memory") == "failed"
    assert state("mode", proven(case), mode="infer", dtype="fp32", stack="stock") == "unreached"


def test_a_placement_is_shown_by_its_check() -> None:
    case = dataclasses.replace(FP32, knobs=(("placement", "cores=0"),))
    placed = Check("placement", True, "cores 0", "cores 0")
    where = {"setting": "placement", "name": "cores", "value": ""}
    assert state("condition", proven(case, placed), **where) == "held"
    assert state("condition", proven(case), **where) == "failed"


def test_a_case_that_took_too_long_is_not_a_row_that_did_not_hold() -> None:
    slow = CaseRecord(BF16, "timed_out", "no answer within 240 s")
    [one] = [one for one in evidence(slow).rows if one.row == row("mode", **MODE)]
    assert (one.state, one.why) == ("unreached", "timed_out: no answer within 240 s")


@pytest.mark.parametrize(
    ("isa", "named"),
    [
        (("avx2", "amx_tile", "avx512_bf16"), "amx"),
        (("avx2", "avx512f", "avx512_vnni"), "avx512-vnni"),
        (("avx2",), "avx2"),
        ((), "baseline"),
    ],
)
def test_the_level_is_the_highest_of_the_flags(isa: tuple[str, ...], named: str) -> None:
    assert records.level(isa)[0] == named


def test_a_machine_is_named_by_its_model_and_level() -> None:
    assert evidence().machine == "some-9000-avx512-bf16-cpu"
    assert evidence().title == "Some 9000, AVX-512 BF16"


def test_a_variable_that_limits_the_instructions_is_named() -> None:
    assert records.limited({"ONEDNN_MAX_CPU_ISA": "AVX2"}) == "ONEDNN_MAX_CPU_ISA=AVX2"
    assert records.limited({"ONEDNN_MAX_CPU_ISA": "default", "OMP_NUM_THREADS": "2"}) == ""


@given(st.text(max_size=40))
def test_a_name_is_a_file_name_whatever_a_processor_is_called(cpu: str) -> None:
    """Without a folder in it, and never empty."""
    name = evidence(hardware={"cpu": cpu, "isa": [], "cores": 1, "accelerator": None}).machine
    assert name.strip("-") == name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
