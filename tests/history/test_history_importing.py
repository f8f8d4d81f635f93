"""`db import`: what other tools measured, in a history as if it had been measured here, but never as a baseline."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from cli_answers import refused, run
from history_records import OK, make_measurement

from ipexperf import cli
from ipexperf.history import History

SHA = "22b920c6d0d54112ccbc020eddba9ea7a2d204f3"
PYTEST_BENCHMARK = {
    "machine_info": {"node": "fv-az1", "python_version": "3.12.1", "cpu": {"brand_raw": "EPYC 7763", "count": 4}},
    "commit_info": {"id": SHA, "branch": "main", "dirty": False},
    "benchmarks": [{"fullname": "tests/test_a.py::test_b[1]", "stats": {"median": 0.25, "mean": 0.5}}],
    "datetime": "2026-05-01T08:00:00.5+02:00",
    "version": "5.1.0",
}
GOOGLE = {
    "context": {"date": "2026-05-01T08:00:00+02:00", "host_name": "box", "num_cpus": 8, "json_schema_version": 1},
    "benchmarks": [
        *(
            {"name": "BM_a/8", "run_name": "BM_a/8", "run_type": "iteration", "real_time": t, "cpu_time": t}
            | {"time_unit": "us", "items_per_second": 4.0}
            for t in (10, 30, 20)
        ),
        {"name": "BM_a/8_mean", "run_name": "BM_a/8", "aggregate_name": "mean", "real_time": 99, "time_unit": "us"},
        {"name": "BM_b_median", "run_name": "BM_b", "aggregate_name": "median", "real_time": 7, "time_unit": "ns"},
        {"name": "BM_c", "error_occurred": True, "error_message": "no card"},
        {"name": "BM_a_BigO", "run_name": "BM_a", "aggregate_name": "BigO", "cpu_coefficient": 1.0},
    ],
}
HYPERFINE = {
    "results": [
        {"command": "sort big --token=s3cr3tvalue", "times": [2.0, 1.0, 4.0], "user": 0.75, "system": 0.5}
        | {"memory_usage_byte": [10, 20, 30], "parameters": {"threads": "4"}}
    ]
}
PERFHERDER = {
    "framework": {"name": "browsertime"},
    "application": {"name": "firefox"},
    "suites": [
        {"name": "speedometer", "value": 12.5, "unit": "score", "lowerIsBetter": False, "extraOptions": ["warm"]}
        | {"subtests": [{"name": "load", "value": 250, "unit": "ms"}]}
    ],
}
TREEHERDER = [
    {"suite": "a11yr", "name": "a11yr opt", "platform": "linux64", "lower_is_better": True, "measurement_unit": "ms"}
    | {"data": [{"push_timestamp": "2019-08-09T21:56:59", "revision": SHA, "value": value} for value in (200, 300)]}
]
PYTORCH = {
    "benchmark": {"name": "pr_time", "mode": "inference", "extra_info": {"device": "cuda"}},
    "model": {"name": "add_loop", "backend": "eager"},
    "metric": {"name": "instructions", "benchmark_values": [3086359081]},
    "runners": [{"name": "A100", "gpu_info": "NVIDIA A100"}],
    "timestamp": 1777622400,
    "head_sha": SHA,
}


def asv(*values: float | None, commit: str = SHA, date: int = 1777622400000, **changes: Any) -> dict[str, Any]:
    """A file of asv's results of one benchmark with two parameters and one of memory."""
    columns = {"result_columns": ["result", "params", "version"], "env_name": "py3.12", "version": 2}
    results = {"bench.time_a": [list(values or (0.5, None)), [["1", "'x'"]], "v1"], "bench.mem_b": [[344], [], None]}
    document = {"commit_hash": commit, "date": date, "params": {"machine": "cheetah"}, "python": "3.12", **columns}
    return {**document, "results": results | {"bench.gone": [[1.0], [], None]}, **changes}


@pytest.fixture
def folder(tmp_path):
    """asv's results folder, without results."""
    described = {"param_names": [], "params": []}
    benchmarks = {"bench.time_a": {"unit": "seconds", "version": "v1"}, "bench.mem_b": {"unit": "bytes"}}
    (tmp_path / "asv" / "cheetah").mkdir(parents=True)
    text = json.dumps({"version": 2} | {name: {**described, **one} for name, one in benchmarks.items()})
    (tmp_path / "asv" / "benchmarks.json").write_text(text)
    machine = {"machine": "cheetah", "arch": "x86_64", "os": "Linux", "version": 1}
    (tmp_path / "asv" / "cheetah" / "machine.json").write_text(json.dumps(machine))
    return tmp_path / "asv"


@pytest.fixture
def imported(tmp_path, folder, capsys):
    """A function that imports a document, and returns the history and what was said."""

    def of(document: Any) -> tuple[str, str]:
        (folder / "cheetah" / "one.json").write_text(document if isinstance(document, str) else json.dumps(document))
        db = str(tmp_path / "history.db")
        return db, run(capsys, "db", "import", str(folder), "--db", db)

    return of


