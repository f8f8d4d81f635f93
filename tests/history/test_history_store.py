"""What is recorded is read as it was, failures included."""

import math
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from history_records import (
    CRASHED,
    ENVIRONMENT,
    HARDWARE,
    OK,
    make_case,
    make_launch,
    make_measurement,
    make_round,
)
from sqlalchemy import text

from ipexperf.errors import HistoryError
from ipexperf.history import History
from ipexperf.history.points import rows as rows_of
from ipexperf.history.records import Accepted
from ipexperf.judge.policy import Policy
from ipexperf.result import Check
from ipexperf.verdict import Verdict


def recorded(history, measurement, verdict=OK, environment=ENVIRONMENT, meta=None):
    uid = history.start_run(environment, meta or {})
    history.record(uid, measurement, verdict)
    history.finish_run(uid, "finished")
    return uid


def test_a_measurement_is_read_as_it_was_recorded(history):
    """Case, launch values, summary, verdict and environment."""
    measurement = make_measurement()
    uid = recorded(history, measurement)
    (case,) = history.measurements(uid)
    assert case.case == measurement.case
    assert case.values["step_time"] == measurement.values("step_time")
    assert case.outcome == "ok"
    assert case.verdict == OK
    assert case.environment == ENVIRONMENT
    assert case.commit == "a1b2c3d4e5f6"
    assert case.started_at == "2026-05-04T10:00:00.000000+00:00"
    summary = case.metrics["step_time"]
    assert (summary.n, summary.median, summary.lo, summary.hi) == (3, 0.011, 0.010, 0.013)
    assert summary.mean == statistics.fmean((0.010, 0.011, 0.013))
    assert summary.mad == pytest.approx(0.001)
    assert (summary.unit, summary.higher_is_better) == ("s", False)
    assert case.launches[0].document["proof"] == [{"name": "dtype", "ok": True, "found": "bf16", "expected": "bf16"}]
    assert case.launches[0].document["gate"] == {"load": 0.25}


def rows(history, sql):
    with history._engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(sql))]


def test_a_case_that_never_began_is_a_row_without_numbers_that_did_not_fail(history):
    """The budget was spent: the case has a row, a reason and a verdict, and neither a launch nor a 0."""
    measurement = make_measurement(launches=(), cut="the budget was spent already")
    uid = recorded(history, measurement, Verdict("inconclusive", measurement.cut))
    (case,) = history.measurements(uid)
    assert (case.outcome, case.verdict.reason, case.launches, case.values) == ("inconclusive", measurement.cut, (), {})
    (summary,) = case.metrics.values()
    assert (summary.metric, summary.outcome, summary.reason) == ("step_time", "interrupted", measurement.cut)
    assert (summary.n, summary.median, summary.mean, summary.lo, summary.hi) == (0, None, None, None, None)
    assert [(row["outcome"], row["median"]) for row in rows_of(history.trend())] == [("interrupted", None)]


