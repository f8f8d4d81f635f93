"""What the pages show of series that drift, go to and fro or recovered."""

from pathlib import Path
from typing import Any

import change_records as records
import pytest
from browser import MISSING, Browser
from dashboard_records import MACHINE, read
from history_records import HARDWARE, make_measurement

from ipexperf.case import FunctionCase
from ipexperf.dashboard import writing
from ipexperf.history import History
from ipexperf.history.records import Accepted
from ipexperf.judge.policy import PairPolicy
from ipexperf.ratio import Ratio
from ipexperf.verdict import PairsEvidence, Verdict

MODELS = ("slower", "drifts", "switches", "mended")
BOARD = 60
"""The newest runs that the pages show."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the newest runs; the history has more."""
    folder = tmp_path_factory.mktemp("changes")
    with History.open(records.fill(folder / "ipexperf.db", *MODELS), create=False) as history:
        writing.write(history, folder / "report", limit=BOARD)
    return folder / "report"


def page(pages: Path, model: str) -> Path:
    (path,) = pages.glob(f"cases/{model}-*.html")
    return path


def marks(pages: Path, model: str) -> dict[str, Any]:
    """The marks of a case by their kind, without those of its environment."""
    return {mark["kind"]: mark for mark in read(page(pages, model)).get("marks", []) if mark["kind"] != "environment"}


def place(night: int) -> int:
    """The place of a night on the board."""
    return night - (records.NIGHTS - BOARD)


@pytest.mark.parametrize("model", ["drifts", "switches"])
def test_an_unsteady_series_has_levels_and_no_mark(pages: Path, tmp_path: Path, model: str) -> None:
    """No run is to blame, on the newest runs and on all of them."""
    with History.open(pages.parent / "ipexperf.db", create=False) as history:
        writing.write(history, tmp_path / "all")
    for folder in (pages, tmp_path / "all"):
        assert marks(folder, model) == {}
        assert len(read(page(folder, model))["levels"]) > 1


def test_a_regression_that_was_mended_is_marked_at_both_ends(pages: Path) -> None:
    """On its page; on the overview it is one row that says until when."""
    both = marks(pages, "mended")
    assert {kind: mark["run"] for kind, mark in both.items()} == {
        "slower": place(records.BEGAN),
        "recovered": place(records.ENDED),
    }
    assert both["slower"]["text"].endswith(f", until {records.day(records.ENDED)}")
    assert both["recovered"]["lines"] == [f"commits {records.ENDED - 1:08d}..{records.ENDED:08d}"]
    told = read(pages / "index.html")
    over = {told["rows"][change["row"]]["model"]: change.get("over") for change in told["changes"]}
    assert over == {"slower": None, "mended": both["slower"]["text"]}


def test_a_red_verdict_is_an_event_with_its_own_cause_until_somebody_accepts_it(tmp_path: Path) -> None:
    """Of a function, beside a commit each time: each edit that was red is named, whatever a later run found."""
    case = FunctionCase("test_work.py::test_words", "cpu")
    edits = ("line 3: 'a' -> 'b'", "line 7: 'c' -> 'd'", "line 9: 'e' -> 'f'")
    times = (1.0, 2.0, 1.0)
    with History.open(tmp_path / "functions.db") as history:
        for number, (edit, ratio) in enumerate(zip(edits, times, strict=True)):
            uid = history.start_run(HARDWARE, {"started_at": f"2026-05-04T0{number}:00:00Z"})
            evidence = PairsEvidence(f"git:{number}", differences=(edit,), log_ratios=(0.0,) * 4)
            verdict = Verdict(
                "regressed" if ratio > 1 else "ok", "slower", ratio=Ratio(ratio, ratio, ratio), evidence=evidence
            )
            history.record(
                uid, make_measurement(case, (0.01 * ratio,) * 2, environment=HARDWARE), verdict, PairPolicy()
            )
            history.finish_run(uid, "finished")
        writing.write(history, tmp_path / "before")
        session = Accepted(uid, case, case, MACHINE, frozenset({uid}), "2026-05-04T04:00:00Z", "ada", "as it must be")
        with history.accepting([session]):
            pass
        writing.write(history, tmp_path / "after")
    [change] = read(tmp_path / "before" / "index.html")["changes"]
    assert (change["kind"], change["run"], change["why"]) == ("regressed", 1, edits[1])
    assert (change["change"], change["levels"]) == ("2.0 times", "10.0 ms \N{RIGHTWARDS ARROW} 20.0 ms")
    assert "accepted" not in change
    [change] = read(tmp_path / "after" / "index.html")["changes"]
    assert change["accepted"] == "accepted by ada, 2026-05-04: as it must be"
    assert "torch" not in (tmp_path / "after" / "index.html").read_text().partition("<script")[0].partition("<main")[2]


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("model", MODELS)
def test_a_chart_of_such_a_series_is_drawn_in_silence(pages: Path, window: Browser, model: str) -> None:
    """No error on the console of its page and of the overview, and a canvas."""
    window.logs()  # of earlier tests
    for path in (page(pages, model), pages / "index.html"):
        window.open(path)
        assert window.logs() == []
    window.open(page(pages, model))
    assert window.until("return document.querySelectorAll('#trend canvas').length") == 1
