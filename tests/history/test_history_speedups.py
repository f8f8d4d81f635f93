"""What a dtype, a stack or a device is worth: which cases are held against which, and which never."""

from __future__ import annotations

from dataclasses import replace

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_launch, make_measurement

from ipexperf.history.speedups import APART, speedups
from ipexperf.result import EMULATED, Verdict

XPU = {**ENVIRONMENT, "machine_key": "max-1550"}


def plain(**changes):
    return make_case(**({"dtype": "fp32", "stack": "stock"} | changes))


def took(case, step, environment=ENVIRONMENT, count=3, **metrics):
    launches = tuple(make_launch(i, step * (1 + i / 1000), accuracy=0.9, **metrics) for i in range(count))
    return make_measurement(case, launches=launches, environment=environment)


def record(history, *measurements, verdict=OK, day=1):
    uid = history.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T10:00:00Z"})
    for measurement in measurements:
        at = {"started_at": f"2026-05-0{day}T10:00:00Z", "finished_at": f"2026-05-0{day}T10:01:00Z"}
        history.record(uid, replace(measurement, **at), verdict)
    return history.measurements(uid)


def told(found):
    return [(one.kind, one.over, one.metric, round(one.speedup, 2)) for one in found]


def test_each_kind_holds_a_case_against_its_base(history):
    """A dtype against fp32, a stack against stock, both together, and a device against the processor."""
    cases = record(
        history,
        took(plain(), 0.080),
        took(plain(dtype="bf16"), 0.040),
        took(plain(stack="ipex"), 0.050),
        took(make_case(), 0.020),
        took(plain(device="xpu"), 0.008, XPU),
    )
    assert told(speedups(cases)) == [
        ("dtype", "bf16 over fp32", "throughput", 2.5),
        ("dtype", "bf16 over fp32", "throughput", 2.0),
        ("stack", "ipex over stock", "throughput", 2.0),
        ("stack", "ipex over stock", "throughput", 1.6),
        ("device", "xpu over cpu", "throughput", 10.0),
        ("both", "ipex bf16 over stock fp32", "throughput", 4.0),
    ]
    assert told(speedups(cases, ["both"])) == [("both", "ipex bf16 over stock fp32", "throughput", 4.0)]
    both = speedups(cases, ["both"])[0]
    assert (both.base_accuracy, both.accuracy, both.accuracy_metric) == (0.9, 0.9, "accuracy")
    assert both.lo < 4 < both.hi
    assert both.seen
    assert both.note == ""


def test_realtime_has_its_latencies_and_above_one_is_faster(history):
    """Half the latency is twice as fast; other modes have their throughput alone."""
    cases = record(
        history,
        took(plain(mode="realtime"), 0.010, p50=0.010, p99=0.016),
        took(plain(mode="realtime", stack="ipex"), 0.005, p50=0.005, p99=0.004),
    )
    found = [(metric, round(speedup, 2)) for _, _, metric, speedup in told(speedups(cases))]
    assert found == [("throughput", 2.0), ("p50", 2.0), ("p99", 4.0)]


@pytest.mark.parametrize("other", [{"batch": 32}, {"mode": "train"}, {"version": 2}, {"knobs": (("level", "O0"),)}])
def test_cases_that_differ_in_more_are_no_pair(history, other):
    """Liars: another batch, mode, version or knob would be a second reason for the difference."""
    assert speedups(record(history, took(plain(), 0.080), took(plain(stack="ipex", **other), 0.01))) == []


@pytest.mark.parametrize("outcome", ["failed", "invalid"])
def test_what_is_not_sound_has_no_speedup(history, outcome):
    """Fast and wrong is no gain."""
    good = record(history, took(plain(), 0.080))
    bad = record(history, took(plain(stack="ipex"), 0.01), verdict=Verdict(outcome, "wrong"))
    assert speedups([*good, *bad]) == []


def test_another_machine_is_no_base_but_for_a_device(history):
    """A stack that was faster on a faster machine is no gain of the stack."""
    cases = record(history, took(plain(), 0.080), took(plain(stack="ipex"), 0.01, XPU))
    assert speedups(cases) == []


def test_one_run_goes_before_two_and_two_are_said_to_be_two(history):
    """A newer case alone does not displace a pair of one run; without such a pair the note tells."""
    old = record(history, took(plain(), 0.080), took(plain(stack="ipex"), 0.040), day=1)
    new = record(history, took(plain(stack="ipex"), 0.020), day=2)
    assert [(round(x.speedup, 2), x.note) for x in speedups([*old, *new])] == [(2.0, "")]
    apart = [old[1] if old[1].case.stack == "stock" else old[0], *new]
    assert [(round(x.speedup, 2), x.note) for x in speedups(apart)] == [(4.0, APART)]


def test_an_emulated_dtype_and_a_single_launch_are_noted(history):
    """bf16 that is slow because the processor has none says nothing of bf16."""
    slow = took(plain(dtype="bf16"), 0.4, count=1)
    noted = tuple(replace(x, notes=(f"{EMULATED}: this CPU has no instructions for bf16",)) for x in slow.launches)
    (found,) = speedups(record(history, took(plain(), 0.080), replace(slow, launches=noted)))
    assert found.note == "this CPU emulates bf16; a single launch has no interval"
    assert (found.lo, found.seen) == (None, False)
