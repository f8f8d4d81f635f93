"""Speed-ups of dtypes, stacks, devices and settings: which cases are compared, and which never."""

from dataclasses import replace

import pytest
from history_records import (
    ENVIRONMENT,
    OK,
    captured,
    make_case,
    make_launch,
    make_measurement,
    make_round,
    make_seat,
)

from ipexperf.history.speedups import APART, speedups
from ipexperf.judge import ratios
from ipexperf.judge.policy import Policy
from ipexperf.verdict import Verdict

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
    return [(one.kind, one.over, one.metric, round(one.speedup.value, 2)) for one in found]


def test_a_setting_is_compared_with_its_default(history):
    """All settings of the case are left out, and the conditions under which it ran are not."""
    under = (("placement", "cores=0"), ("weight_group", "32"), ("weights", "int4"))
    cases = record(
        history,
        took(plain(), 0.080),
        took(plain(knobs=(("weights", "int8"),)), 0.040),
        took(plain(knobs=under[:1]), 0.120),
        took(plain(knobs=under), 0.020),
    )
    assert told(speedups(cases, ["settings"])) == [
        ("settings", "weight_group=32 weights=int4 over without", "throughput", 6.0),
        ("settings", "weights=int8 over without", "throughput", 2.0),
    ]


def test_each_kind_compares_a_case_with_its_base(history):
    """A dtype with fp32, a stack with stock, both together, and a device with the CPU."""
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
    assert both.speedup.lo < 4 < both.speedup.hi
    assert both.seen
    assert both.note == ""


@pytest.mark.parametrize("other", [{"batch": 32}, {"mode": "train"}, {"version": 2}, {"knobs": (("level", "O0"),)}])
def test_cases_that_differ_in_more_are_no_pair(history, other):
    """Another batch, mode, version or knob would be a second reason for the difference."""
    assert speedups(record(history, took(plain(), 0.080), took(plain(stack="ipex", **other), 0.01))) == []


@pytest.mark.parametrize("outcome", ["failed", "invalid"])
def test_an_invalid_or_failed_case_has_no_speedup(history, outcome):
    """Fast and wrong is no gain."""
    good = record(history, took(plain(), 0.080))
    bad = record(history, took(plain(stack="ipex"), 0.01), verdict=Verdict(outcome, "wrong"))
    assert speedups([*good, *bad]) == []


def test_a_base_on_another_machine_counts_only_for_devices(history):
    """A stack on a faster machine shows nothing about the stack."""
    cases = record(history, took(plain(), 0.080), took(plain(stack="ipex"), 0.01, XPU))
    assert speedups(cases) == []


def test_a_pair_of_one_run_is_preferred_and_a_pair_of_two_runs_has_a_note(history):
    """A newer case alone does not replace a pair of one run."""
    old = record(history, took(plain(), 0.080), took(plain(stack="ipex"), 0.040), day=1)
    new = record(history, took(plain(stack="ipex"), 0.020), day=2)
    assert [(round(x.speedup.value, 2), x.note) for x in speedups([*old, *new])] == [(2.0, "")]
    apart = [old[1] if old[1].case.stack == "stock" else old[0], *new]
    assert [(round(x.speedup.value, 2), x.note) for x in speedups(apart)] == [(4.0, APART)]


SSE41 = {**ENVIRONMENT, "variables": {**ENVIRONMENT["variables"], "ONEDNN_MAX_CPU_ISA": "SSE41"}}


def test_a_case_under_other_variables_is_no_base(history):
    """A run under SSE41 made fp32 slow: bf16 is not 10.8 times as fast for that."""
    night = record(history, took(plain(), 0.036), took(plain(dtype="bf16"), 0.010), day=1)
    tried = record(history, took(plain(), 0.108, SSE41), day=2)
    (usual,) = speedups([*night, *tried])
    assert (round(usual.speedup.value, 2), usual.base_run_uid) == (3.6, night[0].run_uid)
    (found,) = speedups([*(one for one in night if one.case.dtype == "bf16"), *tried])
    assert (found.speedup, found.seen) == (None, False)
    assert found.note == "other environments: ONEDNN_MAX_CPU_ISA: SSE41 -> unset"
    assert found.value == pytest.approx(1600, rel=0.01)


