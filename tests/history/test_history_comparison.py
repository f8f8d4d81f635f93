"""Two runs compared: ratios, differences of environments, and cases without a ratio."""

from dataclasses import replace

import pytest
from history_records import CRASHED, ENVIRONMENT, OK, captured, make_case, make_launch, make_measurement

from ipexperf.history.comparison import compare
from ipexperf.verdict import Verdict

FASTER = (0.0080, 0.0081, 0.0079)
SLOWER = (0.0100, 0.0101, 0.0099)
NEWER = {
    **ENVIRONMENT,
    "software": {"torch": "2.9.0+cpu", "ipex": "2.8.0+cpu"},
    "variables": {"OMP_NUM_THREADS": "28"},
    "git": {"commit": "ffff00001111", "branch": "main", "dirty": False},
}


def record(history, *measurements, environment=ENVIRONMENT, verdict=OK):
    uid = history.start_run(environment, {})
    for measurement in measurements:
        history.record(uid, replace(measurement, environment=environment), verdict)
    return history.show(uid)


def both(history, first, second, metric="step_time"):
    """The one case of two runs."""
    (case,) = compare(record(history, first), record(history, second), metric).cases
    return case


@pytest.mark.process
@pytest.mark.parametrize(
    ("first", "second", "metric", "change"),
    [
        (SLOWER, FASTER, "step_time", "better"),
        (FASTER, SLOWER, "step_time", "worse"),
        (SLOWER, FASTER, "throughput", "better"),
        (FASTER, SLOWER, "throughput", "worse"),
        (SLOWER, SLOWER, "step_time", "not seen"),
    ],
)
def test_a_ratio_is_the_second_run_over_the_first_and_has_a_direction(history, first, second, metric, change):
    """A time that falls is better, a throughput that falls is worse, and equal numbers are neither."""
    case = both(history, make_measurement(steps=first), make_measurement(steps=second), metric)
    assert case.change == change
    assert case.ratio.lo < case.ratio.value < case.ratio.hi
    assert (case.first_n, case.second_n, case.note) == (3, 3, "")
    expected = second[0] / first[0] if metric == "step_time" else first[0] / second[0]
    assert case.ratio.value == pytest.approx(expected, rel=1e-3)


def test_a_metric_without_a_direction_is_only_different(history):
    """An accuracy that moved is reported, but not as better."""
    launches = [tuple(make_launch(i, 0.01, accuracy=x + i / 1e5) for i in range(3)) for x in (0.90, 0.99)]
    first, second = (make_measurement(launches=side) for side in launches)
    case = both(history, first, second, "accuracy")
    assert case.change == "different"
    assert (case.accuracy_metric, case.first_accuracy) == ("accuracy", pytest.approx(0.90001))


def test_differences_of_the_environments_are_listed_once(history):
    """Versions, variables and the commit belong to the runs. A case lists only what the runs do not."""
    found = compare(record(history, make_measurement()), record(history, make_measurement(), environment=NEWER))
    assert found.differences == (
        "OMP_NUM_THREADS: 56 -> 28",
        "torch: 2.8.0+cpu -> 2.9.0+cpu",
        "commit: a1b2c3d4e5f6 -> ffff00001111",
    )
    assert found.cases[0].differences == ()
    assert found.cases[0].note == "other environments: OMP_NUM_THREADS: 56 -> 28; torch: 2.8.0+cpu -> 2.9.0+cpu"


def test_a_case_whose_own_environment_differs_says_so(history):
    """One case ran with another library. Only that case lists it."""
    usual, own = (
        {**ENVIRONMENT, "software": {**ENVIRONMENT["software"], "openmp": [name]}}
        for name in ("libgomp.so.1", "libiomp5.so")
    )
    uid = history.start_run(usual, {})
    history.record(uid, make_measurement(make_case("alexnet"), environment=usual), OK)
    history.record(uid, make_measurement(environment=own), OK)
    cases = [make_measurement(make_case("alexnet")), make_measurement()]
    found = compare(record(history, *cases, environment=usual), history.show(uid))
    assert [(case.model, case.differences) for case in found.cases] == [
        ("alexnet", ()),
        ("resnet50", ("openmp: lost libgomp.so.1; gained libiomp5.so",)),
    ]


