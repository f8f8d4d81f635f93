"""The scripts that fill a big history, and that try change points on simulated and on recorded series, in small."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from history_records import ENVIRONMENT, OK, make_measurement

from ipexperf.history import History

pytestmark = pytest.mark.process

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script, *arguments):
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_generated_history_has_its_rows_and_answers_every_query(tmp_path):
    """It has as many measurements as requested, and the history reads them as any others."""
    path = tmp_path / "big.db"
    done = run("history/queries.py", "--rows", "2000", "--models", "1", "--rounds", "1", "--keep", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2000 measurements: 25 runs of 80 series, ")
    assert len(done.stdout.splitlines()) == 13
    with History.open(path, create=False) as history:
        assert len(history.trend(None, until="2021-01-01")) == 2000
        assert set(history.trend()["verdict"]) == {"ok"}
        *appended, newest, before = history.runs(4)
        assert [run.started_at[:16] for run in (newest, before)] == ["2020-01-07T02:00", "2020-01-06T20:00"]
        assert [run.outcomes for run in appended] == [{"ok": 20}] * 2


def test_the_calibration_prints_the_same_tables_again():
    """Its seeds are fixed. A threshold of 0 raises alarms, which it counts."""
    arguments = ("--series", "2", "--thresholds", "1", "--nights", "40")
    first, again = (run("changepoints/calibrate.py", *arguments) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    (line,) = [line for line in first.stdout.splitlines() if line.startswith("| rho 0.3 | 1.0 ")]
    assert float(line.split("|")[4].split()[0]) > 1


def noisy(runs, moved, size, seed=3):
    """Values that scatter by half a per cent, and are larger from one run on."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    return [10 * (1 + size * (number >= moved)) * (1 + chance.gauss(0, 0.005)) for number in range(runs)]


def written(path, head, rows):
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


def row_of(done, series):
    """The cells of the only change of a series."""
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"| {series}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_recorded_series_are_compared_with_their_labels(tmp_path):
    """One labelled step is found, one label is on a series that never moved, and shuffled residuals hold no step."""
    rows = [
        ("moved", f"2026-{1 + n // 28:02d}-{1 + n % 28:02d}", value, "new compiler" if n == 41 else "")
        for n, value in enumerate(noisy(80, 40, 0.05))
    ]
    rows += [("calm", n, value, "x" if n == 30 else "") for n, value in enumerate(noisy(60, 0, 0.0))]
    path = written(tmp_path / "series.csv", "series,time,value,label", rows[::-1])  # in any order
    done = run("changepoints/real/read.py", "--format", "csv", path)
    _, kind, place, time, span, ratio, label = row_of(done, "moved")
    assert (kind, place, time, span, label) == ("step", "40", "2026-02-13", "40 to 40", "41")
    assert float(ratio) == pytest.approx(1.05, abs=0.005)
    tail = done.stdout.splitlines()[-3:]
    assert tail[0] == "140 runs of 2 series, 0 of them too short"
    assert tail[1] == "1 of 2 labels found within 4 runs; 0 of 1 steps have no label so near"
    assert tail[2].startswith("shuffled residuals: 0 steps in 20 series, 0.00 in 365 runs")
    done = run("changepoints/real/read.py", "--format", "csv", "--near", "0", path)
    assert "0 of 2 labels found within 0 runs; 1 of 1 steps have no label so near" in done.stdout


def test_the_results_of_asv_are_read_by_machine_environment_and_parameters(tmp_path):
    """A value that is null, and a benchmark whose code changed, are no part of the series."""
    (tmp_path / "m1").mkdir()
    (tmp_path / "m1" / "machine.json").write_text("{}")
    for number, value in enumerate(noisy(40, 20, 0.1)):
        results = {
            "suite.time_it": [[value, None], [["'a'", "'b'"]], "v1"],
            "suite.time_new": [[1.0], [], "old" if number < 4 else "new"],
        }
        document = {
            "version": 2, "commit_hash": f"{number:040x}", "date": 1767225600000 + 86400000 * number,
            "env_name": "py3", "result_columns": ["result", "params", "version", "started_at"], "results": results,
        }  # fmt: skip
        (tmp_path / "m1" / f"{number:08x}-py3.json").write_text(json.dumps(document))
    done = run("changepoints/real/read.py", "--format", "asv", str(tmp_path))
    assert row_of(done, "m1")[:4] == ["m1 py3 suite.time_it('a') v1", "step", "20", "2026-01-21T00:00:00+00:00"]
    assert "80 runs of 3 series, 1 of them too short" in done.stdout
    assert "1 steps; there are no labels to compare them with" in done.stdout


def test_the_series_of_mozilla_are_read_with_the_labels_of_their_alerts(tmp_path):
    """Values of one revision are one run. A false positive is no label."""
    rows = [
        (77, f"{n:040x}", f"2026-05-{1 + n // 24:02d} {n % 24:02d}:00:00", value * factor, status)
        for n, value in enumerate(noisy(60, 30, 0.08))
        for factor in (0.9, 1.0, 1.1)
        for status in ["TP" if n == 30 else "FP" if n == 10 else "TN"]
    ]
    head = "signature_id,revision,push_timestamp,value,alert_summary_status_general"
    written(tmp_path / "77_timeseries_data.csv", head, rows)
    done = run("changepoints/real/read.py", "--format", "mozilla", str(tmp_path))
    assert row_of(done, "77")[1:4] == ["step", "30", "2026-05-02 06:00:00"]
    assert "60 runs of 1 series" in done.stdout
    assert "1 of 1 labels found within 4 runs; 0 of 1 steps" in done.stdout


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("csv", "series,value\na,1\n", "series.csv has no column time"),
        ("csv", "series,time,value\na,soon,1\n", "series.csv, line 2: 'soon' is neither a number nor a time"),
        ("asv", "{}", "series.csv has no file MACHINE/COMMIT-ENVIRONMENT.json"),
    ],
)
def test_a_file_of_another_format_is_refused(tmp_path, form, text, message):
    """One sentence with the place, and exit status 2."""
    path = tmp_path / "series.csv"
    path.write_text(text)
    done = run("changepoints/real/read.py", "--format", form, str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_steps_planted_in_recorded_residuals_are_found(tmp_path):
    """The recorded series has a step of its own, which is taken away: without a planted one nothing is reported."""
    path = tmp_path / "ipexperf.db"
    with History.open(path) as history:
        for number, value in enumerate(noisy(60, 30, 0.2)):
            moment = f"2026-{3 + number // 30:02d}-{1 + number % 30:02d}T02:00:00Z"
            uid = history.start_run(ENVIRONMENT, {"started_at": moment})
            history.record(uid, make_measurement(steps=(value / 1000,)), OK)
    done = run("changepoints/real/plant.py", "--db", str(path), "--trials", "10")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("60 runs of 1 series, log sd 0.5%")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[4:]]
    assert [row[0] for row in rows] == ["0%", "3%", "5%", "8%"]
    assert rows[0][1:] == ["10", "-", "-", "0.00"]
    assert rows[-1][1:3] == ["10", "100%"]
    done = run("changepoints/real/plant.py", "--db", str(path), "--runs", "61")
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no series of step_time with 61 good runs" in done.stderr