def test_cases_that_took_turns_under_unlike_variables_are_compared(history):
    """The variable is what is compared."""
    cases = record(history, took(plain(stack="ipex"), 0.01, SSE41), took(plain(), 0.02))
    (found,) = speedups(cases, paired=in_turns(history, cases, (0.01, 0.02)))
    assert (found.rounds, round(found.speedup.value, 1)) == (1, 2.0)


def test_what_a_case_does_by_itself_is_no_other_environment(history):
    """IPEX sets a variable, and a stack imports a file of its own. The lock and the common files say what was given."""

    def under(lock, files, **variables):
        software = {**ENVIRONMENT["software"], "ipex": "2.8.0" if variables else None}
        source = {"net.py": "aaaa", **files}
        return {**ENVIRONMENT, "software": software, "variables": variables, "lock": lock, "source": source}

    base = record(history, took(plain(), 0.08, under("1", {"stock.py": "cccc"})))
    ipex = {"TORCHINDUCTOR_CACHE_DIR": "there"}
    for lock, own, ratio in (("1", {}, 2.0), ("2", {}, None), ("1", {"net.py": "bbbb"}, None)):
        environment = under(lock, {"ipex.py": "dddd", **own}, **ipex)
        (found,) = speedups([*base, *record(history, took(plain(stack="ipex"), 0.04, environment), day=2)])
        assert (found.speedup and round(found.speedup.value, 2)) == ratio
    assert found.note == "other environments: net.py: changed"


def test_runs_under_two_drivers_have_no_ratio_though_their_lock_is_the_same(history):
    """The CPU has none: a card is still compared with it."""

    def under(driver, environment=XPU):
        card = {"accelerator": {"driver": driver}} if driver else {}
        return {**environment, "software": {**environment["software"], **card}, "lock": "1"}

    base = record(history, took(plain(device="xpu"), 0.08, under("1.14")), took(plain(), 0.8, under("", ENVIRONMENT)))
    for driver, notes in (("1.14", {APART}), ("1.15", {"other environments: accelerator.driver: 1.14 -> 1.15"})):
        fast = record(history, took(plain(device="xpu", stack="ipex"), 0.04, under(driver)), day=2)
        assert {found.note for found in speedups([*base, *fast], ["stack"])} == notes
    assert [round(found.speedup.value) for found in speedups(base, ["device"])] == [10]


def test_two_runs_of_a_network_that_changed_between_them_are_of_other_work(history):
    """Within a run the network is one, whatever its stack."""

    def ran(case, step, flops):
        made, fingerprint = took(case, step), captured(str(flops), flops)
        return replace(made, launches=tuple(replace(x, fingerprint=fingerprint) for x in made.launches))

    old = record(history, ran(plain(), 0.080, 1000), day=1)
    new = record(history, ran(plain(stack="ipex"), 0.020, 500), day=2)
    (found,) = speedups([*old, *new])
    assert found.note == f"{APART}; other work: floating point operations of a step: 1,000 -> 500"


def test_an_emulated_dtype_and_a_single_launch_are_noted(history):
    """bf16 that is slow because the CPU emulates it says nothing about bf16."""
    slow = took(plain(dtype="bf16"), 0.4, count=1)
    noted = tuple(replace(x, emulated=True) for x in slow.launches)
    (found,) = speedups(record(history, took(plain(), 0.080), replace(slow, launches=noted)))
    assert found.note == "this CPU emulates bf16; a single launch has no interval"
    assert (found.speedup.lo, found.seen) == (None, False)