@pytest.mark.parametrize(
    ("section", "value", "told"),
    [
        ("variables", {"ONEDNN_MAX_CPU_ISA": "SSE41"}, "ONEDNN_MAX_CPU_ISA: unset -> SSE41"),
        ("software", {"packages": {"numpy": "2.0", "six": "1.17", "timm": "1.0"}}, "numpy: 1.26 -> 2.0"),
        ("source", {"net.py": "bbbb"}, "net.py: changed"),
    ],
)
def test_runs_of_other_environments_have_no_ratio(history, section, value, told):
    """The note says why, in a few words."""
    usual = {
        **ENVIRONMENT,
        "variables": {},
        "software": {"packages": {"numpy": "1.26", "six": "1.16"}},
        "source": {"net.py": "aaaa"},
    }
    first = record(history, make_measurement(steps=FASTER), environment=usual)
    again = record(history, make_measurement(steps=SLOWER), environment=usual)
    other = record(history, make_measurement(steps=SLOWER), environment={**usual, section: value})
    (alike,) = compare(first, again).cases
    (case,) = compare(first, other).cases
    assert (alike.change, alike.note) == ("worse", "")
    assert (case.ratio, case.change) == (None, "")
    assert case.note.startswith("other environments: ")
    assert told in case.note
    assert case.note.endswith(" and 1 more") == (section == "software")


@pytest.mark.parametrize("fault", ["failed", "invalid", "absent", "other work", "one launch", "zero"])
def test_a_case_that_cannot_be_compared_has_a_note(history, fault):
    """Each of these would have a plausible ratio."""
    good = make_measurement(steps=SLOWER)
    if fault == "failed":
        bad = record(
            history, make_measurement(launches=(make_launch(0, 0.001), CRASHED)), verdict=Verdict("failed", "x")
        )
    elif fault == "invalid":
        bad = record(history, make_measurement(steps=FASTER), verdict=Verdict("invalid", "accuracy failed"))
    elif fault == "absent":
        bad = record(history)
    elif fault == "other work":
        bad = record(history, make_measurement(make_case(batch=32), steps=FASTER))
    elif fault == "zero":
        bad = record(history, make_measurement(steps=SLOWER))
        bad = replace(bad, cases=tuple(replace(x, values={**x.values, "step_time": (0.01, 0.0)}) for x in bad.cases))
    else:
        bad = record(history, make_measurement(steps=FASTER[:1]))
    (case,) = compare(record(history, good), bad).cases
    told = {
        "failed": "the second is failed",
        "invalid": "the second is invalid",
        "absent": "the second is not in the run",
        "other work": "not the same work: batch: 16 -> 32",
        "one launch": "a single launch has no interval",
        "zero": "the second has a step_time of 0 or less",
    }
    assert case.note == told[fault]
    assert case.change == ("not seen" if fault == "one launch" else "")
    assert (case.ratio and case.ratio.lo) is None
    assert (case.ratio is None) == (fault != "one launch")


def test_another_machine_is_named_beside_the_ratio(history):
    """A ratio between two machines is no change of the software."""
    other = {**ENVIRONMENT, "machine_key": "xeon-6980p"}
    (case,) = compare(
        record(history, make_measurement(steps=SLOWER)),
        record(history, make_measurement(steps=FASTER), environment=other),
    ).cases
    assert case.note == "other hardware: machine_key: xeon-8480-2s -> xeon-6980p"
    assert case.change == "better"


def test_a_network_that_does_other_work_under_the_same_name_is_named(history):
    """Its owner changed the code between the runs: the ratio is right, and of two different things."""
    sides = [
        make_measurement(
            launches=tuple(replace(make_launch(i, step), fingerprint=captured(str(flops), flops)) for i in range(3))
        )
        for step, flops in ((0.02, 1000), (0.01, 500))
    ]
    changed, same = both(history, *sides), both(history, sides[0], sides[0])
    assert changed.note == "other work: floating point operations of a step: 1,000 -> 500"
    assert (changed.ratio.value, same.note) == (pytest.approx(0.5), "")


def test_uncommitted_changes_of_one_commit_differ_by_content(history):
    """Two dirty checkouts compared as if they were one program would blame the machine for an edit."""

    def source(**git):
        detail = {**ENVIRONMENT, "git": {"commit": "abc", "branch": "main", **git}}
        return record(history, make_measurement(), environment=detail)

    clean, one, other = source(dirty=False), source(dirty=True, changes="1a2b"), source(dirty=True, changes="3c4d")
    assert compare(one, other).differences == ("uncommitted changes: 1a2b -> 3c4d",)
    assert compare(clean, one).differences == ("uncommitted changes: none -> 1a2b",)
    assert compare(one, one).differences == ()
    assert compare(source(dirty=True), one).differences == ("uncommitted changes: unknown -> 1a2b",)
