"""Verdicts on metrics beside speed: each in the series of its metric, and the case counts once."""

from dataclasses import replace

from history_records import ENVIRONMENT, make_case, make_launch, make_measurement
from sqlalchemy import select

from ipexperf.history import schema
from ipexperf.judge import metrics
from ipexperf.judge.policy import MetricPolicy, Policy
from ipexperf.ratio import Ratio
from ipexperf.result import METRICS
from ipexperf.verdict import Level, Verdict


def with_memory(outcome="regressed", speed="ok"):
    """A case as quick as ever that takes 2 % more memory, or another verdict of that."""
    policy = MetricPolicy.of(METRICS["peak_memory"], 0.005)
    memory = Verdict(
        outcome,
        "2.0% more than the baseline",
        metric="peak_memory",
        ratio=Ratio(1.02, 1.018, 1.022),
        p_value=1e-6,
        mde=0.01,
        policy=policy.label,
        level=Level(4e8, 4.08e8),
        constants=policy.to_json(),
    )
    return metrics.combined(Verdict(speed, "within the tolerance", ratio=Ratio(1.0), policy=Policy().label), [memory])


def took_memory(case=None):
    launches = tuple(make_launch(index, 0.01, peak_memory=4.08e8) for index in range(2))
    return make_measurement(case, launches=launches)


def test_the_verdict_on_another_metric_is_stored_in_the_series_of_that_metric(history):
    """The series of speed has the verdict on the case."""
    judged = with_memory()
    uid = history.start_run(ENVIRONMENT, {})
    history.record(uid, took_memory(), judged, Policy())
    (case,) = history.measurements(uid)
    stored = replace(judged, others=tuple(replace(one, constants=None) for one in judged.others))
    assert case.verdict == stored
    assert (case.outcome, case.tested, case.verdict.alone.outcome) == ("regressed", "regressed", "ok")
    assert history.find_run(uid).outcomes == {"regressed": 1}
    judged = history.trend(metric=None).dropna(subset="verdict")
    found = dict(zip(judged["metric"], zip(judged["verdict"], judged["ratio"], strict=True), strict=True))
    assert found == {"step_time": ("regressed", 1.0), "peak_memory": ("regressed", 1.02)}
    with history._engine.connect() as connection:
        documents = connection.execute(select(schema.policy.c.doc)).scalars().all()
    assert {(one["name"], one.get("metric")) for one in documents} == {("metric-1", "peak_memory"), ("screen-2", None)}
    assert {row["metric"]: row["verdict"] for row in history.show(uid).to_rows() if row["verdict"]} == {
        "step_time": "regressed",
        "peak_memory": "regressed",
    }


def test_a_case_counts_once_however_many_metrics_were_judged(history):
    uid = history.start_run(ENVIRONMENT, {})
    history.record(uid, took_memory(), with_memory("improved"), Policy())
    history.record(uid, took_memory(make_case("vgg16")), with_memory(), Policy())
    assert history.find_run(uid).outcomes == {"ok": 1, "regressed": 1}
    board = history.board(["step_time", "peak_memory"], 5)
    told = {line.case.model: [one.outcome for one in line.verdicts.values()] for line in board.lines}
    assert told == {"resnet50": ["ok"], "vgg16": ["regressed"]}


def test_a_shift_of_the_platform_leaves_the_verdict_on_memory(history):
    uid = history.start_run(ENVIRONMENT, {})
    history.record(uid, took_memory(), with_memory("improved", "regressed"), Policy())
    whole = Policy().for_run()
    moved = Verdict("platform_shift", "moved with the platform", ratio=Ratio(1.0), policy=whole.label)
    history.settle(uid, {"line": "", "shift": 1.2, "fails": True}, {make_case().uid: moved}, whole)
    (case,) = history.measurements(uid)
    assert (case.outcome, case.tested) == ("platform_shift", "regressed")
    assert [(one.metric, one.outcome) for one in case.verdict.others] == [("peak_memory", "improved")]


def test_the_document_of_a_run_has_the_other_metrics_beside_the_case(history):
    uid = history.start_run(ENVIRONMENT, {})
    history.record(uid, took_memory(), with_memory(), Policy())
    told = history.show(uid).to_json()["cases"][0]["verdict"]
    assert (told["outcome"], told["speed"]) == ("regressed", {"outcome": "ok", "reason": "within the tolerance"})
    assert [(one["metric"], one["outcome"], one["level"]["before"]) for one in told["others"]] == [
        ("peak_memory", "regressed", 4e8)
    ]
