"""What people and CI read. Golden files: delete one and run with IPEXPERF_GOLDEN=1 to write it anew, then review it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_records import (
    EVIDENCE,
    FAST,
    LONG,
    PLAIN,
    SLOW,
    crashed,
    golden,
    measurement,
    out_of_budget,
    summary,
    together,
    told,
    unproven,
)

from ipexperf.bench.precision import emulated
from ipexperf.case import Case
from ipexperf.judge import growth
from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import judge
from ipexperf.report.block import failure_block
from ipexperf.report.junit import properties
from ipexperf.report.lines import Page
from ipexperf.report.speeds import to_beat
from ipexperf.result import Launch, Measurement, Sample, Verdict

RATIOS = st.floats(1e-6, 1e6)
REPRODUCE = "pytest suites/zoo --model resnet50 --device cpu --dtype bf16 --mode infer_jit --stack ipex --batch 8"
ACCEPT = "ipexperf accept --run 0191 --case resnet50-cpu-bf16-infer_jit-ipex --regression-ok --reason '...'"


@pytest.mark.parametrize(
    ("name", "made", "verdict"),
    [
        ("block_regressed.txt", measurement(FAST, 0.0203), SLOW),
        ("block_invalid.txt", unproven(), judge(unproven(), None, Policy())),
        ("block_failed.txt", crashed(), judge(crashed(), None, Policy())),
    ],
)
def test_the_block_of_a_failed_test(name: str, made: Measurement, verdict: Verdict) -> None:
    text = failure_block(made, verdict, verdict.evidence.differences if verdict.evidence else (), REPRODUCE, ACCEPT)
    golden(name, text)
    assert "Traceback" not in text
    assert all(len(line) <= 120 for line in text.splitlines())


def run() -> tuple[list[Measurement], dict[str, Verdict]]:
    pairs = [
        (measurement(PLAIN, 0.0805, accuracy=0.972), Verdict("ok", "", ratio=0.998, lo=0.98, hi=1.012)),
        (measurement(FAST, 0.0203, fidelity=2.1e-3), SLOW),
        (measurement(LONG, 0.0031, agreement=0.992), Verdict("no_baseline", "")),
        (measurement(replace(PLAIN, mode="train"), 0.4, loss=2.31), Verdict("inconclusive", "", ratio=1.3)),
        (measurement(replace(FAST, mode="train"), 0.2), Verdict("not_comparable", "")),
        (replace(unproven(), case=replace(FAST, mode="infer")), Verdict("invalid", "")),
        (replace(crashed(), case=replace(FAST, dtype="int8")), Verdict("failed", "")),
        (measurement(replace(FAST, batch=64), 0.1), Verdict("improved", "", ratio=0.5, lo=0.45, hi=0.55)),
    ]
    return [x for x, _ in pairs], {x.case.uid: verdict for x, verdict in pairs}


def test_the_table_of_a_run() -> None:
    left_out = {"xpu: no such device here (torch.xpu.is_available() is False)": 12, "int8 cannot be trained": 3}
    commands = [
        "history: .ipexperf/history.sqlite, run 0191",
        "report:  ipexperf report --run 0191 --html report.html",
    ]
    lines = told(*run(), left_out=left_out, commands=commands)
    golden("table.txt", "\n".join(lines))
    assert max(map(len, lines)) <= 120


def test_the_table_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids have lines of their own, and are never cut."""
    monkeypatch.setattr(Page, "width", 80)
    lines = told(*run())
    assert max(map(len, lines)) <= 80
    assert "resnet50-cpu-bf16-infer_jit-ipex" in lines
    assert any("3.97*" in line for line in lines)


def test_a_run_without_cases_says_so() -> None:
    assert told([]) == ["no case was measured"]


def test_cases_that_never_began_are_listed_and_have_no_number() -> None:
    """They are not counted among the inconclusive ones."""
    never, short = out_of_budget(FAST), replace(measurement(PLAIN, 0.08), cut="the budget was spent after 3 of 5")
    verdicts = {x.case.uid: judge(x, None, Policy()) for x in (never, short)}
    lines = told([never, short], verdicts)
    row, *listed = [line for line in lines if FAST.id in line or "CUT" in line]
    assert row.split() == [FAST.id, "8", "-", "-", "-", "-", "inconclusive"]
    assert listed == [
        f"NOT MEASURED (1): the budget (--perf-budget) was spent already: {FAST.id}",
        f"CUT SHORT (1): fewer launches than planned, the budget was spent after 3 of 5: {PLAIN.id}",
    ]
    assert set(summary([never, short], verdicts).speeds.over_plain()) == {PLAIN}
    found = dict(properties(never, verdicts[FAST.uid]))
    assert (found["verdict"], found["launches"], "step_time" in found) == ("inconclusive", "0", False)


