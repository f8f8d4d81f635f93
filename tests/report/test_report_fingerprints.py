"""Changes of structure in the summary, in the block of a failed test, and in JUnit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from report_records import FAST, PLAIN, SLOW, measurement, told

from ipexperf.case import AGAINST
from ipexperf.report import fingerprints, junit
from ipexperf.report.block import failure_block
from ipexperf.result import Structure, Verdict

CHANGED = Structure(
    "changed",
    "the digest is not the baseline's",
    ("convolution: brgconv:avx512_core_amx -> jit:avx2 in 53 of 53 calls; 71% of the time difference", "+14 reorder"),
)
FINGERPRINT: dict[str, Any] = {
    "version": 1,
    "digest": "0123456789abcdef",
    "structure": {
        "primitives": [
            {"primitive": "convolution", "implementation": "brg_conv_fwd:avx2", "calls": 17},
            {"primitive": "convolution", "implementation": "brg_conv_fwd:avx2", "calls": 3},
            {"primitive": "reorder", "implementation": "jit:uni", "calls": 2},
        ],
        "operators": [{"operator": "aten::linear", "calls": 1}],
        "library": {"created": {}, "unparsed": 1},
        "flops": 1_820_000_000,
    },
    "unstable": [],
    "missing": {},
    "unparsed": ["onednn_verbose,v9"],
    "seconds": 1.5,
}


def verdict(structure: Structure | None, outcome: Any = "ok") -> Verdict:
    return Verdict(outcome, "within the noise", structure=structure)


def test_the_summary_names_changed_and_unstable_cases() -> None:
    """The first change of each case, and how many more there are. Equal and unknown ones have no line."""
    cases = [PLAIN, FAST, replace(PLAIN, batch=9), replace(PLAIN, batch=10)]
    found = (CHANGED, Structure("unstable", "why"), Structure("same"), None)
    verdicts = {case.uid: verdict(one) for case, one in zip(cases, found, strict=True)}
    lines = told([measurement(case, 0.01) for case in cases], verdicts)
    text = " ".join(" ".join(lines).split())
    assert "STRUCTURE CHANGED (1): these run different kernels than their baseline did" in text
    assert f"{PLAIN.id}: {CHANGED.changes[0]} (and 1 more change)" in text
    assert f"STRUCTURE UNSTABLE (1): the kernels differ from step to step: {FAST.id}" in text
    assert max(map(len, lines)) <= 120


def test_a_case_of_a_pair_is_compared_with_the_other_arm() -> None:
    """It has no baseline."""
    case = replace(PLAIN, knobs=((AGAINST, "stack=ipex"),))
    lines = told([measurement(case, 0.01)], {case.uid: verdict(CHANGED)})
    assert "STRUCTURE CHANGED (1): these run different kernels than the other arm does" in lines


def test_many_changed_cases_are_counted() -> None:
    cases = [replace(PLAIN, batch=batch) for batch in range(1, 8)]
    lost = Structure("changed", "this history does not have the run")
    lines = told([measurement(case, 0.01) for case in cases], {case.uid: verdict(lost) for case in cases})
    *_, heading, first, _, _, _, more = lines
    assert heading.startswith("STRUCTURE CHANGED (7)")
    assert first.endswith(": this history does not have the run")
    assert more.strip() == "and 3 more cases"


def test_the_block_of_a_failed_test_has_the_changes_of_structure() -> None:
    """Below the reason for the speed. If the structure alone failed the test, it comes first."""
    slow = failure_block(measurement(FAST, 0.02), replace(SLOW, structure=CHANGED), [], "again", "accept")
    assert "what ran    changed: the digest is not the baseline's" in slow
    assert all(change in " ".join(slow.split()) for change in CHANGED.changes)
    alone = verdict(replace(CHANGED, fails=True))
    assert alone.fails
    block = failure_block(measurement(FAST, 0.01), alone, [], "again", "accept")
    assert block.splitlines()[0].endswith(": OK, WHAT RAN CHANGED")
    assert "(--perf-structure fail)" in block


@pytest.mark.parametrize("structure", [None, Structure("same")])
def test_an_equal_structure_has_no_line_in_the_block(structure: Structure | None) -> None:
    assert "what ran" not in failure_block(measurement(FAST, 0.02), replace(SLOW, structure=structure), [], "a", "b")


def test_junit_has_the_outcome_and_each_change() -> None:
    found = junit.properties(measurement(FAST, 0.01), verdict(CHANGED))
    assert ("structure", "changed") in found
    assert [value for name, value in found if name == "structure_change"] == list(CHANGED.changes)
    assert not [name for name, _ in junit.properties(measurement(FAST, 0.01), verdict(None)) if "structure" in name]


def test_a_fingerprint_is_one_line() -> None:
    assert fingerprints.in_one_line(FINGERPRINT) == (
        "0123456789ab, 20 convolution (brg_conv_fwd:avx2), 2 reorder (jit:uni), 1 operator call, 1.82 GFLOP a step, "
        "1 line of oneDNN's log could not be read, looked at for 1.50 s"
    )
    taken = {"beside": {"memory": {"allocations": 12, "allocated": 2**22, "peak": 2**21}}}
    assert "12 allocations, at most 2.00 MiB at once" in fingerprints.in_one_line({**FINGERPRINT, **taken})
    assert fingerprints.in_one_line(None) == "no fingerprint"
    assert fingerprints.in_one_line({**FINGERPRINT, "unstable": ["operators"]}).startswith(
        "unstable: operators differed"
    )
    missing = fingerprints.in_one_line({**FINGERPRINT, "missing": {"operators": "no profiler"}})
    assert missing == "not all could be captured: operators: no profiler"
    assert fingerprints.fingerprint_text([("a", None), ("b", FINGERPRINT)]).startswith(
        "b ran 0123456789ab, 20 convolution"
    )
