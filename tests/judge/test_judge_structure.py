"""Differences of two fingerprints are described in words, the largest share of the time first."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_records import CONVOLUTION, captured, nodes, operator, processor

from ipexperf.judge.sentence import sentence
from ipexperf.outcomes import StructureGate
from ipexperf.proof import structure
from ipexperf.verdict import Structure, Verdict


def lines(old: Any, new: Any, section: str = "primitives") -> list[str]:
    return structure.diff(captured(**{section: old}), captured(**{section: new})).lines()


def test_another_implementation_is_reported_with_its_share() -> None:
    after = {**CONVOLUTION, "implementation": "jit:avx2"}
    old = captured({"primitives": [0.1], "operators": [0.2]}, primitives=[CONVOLUTION], operators=[operator("aten.x")])
    new = captured({"primitives": [0.81], "operators": [1.2]}, primitives=[after], operators=[operator("aten.x")])
    found = structure.diff(old, new)
    assert found.lines() == [
        "convolution: brgconv:avx512_core_amx -> jit:avx2 in 53 of 53 calls; 71 % of the time difference"
    ]
    assert [change.text for change in found.slower] == ["aten::x: +1e+03 ms a step, otherwise the same"]
    noisy = [{**side, "spread": {"operators": 0.6}} for side in (old, new)]
    assert structure.diff(*noisy).lines() == [found.lines()[0].partition(";")[0]], "the captures differ by more"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"types": "src:f32 wei:f32 dst:f32"}, "bf16 -> f32 in 53 of 53 calls"),
        (
            {"fused": "", "attributes": ""},
            "fused eltwise_relu -> none in 53 of 53 calls",
        ),
        ({"layouts": "src:abcd wei:Acdb32a dst:abcd"}, "images acdb -> abcd in 53 of 53 calls"),
        ({"shapes": "ffff"}, "other shapes"),
    ],
)
def test_each_facet_of_a_primitive_can_change(change: dict[str, Any], told: str) -> None:
    (line,) = lines([CONVOLUTION], [{**CONVOLUTION, **change}])
    assert line.startswith("convolution: ")
    assert told in line


def test_a_change_in_what_an_operator_calls_is_reported_once() -> None:
    """One more `contiguous` is one line: the copy inside is not a second one."""
    old = [operator("aten.linear", 2)]
    new = [
        *old,
        operator("aten.contiguous"),
        operator("aten.clone", aten_in_contiguous=1),
        operator("aten.copy_", aten_in_clone=1),
    ]
    found = structure.diff(captured(operators=old), captured(operators=new))
    assert found.lines() == ["+1 aten::contiguous a step (0 -> 1): a copy, to lie contiguous"]
    assert found.changes[0].evidence == ("with aten::clone, aten::copy_",)


def test_a_copy_that_also_appeared_elsewhere_has_its_own_line() -> None:
    """No changed operator called that copy."""
    old = [operator("aten.copy_", 1)]
    new = [operator("aten.contiguous"), operator("aten.copy_", 3, **{"": 2, "aten_in_contiguous": 1})]
    assert [line.split(" a step")[0] for line in lines(old, new, "operators")] == [
        "+1 aten::contiguous",
        "+2 aten::copy_",
    ]


def test_operators_of_another_dtype_are_one_line() -> None:
    """Lost autocast changes every operator at once."""
    old = [operator("aten.conv2d", 20, "bfloat16, bfloat16"), operator("aten.relu", 17, "bfloat16")]
    new = [operator("aten.conv2d", 20, "float32, float32"), operator("aten.relu", 17)]
    assert lines(old, new, "operators") == ["bfloat16 -> float32 in 20 aten::conv2d, 17 aten::relu"]


def test_operators_that_call_one_another_are_all_reported() -> None:
    """A circle of callers has no outermost operator: the comparison ends, and omits none."""
    new = [operator("aten.a", 1, aten_in_b=1), operator("aten.b", 1, aten_in_a=1)]
    found = structure.diff(captured(operators=[]), captured(operators=new))
    assert "aten::a" in str(found.changes)
    assert "aten::b" in str(found.changes)


def test_differences_of_a_graph_name_fusions_weights_and_fallbacks() -> None:
    old = nodes(ipex_prepack__convolution_relu_run=17, aten__flatten=1)
    new = nodes(aten___convolution=17, aten__relu=17, aten__flatten=1, prim__GetAttr=60, prim__FallbackGraph=2)
    told = lines(old, new, "graph")
    assert told == [
        "relu no longer fused: 17 relu alone (17 -> 0 fused)",
        "graph no longer frozen: 60 values read from modules",
        "graph no longer has packed weights: 17 -> 0 nodes",
        "+2 fallbacks to unoptimised graphs",
    ]
    assert lines(nodes(aten__flatten=1), nodes(aten__flatten=2), "graph") == ["graph: +1 aten::flatten"]


def test_differences_of_compiled_code_name_breaks_and_calls() -> None:
    old = {"graphs": 1, "frames": 1, "breaks": {}, "calls": {"extern_kernels.mm": 2}}
    new = {"graphs": 2, "frames": 3, "breaks": {"call to print": 1}, "calls": {"extern_kernels.mm": 1}}
    assert lines(old, new, "compiled") == [
        "torch.compile: graphs 1 -> 2",
        "torch.compile: frames 1 -> 3",
        "torch.compile: graph breaks 0 -> 1: call to print",
        "torch.compile: generated code calls -1 extern_kernels.mm",
    ]


def test_differences_of_processor_library_and_work_are_described() -> None:
    after = {**processor(threads=1, onednn="Intel SSE4.1"), "limits": {"ONEDNN_MAX_CPU_ISA": "SSE41"}}
    assert lines(processor(), after, "processor") == [
        "threads: 2 -> 1",
        "oneDNN's instructions: Intel AVX2 -> Intel SSE4.1",
        "ONEDNN_MAX_CPU_ISA: not set -> SSE41",
    ]
    old = {"created": {"reorder create:cache_hit": 2}, "unparsed": 0}
    new = {"created": {"reorder create:cache_hit": 1, "reorder create:cache_miss": 1}, "unparsed": 3}
    told = lines(old, new, "library")
    assert told[0].startswith("oneDNN: primitives made anew in a step 0 -> 1")
    assert told[1] == "lines of oneDNN's log that could not be read: 0 -> 3"
    assert lines(1000, 2000, "flops") == ["other work: floating point operations of a step: 1,000 -> 2,000"]


def test_added_and_removed_kernels_of_a_device_are_reported() -> None:
    assert lines([{"kernel": "gemm", "calls": 3}], [{"kernel": "copy", "calls": 1}], "kernels") == [
        "+1 copy a step (0 -> 1)",
        "-3 gemm a step (3 -> 0)",
    ]


def test_changes_are_sorted_by_share_of_the_time() -> None:
    """Other work comes first, then what took longer, then changes without a time, and last what took less."""
    old = captured({"operators": [0.1, 0.3]}, operators=[operator("aten.a"), operator("aten.gone")], flops=1)
    new = captured(
        {"operators": [0.1, 0.1, 0.6]}, operators=[operator("aten.a"), operator("aten.b"), operator("aten.c")], flops=2
    )
    told = structure.diff(old, new).lines()
    assert [line.split(" ")[1] for line in told] == ["work:", "aten::c", "aten::b", "aten::gone"]
    assert told[1].endswith("of the time difference")
    assert "time difference" not in told[3]


def test_without_a_difference_in_time_there_are_no_shares() -> None:
    old = captured({"operators": [1.0]}, operators=[operator("aten.a")])
    new = captured({"operators": [0.995, 0.01]}, operators=[operator("aten.a"), operator("aten.b")])
    assert structure.diff(old, new).lines() == ["+1 aten::b a step (0 -> 1)"]


def test_a_section_missing_on_one_side_is_unknown() -> None:
    """Likewise a section that differed between two steps."""
    old, new = captured(operators=[], flops=1), captured(operators=[operator("aten.a")])
    new["unstable"] = ["operators"]
    found = structure.diff(old, new)
    assert found.changes == ()
    assert found.unknown == ("operators: not the same twice, now", "flops: not captured now")


def judged(*launches: Any, baseline: str | None, before: Any = None, gate: StructureGate = "warn") -> Structure:
    return structure.judge(launches, baseline, lambda: before, gate=gate)


BEFORE = captured(flops=1)
AFTER = captured(flops=2)


def test_another_digest_is_a_warning_and_fails_with_the_gate_fail() -> None:
    found = judged(AFTER, AFTER, baseline=structure.name(BEFORE), before=BEFORE)
    assert (found.outcome, found.fails) == ("changed", False)
    assert found.changes == ("other work: floating point operations of a step: 1 -> 2",)
    assert judged(AFTER, baseline=structure.name(BEFORE), before=BEFORE, gate="fail").fails
    assert not judged(AFTER, baseline=structure.name(BEFORE), before=BEFORE, gate="loss").fails
    lost = judged(AFTER, baseline=structure.name(BEFORE))
    assert (lost.outcome, lost.changes) == ("changed", ())
    assert "does not have the run" in lost.reason


def test_a_loss_fails_unless_the_gate_only_warns() -> None:
    """It can only cost time, so no measurement is needed."""
    fused = captured(primitives=[CONVOLUTION])
    alone = captured(primitives=[{**CONVOLUTION, "fused": "", "attributes": ""}])
    gates: tuple[StructureGate, ...] = ("warn", "loss", "fail")
    found = [judged(alone, baseline=structure.name(fused), before=fused, gate=gate) for gate in gates]
    assert [one.fails for one in found] == [False, True, True]
    (loss,) = {one.losses for one in found}
    assert loss == ("a fusion lost: convolution: fused eltwise_relu -> none in 53 of 53 calls",)
    assert "can only cost time" in found[0].reason


@pytest.mark.parametrize(
    ("launches", "baseline", "outcome"),
    [
        ([], "1:abc", "unknown"),
        ([None, None], "1:abc", "unknown"),
        ([BEFORE], None, "unknown"),
        ([BEFORE], "7:abc", "unknown"),
        ([{**BEFORE, "digest": None, "missing": {"operators": "no profiler"}}], "1:abc", "unknown"),
        ([{**BEFORE, "digest": None, "unstable": ["operators"]}], "1:abc", "unstable"),
        ([BEFORE, AFTER], "1:abc", "unstable"),
        ([BEFORE, {"version": 1, "digest": "other", "unstable": [], "missing": {}}], "1:abc", "unstable"),
    ],
)
def test_an_unknown_or_unstable_structure_never_fails(launches: list[Any], baseline: str | None, outcome: str) -> None:
    """An old baseline, a failed profiler, a random network: each has a reason, and none is an alarm."""
    found = judged(*launches, baseline=baseline, gate="fail")
    assert (found.outcome, found.fails) == (outcome, False)
    assert found.reason


ROWS = st.lists(
    st.builds(
        operator,
        st.sampled_from(["aten.a", "aten.b", "aten.c"]),
        st.integers(1, 4),
        st.sampled_from(["float32", "bfloat16"]),
    ),
    unique_by=lambda row: row["operator"],
)


@given(ROWS, ROWS)
def test_two_structures_have_a_line_exactly_if_they_differ(old: list[Any], new: list[Any]) -> None:
    before, after = captured(operators=old), captured(operators=new)
    same = {row["operator"]: row for row in old} == {row["operator"]: row for row in new}
    assert (structure.diff(before, after).lines() == []) == same


def test_different_structures_of_two_arms_are_reported_and_fail_nothing() -> None:
    """They may have been made to differ."""
    slow = {**CONVOLUTION, "implementation": "jit:avx2"}
    found = structure.between(captured(primitives=[CONVOLUTION]), captured(primitives=[slow]))
    assert (found.outcome, found.fails) == ("changed", False)
    assert found.changes == ("convolution: brgconv:avx512_core_amx -> jit:avx2 in 53 of 53 calls",)
    assert found.losses == (f"weaker instructions: {found.changes[0]}",)
    assert structure.between(captured(primitives=[slow]), captured(primitives=[slow])).outcome == "same"


def test_the_reason_names_the_arm_without_a_fingerprint() -> None:
    known, shaky = captured(primitives=[CONVOLUTION]), {**captured(primitives=[]), "unstable": ["operators"]}
    assert structure.between(None, known) == Structure("unknown", "the other arm: nothing was captured")
    assert structure.between(known, None).reason == "nothing was captured"
    assert structure.between(shaky, known).outcome == "unstable"
    assert structure.between({**known, "version": 9}, known).outcome == "unknown"


def test_allocations_are_reported_beside_the_structure_and_not_in_the_digest() -> None:
    """They depend on threads and caches."""
    taken = {"allocations": 12, "allocated": 4 * 2**20, "peak": 2**20}
    old = {**captured(primitives=[CONVOLUTION]), "beside": {"memory": taken}}
    new = {**old, "beside": {"memory": {**taken, "allocations": 13, "peak": 2 * 2**20}}}
    assert structure.memory(old, new) == "12 -> 13 allocations, 4.00 -> 4.00 MiB in all, 1.00 -> 2.00 MiB at once"
    assert structure.diff(old, new).changes == ()
    assert structure.memory(old, old) == ""
    assert structure.memory(captured(), new) == ""
    function = {**old, "beside": {"memory": {"peak": 2**10}}}
    assert structure.memory(function, new) == "1.00 KiB -> 2.00 MiB at once"


def working(flops: int, parameters: int = 10, *, mean: float = 0.0, shape: tuple[int, ...] = (2, 3)) -> dict[str, Any]:
    beside = {
        "work": {"step_flops": flops, "parameters": parameters},
        "batch": [{"shape": shape, "mean": mean, "rms": 1.0}],
    }
    return {**captured(flops=flops), "beside": beside}


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (working(1910), "+91 % floating point operations"),
        (working(995, 25), "-0.5 % floating point operations, +150 % parameters"),
        (working(1000, mean=0.5), "other values in the batch"),
        (working(1000, mean=0.0001), ""),
        (working(1000, shape=(4, 3)), "another batch (2x3 -> 4x3)"),
    ],
)
def test_other_work_of_an_arm_is_said_in_numbers_and_fails_nothing(new: dict[str, Any], said: str) -> None:
    found = structure.between(working(1000), new)
    assert (found.work, found.fails) == (said, False)
    assert sentence(Verdict("ok", structure=found)) == said


@pytest.mark.parametrize(("gate", "fails"), [("warn", False), ("loss", True), ("fail", True)])
def test_more_work_than_the_baseline_fails_although_its_structure_is_nowhere(gate: StructureGate, fails: bool) -> None:  # noqa: FBT001
    """The baseline's own numbers are enough where the history does not have its run. Files keep six digits."""
    known = {"step_flops": 1.23457e9, "parameters": 10.0}
    old = structure.name(working(1_234_567_890))
    found = structure.judge([working(2_358_024_670)], old, lambda: None, known=known, gate=gate)
    assert (found.work, found.fails) == ("+91 % floating point operations", fails)
    assert structure.judge([working(1_234_567_890)], old, lambda: None, known=known, gate=gate).work == ""
