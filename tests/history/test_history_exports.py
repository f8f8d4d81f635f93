"""One run in the formats of other tools, and the history as DataFrames."""

import json
import math
import statistics
import subprocess
import sys

import pandas as pd
import pytest
from history_records import CRASHED, ENVIRONMENT, OK, make_case, make_launch, make_measurement, make_round, make_seat

import ipexperf
from ipexperf.errors import HistoryError
from ipexperf.history import History, exports
from ipexperf.ratio import Ratio
from ipexperf.verdict import Verdict

NAME = "resnet50-cpu-bf16-infer-ipex[16]"
STEPS = (0.010, 0.011, 0.013)


@pytest.fixture
def path(tmp_path):
    """Two runs of a good, a failed and an invalid case, and of the base of the good one."""
    with History.open(tmp_path / "history.db") as history:
        for day in (1, 2):
            uid = history.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T08:00:00Z", "suite": "nightly"})
            history.record(uid, make_measurement(steps=STEPS), OK)
            history.record(uid, make_measurement(make_case(dtype="fp32"), steps=tuple(2 * x for x in STEPS)), OK)
            bad = make_measurement(make_case("bad"), launches=(make_launch(0, 0.001), CRASHED))
            history.record(uid, bad, Verdict("failed", "crashed"))
            history.record(uid, make_measurement(make_case("wrong")), Verdict("invalid", "accuracy failed"))
    return tmp_path / "history.db"


@pytest.fixture
def detail(path):
    with History.open(path) as history:
        return history.show("last")


def test_pytest_benchmark_gets_the_ratio_of_each_round(path):
    """Of a case over the one that it took turns with. The base has none, nor has a case without rounds."""
    with History.open(path) as history:
        history.record_round(history.find_run("last").uid, make_round())
        detail, before = history.show("last"), history.show("last~1")
    told = {x["name"]: x["extra_info"] for x in exports.pytest_benchmark(detail)["benchmarks"]}
    (one,) = told.pop(NAME)["paired"]
    assert (one["round"], one["over"], one["turns"]) == (make_round().uid, "resnet50-cpu-fp32-infer-ipex[16]", 8)
    assert one["log_ratio"] == pytest.approx(-math.log(2))
    assert not any("paired" in info for info in told.values())
    assert not any("paired" in x["extra_info"] for x in exports.pytest_benchmark(before)["benchmarks"])


def test_a_case_in_pairs_has_its_ratio_over_its_own_other_arm(path):
    """Also if the round had other comparisons."""
    seats = [
        make_seat(make_case("other"), 1.0, role="against"),
        make_seat(make_case(dtype="fp32"), 5.0),
        make_seat(make_case(stack="stock"), 1.0, role="against"),
        make_seat(make_case(), 4.0),
    ]
    with History.open(path) as history:
        history.record_round(history.find_run("last").uid, make_round(*seats))
        detail = history.show("last")
    told = {x["name"]: x["extra_info"]["paired"] for x in exports.pytest_benchmark(detail)["benchmarks"]}
    (one,), (other,) = told[NAME], told["resnet50-cpu-fp32-infer-ipex[16]"]
    assert (one["over"], other["over"]) == ("resnet50-cpu-bf16-infer-stock[16]", "other-cpu-bf16-infer-ipex[16]")
    assert math.exp(one["log_ratio"]) == pytest.approx(4.0)
    assert math.exp(other["log_ratio"]) == pytest.approx(5.0)


def test_a_round_of_pytest_benchmark_is_a_launch(detail):
    """Three launches are three rounds, however many samples they have. pytest-benchmark computes the statistics."""
    told = exports.pytest_benchmark(detail)
    (bench,) = [x for x in told["benchmarks"] if x["name"] == NAME]
    assert bench["stats"]["data"] == list(STEPS)
    assert (bench["stats"]["rounds"], bench["stats"]["iterations"]) == (3, 1)
    assert bench["stats"]["mean"] == pytest.approx(statistics.fmean(STEPS))
    assert bench["extra_info"]["throughput"] == pytest.approx(16 / 0.011)
    assert told["commit_info"]["id"] == "a1b2c3d4e5f6"