def in_turns(history, cases, *steps, **changes):
    """Give the run of these cases a round for each of these step times of its base and of its other cases."""
    for number, own in enumerate(steps, 1):
        seats = [make_seat(one.case, step) for one, step in zip(cases, own, strict=True)]
        history.record_round(cases[0].run_uid, make_round(*seats, number=number, **changes))
    return history.paired(cases)


def test_cases_that_took_turns_are_compared_by_their_turns(history):
    """Launches that drift show nothing, while the ratio of neighbouring turns is known to a few per cent."""
    cases = record(history, took(plain(stack="ipex"), 0.01), took(plain(), 0.08))
    paired = in_turns(history, cases, (0.010, 0.020), (0.013, 0.026), (0.008, 0.0161))
    (found,) = speedups(cases, paired=paired)
    assert (found.paired, found.rounds, found.seen, found.note) == (True, 3, True, "")
    assert found.speedup.value == pytest.approx(2.0, rel=0.01)
    assert 1.9 < found.speedup.lo < 2.0 < found.speedup.hi < 2.1
    assert (found.base, found.value) == (cases[1].metrics["throughput"].median, cases[0].metrics["throughput"].median)
    assert found.speedup == next(iter(paired.values())).between(plain(), plain(stack="ipex")).ratio(inverted=True)
    (before,) = speedups(cases)
    assert (before.paired, before.rounds) == (False, 0)
    assert before.speedup.value == pytest.approx(8.0)


def test_only_intervals_over_launches_share_an_alarm_rate(history):
    """Each interval over rounds has 95 % by itself."""
    kinds = ("fp32", "stock"), ("fp32", "ipex"), ("bf16", "stock")
    made = record(history, *(took(plain(dtype=d, stack=s), 0.01 * (n + 1)) for n, (d, s) in enumerate(kinds)))
    by_case = {one.case: one for one in made}
    base, ipex, bf16 = (by_case[plain(dtype=dtype, stack=stack)] for dtype, stack in kinds)
    paired = in_turns(history, [base, ipex], (0.02, 0.01), (0.02, 0.01))
    found = {one.kind: one for one in speedups(made, paired=paired)}
    assert {kind: one.paired for kind, one in found.items()} == {"dtype": False, "stack": True}
    alone = ratios.compare(base.values["throughput"], bf16.values["throughput"], Policy())
    assert found["dtype"].speedup == alone


@pytest.mark.parametrize("why", ["two runs", "other rounds"])
def test_cases_without_a_shared_round_are_compared_by_their_launches(history, why):
    """Cases of two runs, and cases of one run in different rounds."""
    fast, slow = took(plain(stack="ipex"), 0.01), took(plain(), 0.04)
    if why == "two runs":
        cases = [*record(history, fast), *record(history, slow, day=2)]
        for one in cases:
            twin = (make_seat(one.case, 0.01), make_seat(one.case, 0.01, "twin"))
            history.record_round(one.run_uid, make_round(*twin, uid=one.run_uid.replace("-", "")))
        paired = history.paired(cases)
        assert len(paired) == 2
    else:
        cases = record(history, fast, slow)
        seats = [cases[0], replace(cases[1], case=plain(dtype="fp16"))]
        paired = in_turns(history, seats, (0.01, 0.02), (0.01, 0.02))
    (found,) = [one for one in speedups(cases, paired=paired) if one.kind == "stack"]
    assert (found.paired, found.rounds) == (False, 0)
    assert found.speedup.value == pytest.approx(4.0)


def test_latencies_are_compared_by_launches(history):
    """Rounds have step times, and no single requests."""
    case, base = (plain(mode="realtime", stack=stack) for stack in ("ipex", "stock"))
    cases = record(history, took(case, 0.01, p50=0.002, p99=0.004), took(base, 0.03, p50=0.006, p99=0.02))
    found = speedups(cases, paired=in_turns(history, cases, (0.01, 0.02), (0.01, 0.02)))
    assert [(one.metric, one.paired, round(one.speedup.value, 1)) for one in found] == [
        ("throughput", True, 2.0),
        ("p50", False, 3.0),
        ("p99", False, 5.0),
    ]