READ = {
    "pytest-benchmark": (PYTEST_BENCHMARK, {"tests/test_a.py::test_b[1]": {"step_time": 0.25}}, "EPYC-7763-4"),
    "google-benchmark": (
        GOOGLE,
        {"BM_a/8": {"step_time": 2e-5, "cpu_time": 2e-5, "throughput": 4.0}, "BM_b": {"step_time": 7e-9}},
        "box-8",
    ),
    "asv": (asv(), {"bench.time_a(1)": {"step_time": 0.5}, "bench.mem_b [bytes]": {"figure": 344}}, "cheetah-py3.12"),
    "hyperfine": (
        HYPERFINE,
        {"sort big --token=*** threads=4": {"step_time": 2.0, "cpu_time": 1.25, "peak_memory": 20}},
        "unnamed",
    ),
    "perfherder": (
        PERFHERDER,
        {"speedometer warm [score]": {"figure": 12.5}, "speedometer warm load": {"step_time": 0.25}},
        "browsertime-firefox",
    ),
    "treeherder": (TREEHERDER, {"a11yr opt": {"step_time": 0.25}}, "linux64"),
    "pytorch": (PYTORCH, {"pr_time inference add_loop eager instructions": {"figure": 3086359081}}, "A100-NVIDIA-A100"),
}


@pytest.mark.parametrize(("tool", "document", "values", "machine"), [(name, *row) for name, row in READ.items()])
def test_each_format_is_known_by_its_keys_and_read(tool, document, values, machine, imported):
    """A result that is no time is the metric `figure`, and has no time."""
    db, _ = imported(document)
    with History.open(db) as history:
        detail = history.show("last")
    told = {x.case.name: {k: v for k, v in x.medians.items() if v is not None} for x in detail.cases}
    assert told == {name: pytest.approx(of_name) for name, of_name in values.items()}
    assert detail.run.machine_key == f"{'perfherder' if tool == 'treeherder' else tool}-{machine}"
    assert (detail.run.status, {x.outcome for x in detail.cases}) == ("imported", {"no_baseline"})
    if tool not in ("hyperfine", "perfherder", "google-benchmark"):
        assert detail.run.commit == SHA
    begun = {"pytest-benchmark": "2026-05-01T06:00:00.500000+00:00", "treeherder": "2019-08-09T21:56:59.000000+00:00"}
    assert detail.run.started_at == begun.get(tool, detail.run.started_at)


@pytest.mark.parametrize("document", [row[0] for row in READ.values()], ids=list(READ))
def test_importing_twice_is_importing_once(document, imported):
    db, first = imported(document)
    with closing(sqlite3.connect(db)) as connection:
        before = list(connection.iterdump())
        again = imported(document)[1]
        assert ("new" in first, "nothing new" in again) == (True, True)
        assert list(connection.iterdump()) == before


def test_a_file_to_which_asv_adds_results_is_one_run(imported):
    """What failed the first time and has a number now is new. What was there stays as it was."""
    db, first = imported(asv(0.5, None))
    assert "2 results new; 2 without a number" in first
    assert "1 result new; 2 results there already" in imported(asv(9.0, 0.75))[1]
    with History.open(db) as history:
        assert [run.uid for run in history.runs()] == [history.find_run("last").uid]
        times = {x.case.name: x.medians["step_time"] for x in history.measurements("last")}
    assert times == {"bench.time_a(1)": 0.5, "bench.time_a('x')": 0.75, "bench.mem_b [bytes]": None}


