"""`ipexperf trend`, `changes`, `merge`, `db` and `prune`: what they print, write and refuse."""

import csv
import io
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_answers import refused, run

from ipexperf.case import NetworkCase
from ipexperf.cli import main
from ipexperf.history import History
from ipexperf.judge.baseline import Baselines, CaseBaseline, Session, write
from ipexperf.result import Launch, Measurement
from ipexperf.verdict import Verdict

KEY = "xeon-8480-2s"
CASE = NetworkCase(model="resnet50", device="cpu", dtype="bf16", mode="infer", stack="ipex", batch=16, size=224)
RUNS = 16
MOVED = 9
PAGES = ["report", "--html", "site"]
QUESTIONS = (["trend"], ["changes"], ["report", "--csv"], PAGES, ["report", "--pytest-benchmark"], ["compare", "first"],
        ["compare", "--ratios"], ["show", "last"], ["show"], ["db", "check"], ["db", "upgrade"],
        ["db", "prune", "--before", "2026-05-03"], ["db", "merge", "other.db"])  # fmt: skip
"""Every command that reads a history."""
TYPICAL = (["trend"], PAGES, ["db", "check"], ["db", "merge", "other.db"])
"""One for each way to open a file."""


def environment(number):
    torch = "2.9.0+cpu" if number >= MOVED else "2.8.0+cpu"
    git = {"commit": f"{number:08d}", "branch": "main"}
    return {"machine_key": KEY, "software": {"torch": torch, "ipex": None}, "variables": {}, "git": git}


@pytest.fixture(scope="module")
def sixteen_nights(tmp_path_factory):
    """Nine nights at one level, and seven that are slower."""
    path = tmp_path_factory.mktemp("made") / "ipexperf.db"
    with History.open(path) as history:
        for number in range(RUNS):
            step = (0.0125 if number >= MOVED else 0.010) * (1 + 0.001 * (number % 3))
            launches = tuple(Launch(i, "ok", metrics={"step_time": step, "throughput": 16 / step}) for i in range(2))
            moment = f"2026-05-{number + 1:02d}T02:00:00Z"
            uid = history.start_run(environment(number), {"started_at": moment})
            measurement = Measurement(CASE, launches, environment(number), started_at=moment, finished_at=moment)
            history.record(uid, measurement, Verdict("ok", "within the noise"))
            history.finish_run(uid, "finished")
    return path