def test_the_sql_of_the_documentation_answers_and_shows_a_settled_case_once(tmp_path):
    """Each example runs as printed. Of two verdicts on a case it shows the newer."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "database.md"
    every, *others = re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)
    whole = Policy().for_run()
    moved = Verdict("platform_shift", "", policy=whole.label)
    with History.open(tmp_path / "history.db") as history:
        uid = recorded(history, make_measurement(make_case("resnet18", mode="infer_jit")))
        history.settle(uid, {}, {make_case("resnet18", mode="infer_jit").uid: moved}, whole)
        assert [row[-1] for row in rows(history, every)] == ["platform_shift"]
        history.record_round(uid, make_round())
        assert [len(rows(history, sql)) for sql in others] == [1, 0]


def accepted(uid, current_runs=(), case=None, former=None, **changes):
    case = case or make_case()
    at = "2026-05-05T10:00:00+00:00"
    values = {"run_uid": uid, "case": case, "former": former or case, "machine_key": "xeon-8480-2s"}
    values |= {"current_runs": frozenset({uid, *current_runs}), "at": at, "by": "ada", "reason": "first light"}
    return Accepted(**(values | changes))


def live(history):
    """The runs whose acceptances are not superseded."""
    return {
        uid for (uid,) in rows(history, "SELECT run.uid FROM baseline b JOIN run ON run.id = b.run_id "
                                        "WHERE b.superseded_by IS NULL")
    }  # fmt: skip


def test_a_run_that_is_accepted_again_counts_once(history):
    """With another reason it is another row. The same words again are the same row."""
    first, second = (recorded(history, make_measurement()) for _ in range(2))
    for one in (accepted(first), accepted(first, reason="again"), accepted(second), accepted(first), accepted(first)):
        with history.accepting([one]):
            pass
        assert live(history) == {one.run_uid}
        assert rows(history, "SELECT count(*) FROM baseline WHERE superseded_by IS NULL") == [(1,)]
    assert rows(history, "SELECT count(*) FROM baseline") == [(3,)]


def test_a_new_version_of_a_case_supersedes_the_old_one(history):
    """It has its own series, and the same place in the baseline file."""
    newer = make_case(version=2)
    old, new = recorded(history, make_measurement()), recorded(history, make_measurement(newer))
    for one in (accepted(old), accepted(new, case=newer, former=make_case())):
        with history.accepting([one]):
            pass
    assert live(history) == {new}


def test_a_launch_that_was_measured_again_is_stored_and_does_not_count(history):
    """It has its numbers, its gate and its samples. No value, summary or list of samples includes them."""
    busy = replace(make_launch(0, 9.0), outcome="contended", reason="others took 50%", contended="others took 50%")
    measurement = make_measurement(launches=(busy, make_launch(1, 0.010), make_launch(2, 0.012)))
    uid = recorded(history, measurement)
    (case,) = history.measurements(uid)
    assert case.values["step_time"] == (0.010, 0.012)
    assert (case.metrics["step_time"].n, case.metrics["step_time"].hi) == (2, 0.012)
    assert case.metrics["step_time"].outcome == "ok"
    assert [(x.index, x.outcome) for x in case.launches] == [(0, "contended"), (1, "ok"), (2, "ok")]
    assert [x.index for x in case.counted] == [1, 2]
    document = case.launches[0].document
    assert (document["metrics"]["step_time"], document["gate"], document["contended"]) == (
        9.0,
        {"load": 0.25},
        "others took 50%",
    )
    assert set(history.samples(uid, measurement.case.uid)) == {1, 2}
    assert rows(history, "SELECT DISTINCT launch FROM samples ORDER BY launch") == [(0,), (1,), (2,)]


def test_the_notes_of_a_launch_are_stored(history):
    """Such as that it has too few samples."""
    note = "ended with fewer samples than asked: 7 of 20"
    noted = replace(make_launch(0, 0.01), notes=(note,), fewer="7 of 20", settings="nice: 0 -> 10", emulated=True)
    uid = recorded(history, make_measurement(launches=(noted, make_launch(1, 0.01))))
    names = ("notes", "fewer", "settings", "emulated")
    found = [[x.document.get(name) for name in names] for x in history.measurements(uid)[0].launches]
    assert found == [[[note], "7 of 20", "nice: 0 -> 10", True], [[], None, None, None]]


def test_samples_are_read_by_launch(history):
    """Wall time, CPU time and run delay are exact to the last bit."""
    measurement = make_measurement()
    uid = recorded(history, measurement)
    walls = {launch.index: tuple(sample.wall for sample in launch.samples) for launch in measurement.launches}
    assert history.samples(uid, measurement.case.uid) == walls
    assert set(history.samples(uid, measurement.case.uid, "run_delay")) == {0, 1, 2}
    assert history.samples(uid, measurement.case.uid, "cpu_time")[0] == (0.02,) * 5


def test_a_failed_launch_is_stored_with_its_reason_and_log(history):
    """A failed case has no numbers. Its good launches and the log of the failed one are stored."""
    measurement = make_measurement(launches=(make_launch(0, 0.01), CRASHED))
    uid = recorded(history, measurement, Verdict("failed", measurement.failure))
    (case,) = history.measurements(uid)
    assert case.outcome == "failed"
    assert case.values["step_time"] == (0.01,)
    summary = case.metrics["step_time"]
    assert (summary.outcome, summary.n, summary.median, summary.lo) == ("failed", 1, None, None)
    assert summary.reason == "crashed: signal 11 (SIGSEGV)"
    assert case.launches[1].outcome == "crashed"
    assert case.launches[1].log.endswith("Segmentation fault")


@pytest.mark.parametrize("launches", [(), (CRASHED,)])
def test_a_case_without_any_good_launch_is_a_row_without_numbers(history, launches):
    """The primary metric has a row with the failure, and no 0."""
    uid = recorded(history, make_measurement(launches=launches, environment={}), Verdict("failed", "all lost"))
    (case,) = history.measurements(uid)
    assert case.metrics["step_time"].outcome == "failed"
    assert case.metrics["step_time"].median is None
    assert case.machine_key == "xeon-8480-2s"


def test_an_invalid_measurement_has_numbers_and_says_why_they_do_not_count(history):
    """They are there to look at, not to compare with."""
    false_proof = Check("dtype", ok=False, found="fp32", expected="bf16")
    launch = make_launch(0, 0.01)
    bad = type(launch)(index=0, outcome="ok", metrics=launch.metrics, proof=(false_proof,))
    measurement = make_measurement(launches=(bad,))
    uid = recorded(history, measurement, Verdict("invalid", measurement.invalid))
    summary = history.measurements(uid)[0].metrics["step_time"]
    assert (summary.outcome, summary.median) == ("invalid", 0.01)
    assert "found fp32" in summary.reason
    assert list(history.trend()["outcome"]) == ["invalid"]


def test_a_metric_that_is_not_finite_fails_alone(history):
    """A diverged loss has no number, and the step time has one."""
    launches = (make_launch(0, 0.01, loss=math.nan), make_launch(1, 0.01, loss=0.5))
    uid = recorded(history, make_measurement(launches=launches))
    (case,) = history.measurements(uid)
    assert case.metrics["loss"].median is None
    assert case.metrics["loss"].reason == "loss was nan in 1 of 2 launches"
    assert case.metrics["step_time"].median == 0.01
    assert case.values["loss"] == (0.5,)


def test_the_run_gets_its_software_from_the_first_worker_that_reports_it(history):
    """A run begins with its hardware only, and a worker that died early reports nothing."""
    uid = history.start_run(HARDWARE, {"suite": "smoke"})
    assert history.find_run(uid).torch_version is None
    history.record(uid, make_measurement(make_case("a"), launches=(CRASHED,), environment=HARDWARE), OK)
    history.record(uid, make_measurement(make_case("b")), OK)
    other = {**ENVIRONMENT, "software": {"torch": "2.9.0", "ipex": None}}
    history.record(uid, make_measurement(make_case("c"), environment=other), OK)
    run = history.find_run(uid)
    assert (run.torch_version, run.ipex_version, run.commit) == ("2.8.0+cpu", "2.8.0+cpu", "a1b2c3d4e5f6")
    assert [case.environment["software"]["torch"] for case in history.measurements(uid)] == [None, "2.8.0+cpu", "2.9.0"]
    assert set(history.trend()["suite"]) == {"smoke"}


def test_a_text_is_stored_without_nul(history):
    """The log of a crash may contain it, and PostgreSQL does not take it."""
    crashed = replace(CRASHED, reason="lost\0it", log="\0words")
    measurement = make_measurement(launches=(make_launch(0, 0.01), crashed))
    uid = recorded(history, measurement, Verdict("failed", measurement.failure))
    (case,) = history.measurements(uid)
    assert (case.launches[1].reason, case.launches[1].log) == ("lost\ufffdit", "\ufffdwords")
    assert case.metrics["step_time"].reason == "crashed: lost\ufffdit"
    assert case.verdict.reason == "crashed: lost\ufffdit"


def test_a_case_is_recorded_once_a_run_and_a_refusal_leaves_nothing(history):
    """Also if it ran on another machine the second time."""
    uid = recorded(history, make_measurement())
    for environment in (ENVIRONMENT, {**ENVIRONMENT, "machine_key": "elsewhere"}):
        with pytest.raises(HistoryError, match="has resnet50-cpu-bf16-infer-ipex already"):
            history.record(uid, make_measurement(steps=(9.0,), environment=environment), OK)
    assert history.measurements(uid)[0].metrics["step_time"].median == 0.011


def test_recording_a_case_again_replaces_its_first_record(history):
    """Other cases of the run, and other runs, stay as they were."""
    first = Verdict("invalid", "so it is", contended=True)
    earlier = recorded(history, make_measurement())
    uid = recorded(history, make_measurement(launches=(make_launch(0, 0.01), CRASHED)), first)
    other = make_measurement(make_case("vgg16"))
    history.record(uid, other, OK)
    history.record(uid, make_measurement(steps=(9.0,)), OK, again=True)
    found = {one.case.model: one for one in history.measurements(uid)}
    assert set(found) == {"resnet50", "vgg16"}
    again = found["resnet50"]
    assert (again.outcome, len(again.launches), again.metrics["step_time"].median) == ("ok", 1, 9.0)
    assert found["vgg16"].metrics["step_time"].median == 0.011
    assert history.measurements(earlier)[0].metrics["step_time"].median == 0.011
    assert [one.verdict.outcome for one in history.show(uid).cases] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda h: h.record("nobody", make_measurement(), OK), "has no run 'nobody'"),
        (lambda h: h.start_run(HARDWARE, {"started_at": "2026-05-04T10:00:00"}), "has no time zone"),
        (lambda h: h.trend("speed"), "there is no metric 'speed'; it must be one of step_time"),
    ],
)
def test_a_mistake_is_refused_in_one_sentence(history, act, message):
    with pytest.raises(HistoryError, match=re.escape(message)):
        act(history)
