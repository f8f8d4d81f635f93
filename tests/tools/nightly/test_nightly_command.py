"""What a night asks of other commands."""

import json
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from history_records import ENVIRONMENT, make_measurement

from ipexperf import cli
from ipexperf.case import FunctionCase, NetworkCase
from ipexperf.history import History
from ipexperf.judge.policy import PairPolicy
from ipexperf.report.rerun import Search
from ipexperf.tools.nightly import command
from ipexperf.tools.nightly import ledger as ledgers
from ipexperf.tools.nightly.ledger import Finding, Ledger, Night
from ipexperf.verdict import Verdict

pytestmark = pytest.mark.process
SEARCH = """
import json, sys
from ipexperf.commands import command_line
told = command_line.make_parser().parse_args(sys.argv[1:])
seen = told.commits, told.json, told.ipexperf_db, str(told.ipexperf_baselines), told.tests
print(json.dumps({"culprits": [], "reason": str(seen)}))
"""


NET = NetworkCase("resnet18", "cpu", "bf16", "infer", "stock", 32, 32)
TEST = FunctionCase("bench/test_a.py::test_b", "cpu")


def night(folder: Path, *tests: str) -> command.Processes:
    return command.Processes(folder, tests, str(folder / "mine.db"), Path("accepted"))


def failed(folder: Path, case: NetworkCase) -> Finding:
    """A case that failed in a run of the history."""
    with History.open(folder / "mine.db") as history:
        run = history.start_run(ENVIRONMENT, {"suite": "night"})
        history.record(run, make_measurement(case), Verdict("regressed", "slower"), PairPolicy())
    return Finding(case.id, "slower", run=run)


@pytest.mark.parametrize(("case", "tests"), [(TEST, ["bench/test_a.py::test_b"]), (NET, [])])
def test_a_search_has_the_places_of_the_night(
    case: NetworkCase, tests: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words behind `--` are a test: they once became options of pytest, and no function was ever searched."""
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, "-c", SEARCH))
    told = night(tmp_path, "suites/").search(failed(tmp_path, case), Search("commit", first="a", last="b"), 60.0)
    assert told == (str(("a..b", True, str(tmp_path / "mine.db"), "accepted", tests)), True)


def test_a_search_that_fails_says_so_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, "-c", "raise SystemExit(2)"))
    search = Search("package or variable", "baseline:abc")
    told, is_last = night(tmp_path).search(failed(tmp_path, TEST), search, 60.0)
    assert told.startswith("`ipexperf bisect --good baseline:abc --bad '' -- bench/test_a.py::test_b` failed")
    assert not is_last


@pytest.mark.parametrize("planted", ["case", "arm"])
def test_a_search_runs_nothing_that_only_the_file_of_nights_names(
    planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a test or a network that no run measured, nor an interpreter. One of the night's own arguments is its."""
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, "-c", SEARCH))
    finding, arm = failed(tmp_path, TEST), "python=planted/bin/python"
    if planted == "case":
        finding, arm = replace(finding, case="planted.py::test"), "baseline:abc"
    told, _ = night(tmp_path).search(finding, Search("package or variable", arm), 60.0)
    assert told.startswith(f"not searched: nights.json has {finding.case} beside '{arm}'")
    if planted == "arm":
        assert night(tmp_path, "--perf-against=python=planted/bin/python").search(
            finding, Search("package or variable", arm), 60.0
        )[1]


PLANTED = {
    "a command": {"searches": ["ipexperf bisect --commits a..b --build 'touch planted'"]},
    "an option": {"searches": [{"kind": "commit", "first": "--build=x", "last": "b"}]},
    "an arm that is an option": {"searches": [{"kind": "package or variable", "arm": "--build=x"}]},
    "a line": {"searches": [{"kind": "package or variable", "arm": "a\nb"}]},
    "another kind": {"searches": [{"kind": "shell"}]},
    "another field": {"searches": [{"kind": "commit", "build": "touch planted"}]},
    "a dossier elsewhere": {"dossier": "../../../etc/passwd"},
    "a link": {"dossier": "https://planted.test/index.html"},
}


@pytest.mark.parametrize("what", [*PLANTED, "a night elsewhere", "a run that is an option", "no list", "deep"])
def test_what_is_planted_among_the_nights_is_refused_in_a_sentence(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is measured, run or written before."""
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, "-c", "open('planted', 'w')"))
    monkeypatch.chdir(tmp_path)
    today = date.today().isoformat()  # noqa: DTZ011 - as the command takes it
    night = {
        "date": f"{today}/../../planted" if what == "a night elsewhere" else today,
        "run": "--reason=x" if what == "a run that is an option" else "r",
        "done": ["measure", "accept"],
    }
    finding = {"case": "net", "reason": "slower", **PLANTED.get(what, {})}
    issue = {"number": 1, "since": today, "before": "", "findings": [finding]}
    nights = None if what == "no list" else [night]
    document = json.dumps({"version": ledgers.VERSION, "nights": nights, "issues": [issue]})
    path = tmp_path / "nights" / ledgers.NAME
    path.parent.mkdir()
    path.write_text("[" * 100_000 if what == "deep" else document)
    assert cli.main(["nightly", "--", "suites/"]) == cli.USAGE_ERROR
    told = capsys.readouterr().err
    assert told.startswith(f"ipexperf: nights/{ledgers.NAME} is damaged")
    assert told.count("\n") == 1
    assert [one.name for one in tmp_path.rglob("*")] == ["nights", ledgers.NAME]


def test_a_night_does_not_write_to_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is begun that would end with the same sentence of pytest."""
    words = ["nightly", "--folder", str(tmp_path / "nights"), "--db", "postgresql://me:secret@host/perf"]
    assert cli.main([*words, "--", "suites/"]) == cli.USAGE_ERROR
    assert "a run cannot write to the history postgresql://***@host/perf: write to a file" in capsys.readouterr().err
    assert not (tmp_path / "nights").exists()


def test_only_folders_of_nights_are_removed(tmp_path: Path) -> None:
    for name in ("2026-11-01", "2026-11-02", "mine"):
        (tmp_path / "dossiers" / name).mkdir(parents=True)
    night(tmp_path).keep(Ledger((Night("2026-11-02"),)))
    assert {one.name for one in (tmp_path / "dossiers").iterdir()} == {"2026-11-02", "mine"}