@pytest.mark.process
def test_pytest_benchmark_reads_the_export(detail, tmp_path):
    """Its own command draws the file."""
    file = tmp_path / "0001_run.json"
    file.write_text(json.dumps(exports.pytest_benchmark(detail), allow_nan=False))
    command = [sys.executable, "-m", "pytest_benchmark", "compare", str(file), "--columns", "median,rounds"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("resnet50-cpu-bf16")]
    assert line.split()[-1] == "3"


def test_failed_and_invalid_cases_are_not_exported(path, detail):
    """The failed case has a launch of a millisecond, and the invalid one plausible numbers."""
    # With what follows in the id of a case: the uid of a run may have the letters "bad" in it.
    assert "bad-cpu" not in json.dumps(exports.pytest_benchmark(detail))
    assert "wrong-cpu" not in json.dumps(exports.pytest_benchmark(detail))
    with History.open(path) as history:
        uid = history.start_run(ENVIRONMENT, {})
        history.record(uid, make_measurement(make_case("wrong")), Verdict("invalid", "accuracy failed"))
        with pytest.raises(HistoryError, match="has no case with numbers that count: there is nothing to export"):
            exports.pytest_benchmark(history.show(uid))


def test_each_query_returns_a_frame(path):
    """It has the rows that the command prints, with numbers as numbers and moments as moments."""
    history = ipexperf.history
    runs = history.runs(path)
    assert list(runs["started_at"].dt.day) == [2, 1]
    shown = history.show(path)
    assert set(shown["metric"]) == {"step_time", "throughput"}
    failed = shown[shown["case_id"].str.startswith("bad") & (shown["metric"] == "step_time")]
    assert failed["median"].isna().all()
    assert list(failed["verdict"]) == ["failed"]
    compared = history.compare(path, "first").set_index("model")
    assert compared.loc["bad", "ratio"] != compared.loc["bad", "ratio"]
    assert list(compared.loc["resnet50", "ratio"]) == [1.0, 1.0]
    assert history.trend(path, model="resnet50", dtype="bf16")["median"].dtype == "float64"
    assert history.changes(path).empty
    assert list(history.changes(path).columns[:3]) == ["direction", "case_id", "case_uid"]
    assert history.speedup(path, over=["dtype"])["speedup"].tolist() == [pytest.approx(2.0)]
    for table in (runs, shown, compared):
        assert isinstance(table, pd.DataFrame)
    assert {str(shown[name].dtype) for name in ("median", "mad", "ratio")} == {"float64"}


EXTRA = {"extra_info"}
PUBLISHED = {
    "benchmark": {"name", "mode", "dtype", *EXTRA},
    "model": {"name", "type", "backend", "origins", *EXTRA},
    "metric": {"name", "benchmark_values", "target_value", *EXTRA},
}
"""The fields of PyTorch's table `oss_ci_benchmark_v3`. What is in `extra_info` is a text there."""


def test_pytorchs_database_gets_a_record_for_each_metric_with_its_verdict(path):
    """The verdict and its interval are on the metric that was judged."""
    verdict = Verdict("regressed", "12 % slower", ratio=Ratio(1.12, 1.1, 1.14))
    with History.open(path) as history:
        history.record(history.find_run("last").uid, make_measurement(steps=STEPS), verdict, again=True)
        records = exports.pytorch(history.show("last"))
    assert {record["benchmark"]["extra_info"]["outcome"] for record in records} == {"regressed", "ok"}
    for record in records:
        assert all(set(record[part]) <= fields for part, fields in PUBLISHED.items())
        every = [*record["benchmark"]["extra_info"].values(), *record["metric"]["extra_info"].values()]
        assert all(isinstance(value, str) for value in every)
    (time,) = [x for x in records if x["metric"]["name"] == "step_time" and x["benchmark"]["dtype"] == "bf16"]
    assert (time["head_sha"], time["schema_version"], time["timestamp"]) == ("a1b2c3d4e5f6", "v3", 1777708800)
    assert time["model"] == {"name": "resnet50", "type": "model", "backend": "ipex"}
    assert time["dependencies"]["torch"] == {"version": "2.8.0+cpu"}
    told = time["metric"]
    assert told["benchmark_values"] == list(STEPS)
    words = {
        "unit": "s",
        "higher_is_better": "false",
        "verdict": "regressed",
        "reason": "12.0 % slower (+10.0 to +14.0 %); 12 % slower",
    }
    assert told["extra_info"] == {**words, "ratio": "1.12", "lo": "1.1", "hi": "1.14"}