def test_cases_cut_short_are_listed_by_reason() -> None:
    """An interrupted run did not spend its budget."""
    cut = {
        FAST: "the run was interrupted before its other launches",
        PLAIN: "the budget was spent after 1 of 3 launches",
    }
    made = [replace(measurement(case, 0.1), cut=reason) for case, reason in cut.items()]
    made += [replace(out_of_budget(PLAIN), case=replace(PLAIN, batch=batch)) for batch in (16, 32)]
    text = " ".join(line.strip() for line in told(made))
    short = "CUT SHORT (1): fewer launches than planned, "
    assert f"NOT MEASURED (2): the budget (--perf-budget) was spent already: {PLAIN.id}" in text
    assert f"{short}the run was interrupted before its other launches: {FAST.id}" in text
    assert f"{short}the budget was spent after 1 of 3 launches: {PLAIN.id}" in text


def fewer(launch: Launch, samples: int) -> Launch:
    text = f"{samples} of 20, steps take 2.4 s"
    return replace(launch, fewer=text, notes=(f"ended with fewer samples than asked: {text}",))


def test_contended_cases_are_listed_apart_from_wrong_ones() -> None:
    """Both are invalid, and nothing is known to be wrong with the first."""
    wrong, spoilt = measurement(FAST, 0.01), measurement(replace(FAST, dtype="fp32"), 0.01)
    verdicts = {
        wrong.case.uid: Verdict("invalid", "proof failed"),
        spoilt.case.uid: Verdict("invalid", "machine contended: ...", contended=True),
    }
    lines = told([wrong, spoilt], verdicts)
    listed = {line.split(" ")[0]: line for line in lines if line.startswith(("INVALID", "CONTENDED"))}
    assert listed["INVALID"].endswith(f"do not count: {wrong.case.id}")
    assert listed["CONTENDED"].startswith("CONTENDED (1): measured on a busy machine")
    assert spoilt.case.id in " ".join(lines[lines.index(listed["CONTENDED"]) :])


def test_cases_whose_settings_changed_in_the_middle_are_named() -> None:
    """Otherwise the median of two unlike halves looks like any other."""
    changed, fine = measurement(PLAIN, 0.08), measurement(FAST, 0.02)
    first, *others = changed.launches
    changed = replace(changed, launches=(first, *(replace(one, settings="nice: 0 -> 10") for one in others)))
    text = " ".join(line.strip() for line in told([changed, fine]))
    meaning = "their launches ran under unlike settings, so their median is of neither"
    assert f"SETTINGS CHANGED (1): {meaning}: {PLAIN.id} (nice: 0 -> 10)" in text
    assert "SETTINGS CHANGED" not in "".join(told([fine]))


def test_cases_whose_steps_become_slower_and_slower_are_named() -> None:
    """As those of a network that keeps what it has seen: it has no step time. Who only waits longer has no note."""
    samples = tuple(Sample(0.01 * (1 + 0.1 * number), 0.01, 0.0) for number in range(20))
    waits, fine = measurement(PLAIN, 0.08), measurement(FAST, 0.02)
    waits = replace(waits, launches=tuple(replace(waits.launches[0], index=at, samples=samples) for at in range(3)))
    grows = replace(waits, launches=growth.noted(waits.launches))
    assert "SLOWER AND SLOWER" not in "".join(told([waits, fine]))
    text = " ".join(line.strip() for line in told([grows, fine]))
    assert "SLOWER AND SLOWER (1): in every launch, so the step time depends on how long was measured" in text
    assert f"{PLAIN.id} (2.67 times)" in text


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


def test_launches_with_too_few_samples_are_counted() -> None:
    """Each case is named once, and the block of a failed test has the note too."""
    slow, slower, fine = measurement(PLAIN, 0.08), measurement(LONG, 0.08), measurement(FAST, 0.02)
    first, second, third = slow.launches
    slow = replace(slow, launches=(fewer(first, 7), fewer(second, 9), third))
    slower = replace(slower, launches=(fewer(first, 5),))
    text = " ".join(line.strip() for line in told([slow, slower, fine]))
    details = {f"7 of 20, steps take 2.4 s ({PLAIN.id})", f"5 of 20, steps take 2.4 s ({LONG.id})"}
    assert "FEWER SAMPLES: 3 launches ended with fewer samples than asked: " in text
    assert all(detail in text for detail in details)
    assert "9 of 20" not in text
    assert FAST.id not in text.split("FEWER SAMPLES")[1]
    assert "FEWER SAMPLES" not in "".join(told([fine]))
    assert f"note        a launch {fewer(first, 7).notes[0]}" in failure_block(slow, SLOW, [], "", "")


