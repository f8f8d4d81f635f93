"""Arms: their conditions, and the differences between two of them."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compare_play import CASE, A, B

from ipexperf.bench import loading
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import NetworkCase
from ipexperf.compare import arm
from ipexperf.compare.arm import Arm
from ipexperf.conduct import placement as placing
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import UsageError
from ipexperf.plan import arms, placement
from ipexperf.plan.arms import parse
from ipexperf.plan.options import Options


def given(base: Arm, **more: Any) -> Arm:
    """The arm under other conditions."""
    return replace(base, conditions=replace(base.conditions, **more))


def test_every_setting_of_an_arm_is_a_difference() -> None:
    """Case, knobs, variables and interpreter. An arm does not differ from itself."""
    assert arm.differ(A, A, None) == []
    assert arm.differ(A, B, None) == ["dtype: fp32 -> bf16"]
    more = given(A, python="/other/python", variables={"OMP_NUM_THREADS": "1"})
    lines = arm.differ(A, replace(more, case=replace(CASE, knobs=(("level", "O0"),))), None)
    assert lines[:2] == ["level: as it is -> O0", "OMP_NUM_THREADS: as it is -> 1"]
    assert lines[2].endswith(" -> /other/python")


@pytest.mark.parametrize("spelling", ["here/bin/python", "here/bin/python3", "here/bin/../bin/python"])
def test_two_spellings_of_an_interpreter_are_no_difference(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two environments are one, even if both link `python` to the same file."""
    for name in ("here", "there"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").symlink_to(sys.executable)
        (tmp_path / name / "bin" / "python3").symlink_to("python")
    monkeypatch.chdir(tmp_path)
    a, b, c = (
        given(A, python=python) for python in (str(tmp_path / "here" / "bin" / "python"), spelling, "there/bin/python")
    )
    assert arm.differ(a, b, None) == []
    assert arm.differ(a, c, None) == [f"interpreter: {tmp_path}/here/bin/python -> there/bin/python"]


def test_a_variable_with_the_same_value_in_the_shell_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the processes get counts."""
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    b = given(A, variables={"ONEDNN_MAX_CPU_ISA": "AVX2"})
    assert arm.differ(A, b, None) == ["ONEDNN_MAX_CPU_ISA: as it is -> AVX2"]
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert arm.differ(A, b, None) == []
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    assert arm.differ(A, b, None) == ["ONEDNN_MAX_CPU_ISA: SSE41 -> AVX2"]


def test_a_possible_secret_is_a_difference_and_is_masked() -> None:
    a, b = (given(A, variables={"MY_TOKEN": value}) for value in ("hunter22", "s3cret55"))
    [line] = arm.differ(a, b, None)
    assert line.startswith("MY_TOKEN: hidden-")
    assert "hunter22" not in line
    assert "s3cret55" not in line


@pytest.fixture
def made(fake: str, tmp_path: Path) -> Callable[..., Arm]:
    """An arm of its words, in a run with these options."""
    loading.load((fake,))

    def made(text: str, case: NetworkCase = CASE, **options: Any) -> Arm:
        conductor = Conductor(Options(load=(fake,), **options), tmp_path, lambda _: None)
        return arm.arm(conductor, case, parse(text, "arm"), "its name")

    return made


def test_the_threads_of_an_arm_replace_one_thread_a_core(made: Callable[..., Arm]) -> None:
    plain, single = (made(text, placement=placement.read("threads=2")) for text in ("", "OMP_NUM_THREADS=1"))
    assert (plain.conditions.settings.threads, single.conditions.settings.threads) == (2, 1)
    assert single.conditions.variables["OMP_NUM_THREADS"] == "1"
    assert plain.name == single.name == "its name"


def test_the_placement_of_an_arm_has_the_threads_of_the_arm(made: Callable[..., Arm]) -> None:
    """Multistream, which has one thread a core, refuses them."""
    placed = placement.read("cores=0")
    one = replace(CASE, knobs=((placement.KNOB, "cores=0"),))
    plain, told = (made(text, one, placement=placed).conditions.settings for text in ("", "OMP_NUM_THREADS=3"))
    assert plain.placement is not None
    assert told.placement == {**plain.placement, "threads": 3}
    streams = NetworkCase("resnet18", "cpu", "fp32", "multistream", "ipex", 64, 32, 1, "digits")
    packages = dict.fromkeys(("torch", "torchvision", "intel-extension-for-pytorch"), "2.8.0")
    facts = Facts("python", {**packages, "torchvision": "0.23.0"}, frozenset({"avx2", "fma"}), iomp5="libiomp5.so")
    alone, threaded = (arms.parse(text, "arm a").case(streams, facts)[1] for text in ("", "OMP_NUM_THREADS=1"))
    assert alone is None
    assert "always uses one thread per core" in str(threaded)


def test_the_threads_of_an_arm_that_waits_sleep_whatever_the_shell_says(
    made: Callable[..., Arm], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spinning threads would use the core of the other arm's turn. Only the arm itself may ask for that."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert made("").conditions.variables["OMP_WAIT_POLICY"] == "PASSIVE"
    spinning = made("OMP_WAIT_POLICY=ACTIVE").conditions.variables
    assert (spinning["OMP_WAIT_POLICY"], "KMP_BLOCKTIME" in spinning) == ("ACTIVE", False)


@pytest.mark.process
def test_an_arm_that_cannot_import_its_stack_is_refused_in_one_sentence(fake: str) -> None:
    """Before anything is measured. An arm without an interpreter or variables of its own is not checked."""
    loading.load((fake,))
    options = Options(load=(fake, "/nowhere/at/all.py"), timeout=30)
    arm.check_imports([CASE], parse("dtype=bf16", "arm"), options, "--perf-against")
    with pytest.raises(UsageError, match=r"^--perf-against: it cannot run plain on fake: .*all\.py"):
        arm.check_imports([CASE], parse("A=1", "arm"), options, "--perf-against")


def test_what_an_arm_preloads_is_of_its_own_interpreter(
    made: Callable[..., Arm], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the OpenMP runtime that a mode requires, which the interpreter of the run may lack."""
    looked: list[str | None] = []

    def find(options: Options, openmp: str = "") -> None:
        del openmp
        looked.append(options.python)

    monkeypatch.setattr(placing, "find", find)
    made(f"python={sys.executable}", python="/of/the/run")
    assert looked == [sys.executable]