@pytest.fixture(autouse=True)
def path(sixteen_nights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IPEXPERF_DB", raising=False)
    monkeypatch.delenv("IPEXPERF_BASELINES", raising=False)
    return Path(shutil.copy(sixteen_nights, tmp_path / "ipexperf.db"))


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_changes_prints_what_regressed_and_between_which_runs(capsys):
    """It prints the case, the ratio, the commits, and the version that changed there."""
    output = run(capsys, "changes")
    (line,) = [line for line in output.splitlines() if line.strip().startswith(CASE.id)]
    assert "regressed" in line
    assert "1.25" in line
    assert f"commits  {MOVED - 1:08d}..{MOVED:08d}" in output
    assert "differs  torch: 2.8.0+cpu -> 2.9.0+cpu" in output
    assert "1 change in 1 series" in output
    # The change could first be reported when its level had four runs, the fourth newest of all.
    assert "1 change in 1 series" in run(capsys, "changes", "--since", "last~3")
    assert "0 changes in 1 series" in run(capsys, "changes", "--since", "last~2")
    assert "0 changes in 1 series; 1 too short: fewer than 8 good runs" in run(capsys, "changes", "--until", "last~9")


def test_changes_answers_in_json_and_csv(capsys):
    """Both have all fields of the change."""
    document = json.loads(run(capsys, "changes", "--json", "--metric", "throughput"))
    assert [(change["metric"], change["direction"]) for change in document["changes"]] == [("throughput", "regressed")]
    assert (document["series"], document["short"]) == (1, 0)
    (row,) = csv.DictReader(io.StringIO(run(capsys, "changes", "--csv")))
    assert row["differences"].startswith("torch: 2.8.0+cpu -> 2.9.0+cpu; commit: ")


def test_trend_and_changes_say_when_a_network_was_changed_under_its_name(capsys, tmp_path, monkeypatch):
    """From there on a level is that of other work, whatever the software. A run that counted nothing is passed over."""
    monkeypatch.setenv("COLUMNS", "300")
    database = str(tmp_path / "work.db")
    with History.open(database) as history:
        for number in range(RUNS):
            step, flops = (0.02, 3_000_000_000) if number >= MOVED else (0.01, 1_500_000_000)
            structure = {"digest": str(flops), "structure": {"flops": flops}} if number % 4 != 2 else None
            launch = Launch(0, "ok", metrics={"step_time": step * (1 + 0.001 * (number % 3))}, fingerprint=structure)
            moment = f"2026-05-{number + 1:02d}T02:00:00Z"
            uid = history.start_run(environment(0), {"started_at": moment})
            history.record(uid, Measurement(CASE, (launch,), environment(0), moment, moment), Verdict("ok", ""))
            history.finish_run(uid, "finished")
    told = "other work: floating point operations of a step: 1,500,000,000 -> 3,000,000,000"
    out = run(capsys, "trend", "--db", database)
    assert out.count("other work") == 1
    assert f"{CASE.id}: since 2026-05-{MOVED + 1:02d} 02:00:00 " in out
    assert told in out
    assert f"differs  {told}" in run(capsys, "changes", "--db", database)
    assert "other work" not in run(capsys, "trend", "--db", database, "--until", f"2026-05-{MOVED:02d}")


def test_trend_has_a_last_day_and_a_limit(capsys):
    output = run(capsys, "trend", "--until", "2026-05-04")
    assert len([line for line in output.splitlines() if line.strip().startswith("2026-05-0")]) == 4
    rows = list(csv.DictReader(io.StringIO(run(capsys, "trend", "--csv", "--stack", "ipex,stock", "--limit", "2"))))
    assert [row["stack"] for row in rows] == ["ipex", "ipex"]
    assert float(rows[-1]["median"]) == 0.0125


def test_merge_takes_each_file_once(capsys, path):
    """It counts what is new. The second time nothing is."""
    shutil.copy(path, "other.db")
    main(["db", "prune", "--before", "2026-05-05", "--yes"])
    capsys.readouterr()
    counts = "4 runs, 0 cases, 8 measurements, 8 launches new in ipexperf.db"
    assert run(capsys, "db", "merge", "other.db") == f"other.db: {counts}\n"
    assert run(capsys, "db", "merge", "other.db") == "other.db: nothing that ipexperf.db does not have already\n"
    assert "is the history itself" in refused(capsys, "db", "merge", "ipexperf.db")


def test_prune_deletes_only_with_yes_and_never_the_run_of_a_baseline(capsys, path, tmp_path, monkeypatch):
    """Without `--yes` it prints what it would delete. A run stays if a file of baselines names it.

    The folder in IPEXPERF_BASELINES must exist, like one that `--baselines` names.
    """
    with History.open(path) as history:
        first_run = history.find_run("first").uid
    session = Session(first_run, "2026-05-01T02:00:00+00:00", "", (0.01,), {})
    accepted = CaseBaseline(
        CASE, (session,), {}, "first light", "ada", "2026-05-01T03:00:00+00:00", None, environment(0)
    )
    write(tmp_path / "baselines", Baselines(KEY, (accepted,)))
    before = dump(path)
    output = run(capsys, "db", "prune", "--before", "2026-05-03")
    assert "would delete 1 run before 2026-05-03T00:00:00" in output
    assert f"kept {first_run}: a baseline was accepted from it" in output
    assert "nothing was changed: --yes deletes" in output
    assert dump(path) == before
    assert "deleted 1 run before" in run(capsys, "db", "prune", "--before", "2026-05-03", "--yes")
    assert len(json.loads(run(capsys, "show", "--json", "--limit", "99"))) == RUNS - 1
    refusal = refused(capsys, "db", "prune", "--before", "2026-05-03", "--baselines", "elsewhere", "--yes")
    assert "there is no folder elsewhere of baselines" in refusal
    monkeypatch.setenv("IPEXPERF_BASELINES", "elsewhere")
    assert "there is no folder elsewhere of baselines" in refused(capsys, "db", "prune", "--before", "2026-05-03")


def test_db_checks_and_upgrades(capsys):
    """Each prints what it found or did."""
    output = run(capsys, "db", "check")
    assert "ipexperf.db: no fault found, schema 0006" in output
    assert f"{RUNS} run, " in output
    assert run(capsys, "db", "upgrade") == "ipexperf.db: schema 0006 is the newest, nothing was done\n"


def no_database(path):
    path.write_text("model,time\nresnet50,0.01\n" * 100)
    return "file is not a database"


def empty(path):
    path.write_bytes(b"")
    return "is empty: it has no tables"


def another_program(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    return "is a database of something else"


def damaged(path):
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x5a" * (len(data) - 4096))
    return "malformed"


def newer(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0042'")
        connection.commit()
    return "schema 0042"


def missing(path):
    path.unlink()
    return "there is no history"


@pytest.mark.parametrize(
    ("spoil", "command"),
    [
        *((no_database, command) for command in QUESTIONS),
        *((spoil, command) for spoil in (empty, another_program, damaged, newer, missing) for command in TYPICAL),
    ],
)
def test_a_file_that_is_no_history_is_one_sentence_for_every_command(capsys, path, spoil, command):
    """The exit status is 2, standard output is empty, the file does not change, and no page is there."""
    shutil.copy(path, "other.db")
    for leftover in ("ipexperf.db-wal", "ipexperf.db-shm"):
        Path(leftover).unlink(missing_ok=True)
    refusal = spoil(path)
    before = path.read_bytes() if path.exists() else None
    if (spoil, command) == (newer, ["db", "check"]):
        assert main(command) == 0  # a newer file may be checked as it is
        return
    assert refusal in refused(capsys, *command)
    assert (path.read_bytes() if path.exists() else None) == before
    assert not list(path.parent.glob("*site*"))


def test_an_empty_history_is_one_sentence(capsys, tmp_path):
    """In place of an empty table."""
    History.open("fresh.db").close()
    asking = [words for words in QUESTIONS if words[0] in ("trend", "changes", "report", "compare")]
    for command in [*asking, ["show", "last"]]:
        assert "this history is empty" in refused(capsys, *command, "--db", "fresh.db")
