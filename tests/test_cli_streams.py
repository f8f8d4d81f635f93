"""Commands whose answer cannot be written, or whose words make no sense: one sentence, and never a traceback."""

import csv
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cli_answers import refused, run
from history_records import HARDWARE, make_case, make_measurement

from ipexperf.cli import main
from ipexperf.history import History
from ipexperf.ratio import Ratio
from ipexperf.verdict import Verdict

FORMULA = '=HYPERLINK("http://example.org")'
COMMANDS = ("show last", "report --csv", "show last --json")


@pytest.fixture
def history(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = {**HARDWARE, "git": {**HARDWARE["git"], "branch": FORMULA}}
    with History.open("ipexperf.db") as history:
        uid = history.start_run(environment, {"started_at": "2026-05-04T10:00:00Z"})
        measurement = make_measurement(make_case("résnet"), (0.0125,), environment=environment)
        history.record(uid, measurement, Verdict("ok", "within the noise ✓", ratio=Ratio(1.02)))
        history.finish_run(uid, "finished")
    return tmp_path / "ipexperf.db"


@pytest.mark.process
@pytest.mark.parametrize("command", COMMANDS)
def test_an_answer_that_cannot_be_written_is_one_sentence(history, command):
    """Standard output is closed, or its disk is full. One command shows that standard error may be gone with it."""
    silent = (">/dev/full 2>/dev/full", ">&- 2>&-") if command == COMMANDS[0] else ()
    script = "; ".join(
        f"{sys.executable} -m ipexperf.cli {command} {redirection}; echo $? >> statuses"
        for redirection in (">&-", ">/dev/full", *silent)
    )
    process = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert Path("statuses").read_text().split() == ["2"] * (2 + len(silent))
    closed, full = process.stderr.splitlines()
    start = "ipexperf: the answer cannot be written to standard output: "
    assert closed == f"{start}it is closed; redirect to /dev/null instead"
    assert full == f"{start}No space left on device"


@pytest.mark.process
@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_that_knows_ascii_alone_gets_escapes(history, command, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    process = subprocess.run(
        [sys.executable, "-m", "ipexperf.cli", *command.split()], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.isascii()


def test_a_text_that_a_spreadsheet_would_run_is_no_formula(history, capsys):
    """As a branch has any name that its author wants. Numbers stay numbers."""
    for words in (("report", "--csv"), ("trend", "--csv"), ("show", "--csv")):
        rows = list(csv.DictReader(run(capsys, *words).splitlines()))
        assert rows
        assert {row["branch"] for row in rows} == {f"'{FORMULA}"}
    assert float(rows[0].get("median") or 0) >= 0


def test_a_failure_is_blamed_on_the_history_only_where_that_is_damaged(history, capsys, monkeypatch):
    """Else its traceback is what a report of a defect needs."""
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("UPDATE measurement SET median = 'fast'")
        connection.commit()
    assert "holds a row that cannot be read (ValueError" in refused(capsys, "trend")
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("UPDATE measurement SET median = 0.5")
        connection.commit()
    monkeypatch.setattr("ipexperf.history.tables.series_tables", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["trend"])


@pytest.mark.parametrize(
    "words",
    [("show", "\udcff\udcfe"), ("trend", "--model", "\udcff"), ("report", "--html", "x" * 300)],
    ids=lambda words: ascii(" ".join(words))[:40],
)
def test_words_that_make_no_sense_are_one_sentence(history, capsys, words):
    refused(capsys, *words)