def test_a_name_cannot_command_a_terminal(imported):
    db, _ = imported({"results": [{"command": "\x1b[2Jls\n\0\ud800 -l", "times": [1.0]}]})
    with History.open(db) as history:
        assert [x.case.name for x in history.measurements("last")] == ["[2Jls -l"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        (json.dumps(GOOGLE)[:200], "it is not whole JSON"),
        (f"{json.dumps(PYTORCH)}\n{{", "line 2"),
        ('{"name": "pkg", "scripts": {}}', "of none of the formats"),
        (
            json.dumps({**GOOGLE, "context": {**GOOGLE["context"], "json_schema_version": 2}}),
            "json_schema_version is 2",
        ),
        (json.dumps({**PYTORCH, "schema_version": "v4"}), "schema_version is 'v4', expected v3"),
        (json.dumps(asv(version=3)), "version is 3, expected 1 or 2"),
        (json.dumps({"results": [{"command": "a", "times": [1.0, float("nan")]}]}), "results[0].times[1] is nan"),
        (json.dumps({"results": [{"command": "a", "times": [-1.0]}]}), "time below 0"),
        (json.dumps({"results": HYPERFINE["results"] * 2}), "is there twice in one run"),
        (json.dumps({**PYTEST_BENCHMARK, "datetime": "yesterday"}), "datetime is 'yesterday', expected a date"),
        (json.dumps({**PYTEST_BENCHMARK, "benchmarks": []}), "it has no results"),
        (json.dumps(asv(results={"bench.time_a": [[1, 2, 3], [["1"]], "v1"]})), "has 3 results, expected 1"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence_and_the_others_are_imported(text, words, folder, tmp_path, capsys):
    bad, good = folder / "cheetah" / "bad.json", tmp_path / "good.json"
    bad.write_text(text)
    good.write_text(json.dumps(HYPERFINE))
    db = str(tmp_path / "history.db")
    assert cli.main(["db", "import", str(bad), str(good), "--db", db]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert f"{bad}: " in said.err
    assert words in said.err
    assert "1 result new" in said.out
    with History.open(db) as history:
        assert [run.machine_key for run in history.runs()] == ["hyperfine-unnamed"]


def test_bad_files_alone_make_no_history(tmp_path, capsys):
    """A folder without JSON files, a file that is not there, and asv's results without what it says of them."""
    (tmp_path / "empty").mkdir()
    assert "no JSON file" in refused(capsys, "db", "import", str(tmp_path / "empty"), "--db", str(tmp_path / "h.db"))
    assert "cannot be read" in refused(capsys, "db", "import", str(tmp_path / "x"), "--db", str(tmp_path / "h.db"))
    (tmp_path / "one.json").write_text(json.dumps(asv()))
    told = refused(capsys, "db", "import", str(tmp_path / "one.json"), "--db", str(tmp_path / "h.db"))
    assert "benchmarks.json, which says what asv's benchmarks measure, cannot be read" in told
    assert not (tmp_path / "h.db").exists()


@pytest.fixture
def history_of_asv(folder, tmp_path, capsys):
    """Twenty commits, the last ten of which take longer and more memory."""
    for day in range(20):
        file = asv(0.5 + day % 3 / 1000 + day // 10, commit=f"{day:040x}", date=1777622400000 + day * 86400000)
        file["results"] = {"bench.time_a": [file["results"]["bench.time_a"][0], [["1"]], "v1"]} | {
            "bench.mem_b": [[344 + day % 3 + 100 * (day // 10)], [], None]
        }
        (folder / "cheetah" / f"{day}.json").write_text(json.dumps(file))
    run(capsys, "db", "import", str(folder), "--db", str(tmp_path / "history.db"))
    return str(tmp_path / "history.db")


@pytest.mark.parametrize(("metric", "name"), [("step_time", "bench.time_a(1)"), ("figure", "bench.mem_b [bytes]")])
def test_changes_names_the_commit_of_an_imported_regression(metric, name, history_of_asv, capsys):
    told = json.loads(run(capsys, "changes", "--metric", metric, "--db", history_of_asv, "--json"))
    (change,) = told["changes"]
    assert (change["case_id"], change["first_commit"]) == (name, f"{10:040x}")
    assert change["direction"] == "regressed"


def test_pages_draw_what_was_imported_and_say_so(history_of_asv, tmp_path, capsys):
    """They have no command that measures it again, because that is not known."""
    run(capsys, "report", "--html", str(tmp_path / "pages"), "--db", history_of_asv)
    pages = [page.read_text() for page in (tmp_path / "pages" / "cases").glob("bench.*.html")]
    assert len(pages) == 2
    for page in pages:
        assert "imported from asv: nothing was judged" in page
        assert 'id="trend"' in page
        assert "Measure it again" not in page


def test_what_was_imported_is_no_baseline_and_passes_no_gate(history_of_asv, tmp_path, capsys):
    words = ["baseline", "accept", "last", "--reason", "x", "--baselines", str(tmp_path / "baselines")]
    assert cli.main([*words, "--db", history_of_asv]) == 1
    assert "it was imported from asv: measure it with ipexperf" in capsys.readouterr().out
    assert not (tmp_path / "baselines").exists()
    assert cli.main(["gate", "--db", history_of_asv]) == 125


@pytest.mark.parametrize("form", ["--pytest-benchmark", "--pytorch"])
def test_what_a_run_exports_can_be_imported(form, tmp_path, capsys):
    """With the same times, as series of their own."""
    db = str(tmp_path / "history.db")
    with History.open(db) as history:
        uid = history.start_run(make_measurement().environment, {"started_at": "2026-05-01T08:00:00Z"})
        history.record(uid, make_measurement(), OK)
        history.finish_run(uid, "finished")
    (tmp_path / "run.json").write_text(run(capsys, "report", form, "--db", db))
    assert "new" in run(capsys, "db", "import", str(tmp_path / "run.json"), "--db", db)
    points = json.loads(run(capsys, "trend", "--db", db, "--json"))
    assert {point["median"] for point in points if point["median"]} == {0.011}
    assert len({point["machine_key"] for point in points}) == 2
