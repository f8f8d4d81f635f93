"""Histories for others: which runs go along, and which names do not."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cli_answers
import pytest
from history_records import ENVIRONMENT, OK, four_runs, make_case, make_launch, make_measurement

from ipexperf.case import Case
from ipexperf.errors import HistoryError
from ipexperf.history import History, merging, sqlite_files
from ipexperf.history.records import Accepted
from ipexperf.history.rows import baseline_row
from ipexperf.history.sharing import Scrubber, share
from ipexperf.history.values import content_uid, series_uid

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-05-05T10:00:00Z"
SECRETS = ("basalt17", "mlovelace", "glacier-project")
"""The name of a host, of a user, and of a folder."""


def environment(folder: str = "/home/mlovelace/glacier-project", host: str = "basalt17.corp.example") -> dict[str, Any]:
    software = {**ENVIRONMENT["software"], "executable": f"{folder}/.venv/bin/python"}
    return {**ENVIRONMENT, "hardware": {"cpu": "Xeon 8480+", "host": host}, "software": software}


def record(folder: Path) -> Path:
    """A history of two runs, one of them with a failed launch whose log and reason have names."""
    path = folder / "h.db"
    with History.open(path) as history:
        four_runs(history)
        uid = history.start_run(environment(), {"suite": "main", "command": ["/home/mlovelace/glacier-project/s.py"]})
        words = "mlovelace@basalt17: /home/mlovelace/glacier-project/net.py:7 broke; write to m.lovelace@corp.example"
        launch = replace(make_launch(0, 0.01), log=words)
        case = make_case(model="/home/mlovelace/glacier-project/net.py:build")
        history.record(uid, make_measurement(case, launches=(launch,), environment=environment()), OK)
        broken = replace(launch, index=0, outcome="crashed", samples=(), reason=words, metrics={})
        history.record(uid, make_measurement(make_case(), launches=(broken,), environment=environment()), OK)
        history.finish_run(uid, "finished")
    return path


def test_no_name_is_left_in_the_bytes_of_the_copy(tmp_path: Path) -> None:
    source, copy = record(tmp_path), tmp_path / "shared.db"
    assert all(name.encode() in source.read_bytes() for name in SECRETS)
    shared = share(str(source), copy)
    content = copy.read_bytes()
    assert [name for name in (*SECRETS, "corp.example", str(tmp_path)) if name.encode() in content] == []
    assert (shared.runs, shared.logs) == (5, 2)
    assert shared.hosts >= 2  # with and without its domain
    assert shared.users >= 1
    assert shared.folders >= 2
    assert sqlite_files.check(copy).rows["run"] == 5
    assert sorted(x.name for x in tmp_path.iterdir() if x.name.startswith("shared")) == ["shared.db"]


def asked(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def dumped(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_the_source_stays_as_it_is(tmp_path: Path) -> None:
    source = record(tmp_path)
    before = dumped(source)
    share(str(source), tmp_path / "shared.db", ["last"])
    assert dumped(source) == before


def test_every_number_is_in_the_copy(tmp_path: Path) -> None:
    """Measurements and verdicts are the same in both. Only names differ."""
    source, copy = record(tmp_path), tmp_path / "shared.db"
    share(str(source), copy)
    for table, columns in (
        ("measurement", "n, median, mean, mad, lo, hi, outcome"),
        ("samples", "launch, data"),
        ("verdict", "outcome, ratio, p_value, mde"),
        ("paired", "log_ratio, turns"),
        ("run", "uid, started_at, commit_sha, status"),
    ):
        query = f"SELECT {columns} FROM {table} ORDER BY 1, 2"  # noqa: S608 - names of ours
        assert asked(copy, query) == asked(source, query)


def test_only_chosen_runs_are_copied(tmp_path: Path) -> None:
    source, copy = record(tmp_path), tmp_path / "shared.db"
    assert share(str(source), copy, ["last", "last~1"]).runs == 2
    rows = sqlite_files.check(copy).rows
    assert (rows["run"], rows["selftest"], rows["bisection"], rows["lock"]) == (2, 0, 0, 0)
    [(count,)] = asked(copy, "SELECT count(DISTINCT run_id) FROM measurement")
    assert count == 2


def test_scrubbed_rows_get_the_uid_of_their_new_content(tmp_path: Path) -> None:
    """The old uid is a digest of the names: a reader could check a guess with it."""
    source, copy = record(tmp_path), tmp_path / "shared.db"
    share(str(source), copy)
    for uid, text in asked(copy, "SELECT uid, doc FROM environment"):
        assert uid == content_uid(json.loads(text))
    axes = ("model", "device", "dtype", "mode", "stack", "batch", "version")
    for uid, params, *values in asked(copy, f'SELECT uid, params, {", ".join(axes)} FROM "case"'):  # noqa: S608 - names of ours
        assert uid == Case.from_json({**dict(zip(axes, values, strict=True)), **json.loads(params)}).uid
    query = 'SELECT s.uid, c.uid, s.machine_key, s.metric FROM series s JOIN "case" c ON c.id = s.case_id'
    for uid, *parts in asked(copy, query):
        assert uid == series_uid(*parts)
    before = {uid for (uid,) in asked(source, "SELECT uid FROM environment")}
    after = {uid for (uid,) in asked(copy, "SELECT uid FROM environment")}
    assert len(after) == len(before)
    assert len(after - before) == 1  # the one with names


def test_who_accepted_a_baseline_cannot_be_proven_by_its_uid(tmp_path: Path) -> None:
    """The uid of an acceptance is computed from the name too."""
    source, copy = record(tmp_path), tmp_path / "shared.db"
    with History.open(source) as history:
        [run, *_] = history.runs()
        one = Accepted(run.uid, make_case(), make_case(), "xeon-8480-2s", frozenset({run.uid}), AT, "mlovelace", "x")
        with history.accepting([one]):
            pass
    [(before,)] = asked(source, "SELECT uid FROM baseline")
    assert before == baseline_row(one)["uid"]
    share(str(source), copy)
    [(after, by)] = asked(copy, "SELECT uid, accepted_by FROM baseline")
    assert by.startswith("user-")
    assert after == baseline_row(replace(one, by=by))["uid"] != before


def test_two_hosts_and_two_folders_stay_different(tmp_path: Path) -> None:
    """Environments that differ only in a name still differ."""
    source, copy = record(tmp_path), tmp_path / "shared.db"
    with History.open(source) as history:
        for other in (environment(host="granite03"), environment(folder="/srv/elsewhere")):
            history.finish_run(history.start_run(other, {"suite": "main"}), "finished")
    share(str(source), copy)
    for path in (source, copy):
        [(count,)] = asked(path, "SELECT count(*) FROM environment")
        assert count == 5


def test_a_shared_history_can_be_merged_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, copy = record(tmp_path), tmp_path / "shared.db"
    share(str(source), copy)
    mine = tmp_path / "mine.db"
    with History.open(mine) as history:
        assert merging.merge(history, copy).runs == 5
    shown = cli_answers.run(capsys, "show", "last", "--db", str(mine))
    assert "net.py:build" in shown
    assert not any(name in shown for name in SECRETS)


def test_logs_are_copied_on_request_without_names(tmp_path: Path) -> None:
    copy = tmp_path / "shared.db"
    assert share(str(record(tmp_path)), copy, keep_logs=True).logs == 0
    logs = [log for (log,) in asked(copy, "SELECT log FROM launch WHERE log != ''")]
    assert len(logs) == 2
    assert all("net.py:7 broke" in log and "somebody@example.org" in log for log in logs)
    assert not any(name in log for log in logs for name in (*SECRETS, "corp.example"))


def test_other_words_can_be_hidden(tmp_path: Path) -> None:
    copy = tmp_path / "shared.db"
    share(str(record(tmp_path)), copy, words=["Xeon"])
    assert b"Xeon" not in copy.read_bytes()


def test_a_word_that_cannot_be_hidden_leaves_no_copy(tmp_path: Path) -> None:
    """`median` is the name of a column, so the file would still contain it."""
    copy = tmp_path / "shared.db"
    with pytest.raises(HistoryError, match="'median' is still in it"):
        share(str(record(tmp_path)), copy, words=["median"])
    assert [x.name for x in tmp_path.iterdir() if "shared" in x.name] == []


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    copy = tmp_path / "shared.db"
    copy.write_text("mine")
    with pytest.raises(HistoryError, match="exists already"):
        share(str(record(tmp_path)), copy)
    assert copy.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("/home/ada/x/bin/python", "folder-1/python"),
        ("--db=/data/runs/h.db", "--db=folder-1/h.db"),
        ("/home/ada", "folder-1"),
        ("~/x/h.db and ~/x/i.db", "folder-1/h.db and folder-1/i.db"),
        ("83 items/s, fp32/bf16, 3/4, and/or", "83 items/s, fp32/bf16, 3/4, and/or"),
        ("baselines/locks/a.lock", "baselines/locks/a.lock"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("/scratch", "/scratch"),
        ("on basalt17, by ada", "on host-1, by user-1"),
        ("adamw is no ada", "adamw is no user-1"),
    ],
)
def test_what_is_hidden_and_what_is_not(text: str, hidden: str) -> None:
    assert Scrubber(["basalt17"], ["ada"]).text(text) == hidden


def test_the_command_reports_what_it_hid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, copy = record(tmp_path), tmp_path / "shared.db"
    out = cli_answers.run(capsys, "db", "share", str(copy), "last", "--db", str(source))
    assert out.startswith(f"{copy}: 1 run; hidden: ")
    assert "2 logs of workers left out (--logs keeps them)" in out
    assert "exists already" in cli_answers.refused(capsys, "db", "share", str(copy), "--db", str(source))
    other = tmp_path / "other.db"
    assert "9999-12-31" in cli_answers.refused(capsys, "db", "share", str(other), "9999-12-31", "--db", str(source))
    assert not other.exists()
