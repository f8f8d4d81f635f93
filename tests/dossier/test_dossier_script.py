"""The script of a dossier: for every kind of step that is written down, code that compiles, in at most 60 lines."""

import ast
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench.cell import Settings
from ipexperf.bench.machine.source import Replaced
from ipexperf.case import FunctionCase, NetworkCase
from ipexperf.compare.arm import Arm
from ipexperf.compare.walk import Suite
from ipexperf.conduct import process
from ipexperf.conduct.conditions import Conditions
from ipexperf.dossier import script

SHORT = ("infer", "infer_jit", "infer_compile", "train", "train_compile", "multistream")
LONG = ("decode", "prefill", "load", "realtime", "train_ddp")


def arm(case: NetworkCase, **variables: str) -> Arm:
    return Arm(case, Conditions(Settings(threads=2), variables=variables))


def case(mode: str, stack: str = "stock", dtype: str = "bf16", model: str = "resnet18") -> NetworkCase:
    return NetworkCase(model, "cpu", dtype, mode, stack, 32, 32, data="digits")


@pytest.mark.parametrize(("mode", "stack"), [("infer_export", "stock"), *itertools.product(SHORT, ("stock", "ipex"))])
def test_a_kind_of_step_is_a_short_script(mode: str, stack: str) -> None:
    one = arm(case(mode, stack))
    text, why_not = script.of(one, one, None)
    assert why_not == ""
    ast.parse(text)
    assert len(text.splitlines()) <= 60
    assert "steps()" in text.partition("def work():")[2]


def test_int8_is_calibrated_with_the_batch() -> None:
    one = arm(case("infer_jit", "ipex", "int8"))
    assert "for batch in calibration:" in script.of(one, one, None)[0]


@pytest.mark.parametrize("mode", LONG)
def test_what_is_no_short_script_says_so(mode: str) -> None:
    one = arm(case(mode, model="gpt_small" if mode in ("decode", "prefill") else "resnet18"))
    text, why_not = script.of(one, one, None)
    assert (text, mode in why_not) == ("", True)


def test_arms_that_differ_in_their_case_have_a_part_each() -> None:
    text, _ = script.of(arm(case("infer", "stock")), arm(case("infer", "ipex")), None)
    ast.parse(text)
    assert len(text.splitlines()) <= 60
    assert [text.count(f'if sys.argv[1] == "{name}":') for name in "ab"] == [1, 1]


def test_no_loop_is_split_between_arms() -> None:
    text, _ = script.of(arm(case("train", dtype="fp32")), arm(case("train", dtype="bf16")), None)
    tree = ast.parse(text)
    [work] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "work"]
    parts = [node for node in work.body if isinstance(node, ast.If)]
    assert [any(isinstance(node, ast.For) for node in part.body) for part in parts] == [True, True]


def test_a_variable_that_one_arm_must_not_see_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    text, _ = script.of(arm(case("infer"), ONEDNN_MAX_CPU_ISA=process.UNSET), arm(case("infer")), None)
    assert "'ONEDNN_MAX_CPU_ISA': None" in text
    assert "'ONEDNN_MAX_CPU_ISA': 'AVX2'" in text


def test_a_secret_is_not_handed_out() -> None:
    secret = {"HF_TOKEN": "hf_abcdefghijklmn"}
    text, _ = script.of(arm(case("infer"), **secret), arm(case("infer")), None)
    assert "hf_abc" not in text


def test_an_arm_has_its_interpreter_its_variables_and_its_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    variables = {"ONEDNN_MAX_CPU_ISA": "AVX2", **Replaced(str(tmp_path), str(there), ("src",)).variables}
    python = replace(arm(case("infer"), **variables).conditions, python="/other/python")
    text, _ = script.of(Arm(case("infer"), python), arm(case("infer")), None)
    names: dict[str, Any] = {}
    exec("ARMS" + text.partition("\ndef steps")[0].partition("\nARMS")[2], names)  # noqa: S102 - our own text
    (interpreter, folder, given), (_, here, _) = (names["ARMS"][side] for side in "ab")
    assert (interpreter, folder, here) == ("/other/python", str(there), str(tmp_path))
    assert given["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert given["OMP_NUM_THREADS"] == "2"
    assert given["PYTHONPATH"].startswith(f"{there}:{there}/src")
    assert not [name for name in given if name.startswith("IPEXPERF")]


def test_a_function_is_stepped_by_pytest_in_place_of_its_fixture(tmp_path: Path) -> None:
    one = arm(FunctionCase("tests/test_a.py::test_b[x-'y']", "cpu"))
    text, _ = script.of(one, one, Suite(tmp_path, (), {}, {}, benchmark=True))
    ast.parse(text)
    assert "def benchmark(self): return call\n        perf = benchmark\n" in text
    assert len(text.splitlines()) <= 60
