"""What people and CI read. Golden files: delete one and run with IPEXPERF_GOLDEN=1 to write it anew, then review it."""

from dataclasses import replace

import pytest
from report_records import FAST, PLAIN, measurement, together, told

from ipexperf.bench.precision import emulated
from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import judge
from ipexperf.report.block import failure_block
from ipexperf.report.junit import properties
from ipexperf.result import Launch
from ipexperf.verdict import Verdict


def test_a_run_without_cases_says_so() -> None:
    assert told([]) == ["no case was measured"]


@pytest.mark.parametrize("steps", [(0.1,), (0.1, 0.172), (0.1, 0.172, 0.4), (0.4, 0.1, 0.172, 0.2)])
def test_the_rate_of_a_case_is_its_items_divided_by_its_step(steps: tuple[float, ...]) -> None:
    """A reader divides. The mean of two unlike rates is higher than the rate of the mean time."""
    launches = tuple(
        Launch(index, "ok", metrics={"step_time": step, "throughput": 32 / step}) for index, step in enumerate(steps)
    )
    found = replace(measurement(PLAIN, 0.1), launches=launches)
    step, rate = found.median("step_time"), found.median("throughput")
    assert step is not None
    assert rate == pytest.approx(32 / step)
    assert found.of_run["throughput"] == rate


@pytest.mark.parametrize(
    ("device", "dtype", "flags", "expected"),
    [
        ("cpu", "bf16", {"avx2", "fma"}, True),
        ("cpu", "fp16", {"avx512f", "avx512_bf16"}, True),
        ("cpu", "bf16", {"avx512f", "avx512_bf16"}, False),
        ("cpu", "int8", {"avx2"}, False),
        ("cpu", "bf16", set(), False),
        ("xpu", "bf16", {"avx2"}, False),
    ],
)
def test_a_dtype_without_its_instructions_is_emulated(
    device: str, dtype: str, flags: set[str], *, expected: bool
) -> None:
    """Only on the CPU, and only if the kernel lists its instructions."""
    assert emulated(device, dtype, frozenset(flags)) is expected


def test_a_launch_that_was_measured_again_is_in_no_number() -> None:
    """It is not counted, not given to pytest-benchmark, and no failure. Its notes are left out."""
    good = measurement(FAST, 0.02)
    stolen = "steal 50 %"
    busy = Launch(9, "contended", stolen, metrics={"step_time": 9.0}, contended=stolen, fewer="7 of 20", notes=("x",))
    both = replace(good, launches=(busy, *good.launches))
    verdict = judge(both, None, Policy())
    assert verdict == judge(good, None, Policy())
    assert properties(both, verdict) == properties(good, verdict)
    assert told([both], {FAST.uid: verdict}) == told([good], {FAST.uid: verdict})
    for outcome in ("failed", "invalid", "regressed"):
        assert failure_block(both, Verdict(outcome, ""), [], "", "") == failure_block(
            good, Verdict(outcome, ""), [], "", ""
        )


def test_launches_with_fewer_samples_are_told_in_one_line() -> None:
    """Each took another number of them. A note of another kind has a line of its own."""
    good = measurement(FAST, 0.02)
    texts = [f"{count} of 20, steps take 2.4 s" for count in range(7, 7 + len(good.launches))]
    few = [replace(launch, fewer=text) for launch, text in zip(good.launches, texts, strict=True)]
    noted = replace(good, launches=tuple(replace(one, notes=(one.fewer_note, "mostly waited")) for one in few))
    block = failure_block(noted, Verdict("regressed", ""), [], "", "")
    count = len(texts)
    assert count > 1
    assert [" ".join(line.split()) for line in block.splitlines() if line.startswith("  note")] == [
        f"note {count} launches ended with fewer samples than asked: {texts[0]}",
        "note a launch mostly waited",
    ]


def test_without_stock_fp32_ratios_are_to_the_first_case_of_the_group() -> None:
    """As of packed weights over those in bf16. A first case that does not count is compared with nothing."""
    first = replace(PLAIN, dtype="bf16")
    packed = replace(first, knobs=(("weights", "int4"),))
    made = [measurement(first, 0.08), measurement(packed, 0.02)]

    def ratios_of(verdicts: dict[str, Verdict]) -> tuple[str, list[str]]:
        lines = told(made, verdicts, together(made))
        (header,) = [line for line in lines if line.startswith("case ")]
        name = next(name for name in ("x fp32", "x first") if name in header)
        cells = [line[header.index(name) :].split()[0] for line in lines if line.startswith(f"{first.model}-")]
        return name, cells

    name, (alone, ratio) = ratios_of({})
    assert (name, alone) == ("x first", "1.00")
    assert float(ratio) == pytest.approx(4.0, rel=0.02)
    assert ratios_of({first.uid: Verdict("invalid", "")}) == ("x fp32", ["-", "-"])
    explained = "x first: throughput over the first case of its group"
    assert explained in told(made, {}, together(made))