def test_an_emulated_dtype_is_marked_once_a_case() -> None:
    """The summary and the block of a failed test say that its numbers are those of an emulation."""
    slow, fine = measurement(FAST, 0.08), measurement(PLAIN, 0.02)
    marked = "emulated its dtype: this CPU has no instructions for bf16"
    slow = replace(slow, launches=tuple(replace(one, notes=(marked,), emulated=True) for one in slow.launches))
    (line,) = [line for line in told([slow, fine]) if line.startswith("EMULATED")]
    assert line.startswith("EMULATED (1): this CPU has no instructions for the dtype")
    assert "EMULATED" not in "".join(told([fine]))
    assert f"a launch {marked}" in failure_block(slow, SLOW, [], "", "")


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
    busy = fewer(Launch(9, "contended", stolen, metrics={"step_time": 9.0}, contended=stolen), 7)
    both = replace(good, launches=(busy, *good.launches))
    verdict = judge(both, None, Policy())
    assert verdict == judge(good, None, Policy())
    assert properties(both, verdict) == properties(good, verdict)
    assert told([both], {FAST.uid: verdict}) == told([good], {FAST.uid: verdict})
    for outcome in ("failed", "invalid", "regressed"):
        assert failure_block(both, Verdict(outcome, ""), [], "", "") == failure_block(
            good, Verdict(outcome, ""), [], "", ""
        )


def test_the_verdict_on_the_run_names_its_cases() -> None:
    """It has a second line if the run fails although no test did."""
    assert told([], line="5 cases are slower", slower=list("abcde"))[0] == "5 cases are slower: a, b, c, d and 1 more"
    assert told([], line="platform shift", unseen=True)[1].startswith("THE RUN FAILS: no test failed")
    assert max(map(len, told([], line="word " * 100, unseen=True))) <= 120


@given(
    st.floats(1e-9, 1e5),
    st.floats(1e-6, 1e6),
    st.floats(1e-6, 1e6),
    st.floats(1e-6, 1e6),
    st.sampled_from([FAST, LONG]),
)
def test_no_number_makes_the_table_wider_than_120(
    step: float, ratio: float, lo: float, hi: float, case: object
) -> None:
    made = measurement(case, step, fidelity=ratio)
    verdict = Verdict("platform_shift", "", ratio=ratio, lo=lo, hi=hi)
    assert max(map(len, told([made], {made.case.uid: verdict}))) <= 120


def test_every_kind_of_inference_is_compared_with_plain_stock_inference() -> None:
    assert to_beat(FAST) == PLAIN
    assert to_beat(replace(FAST, mode="train")) == replace(PLAIN, mode="train")
    assert to_beat(replace(FAST, batch=64)) != PLAIN


def test_an_invalid_case_has_no_speedup_and_is_no_base() -> None:
    plain, fast = measurement(PLAIN, 0.08), measurement(FAST, 0.02)
    rounds = together([plain, fast])

    def over_plain(measurements: list[Measurement], verdicts: dict[str, Verdict]) -> dict[Case, float]:
        found = summary(measurements, verdicts, rounds).speeds.over_plain()
        return {case: one.ratio.ratio for case, one in found.items()}

    assert over_plain([plain, fast], {})[FAST] == pytest.approx(4.0, rel=0.02)
    assert FAST not in over_plain([plain, fast], {FAST.uid: Verdict("invalid", "")})
    assert over_plain([plain, fast], {PLAIN.uid: Verdict("invalid", "")}) == {}
    assert FAST not in over_plain([plain, unproven()], {})


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


def test_junit_has_the_metrics_that_were_measured() -> None:
    found = dict(properties(measurement(FAST, 0.02, accuracy=0.9), SLOW))
    assert found["model"] == "resnet50"
    assert found["batch"] == "8"
    assert found["step_time"] == "0.0202"
    assert found["accuracy"] == "0.9"
    assert found["ratio"] == "2.01"
    assert found["verdict"] == "regressed"
    assert "peak_memory" not in found
    failed = dict(properties(crashed(), judge(crashed(), None, Policy())))
    assert "step_time" not in failed
    assert failed["reason"] == "crashed: the worker died of signal 11"


def test_an_old_baseline_is_shown_as_expired() -> None:
    fresh = replace(SLOW, evidence=replace(EVIDENCE, expired=False))
    assert "EXPIRED on" in failure_block(measurement(FAST, 0.02), SLOW, [], "", "")
    block = failure_block(measurement(FAST, 0.02), replace(fresh, reason="slower"), [], "", "")
    assert "EXPIRED" not in block
    assert "changed     nothing that is recorded of the environment" in block
