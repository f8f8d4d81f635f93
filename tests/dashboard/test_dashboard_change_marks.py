"""What the pages show of series that drift, have two modes, recovered, or are out of all bounds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import change_records as records
import pytest
from browser import MISSING
from dashboard_records import read

from ipexperf.dashboard import writing
from ipexperf.history import History

if TYPE_CHECKING:
    from browser import Browser

MODELS = ("slower", "drifts", "switches", "mended", "leaps")
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


def test_a_drift_is_one_sloping_line(pages: Path) -> None:
    """Its line goes from the first run of the board to the last. It began earlier, so that it has no mark here."""
    assert marks(pages, "drifts") == {}
    ((first, last, begins, ends),) = read(page(pages, "drifts"))["levels"]
    assert (first, last) == (0, BOARD - 1)
    assert begins == pytest.approx(records.level("drifts", records.NIGHTS - BOARD), rel=0.01)
    assert ends == pytest.approx(records.level("drifts", records.NIGHTS - 1), rel=0.01)
    assert read(pages / "index.html")["untold"] == 2  # the drift and the modes began before the board


def test_a_drift_and_two_modes_are_marked_where_they_began(pages: Path, tmp_path: Path) -> None:
    """On a board that reaches so far back. Neither names commits or differences."""
    with History.open(pages.parent / "ipexperf.db", create=False) as history:
        writing.write(history, tmp_path / "all")
    drift = marks(tmp_path / "all", "drifts")["drift"]
    assert (drift["run"], drift["lines"]) == (0, [])
    assert drift["text"] == f"drifts from here on: slower by 10.8% by {records.day(99)}, no run is to blame"
    modes = marks(tmp_path / "all", "switches")["bistable"]
    assert (modes["run"], modes["lines"]) == (0, [])
    switches = len(records.MODES)
    assert modes["text"] == f"two modes from here on, 9.99 ms and 10.8 ms: {switches} switches, no run is to blame"
    kinds = [change["kind"] for change in read(tmp_path / "all" / "index.html")["changes"]]
    assert kinds == ["slower", "slower", "drift", "bistable", "undone"]


def test_two_modes_are_two_lines_over_the_whole_board(pages: Path) -> None:
    levels = read(page(pages, "switches"))["levels"]
    assert [level[:2] for level in levels] == [[0, BOARD - 1]] * 2
    assert [level[2] for level in levels] == pytest.approx([0.01, 0.0108], rel=0.005)
    assert [level[2] for level in levels] == [level[3] for level in levels]


def test_a_regression_that_was_mended_is_marked_at_both_ends(pages: Path) -> None:
    """On its page; on the overview it is one row that says until when."""
    both = marks(pages, "mended")
    assert {kind: mark["run"] for kind, mark in both.items()} == {
        "slower": place(records.BEGAN),
        "recovered": place(records.ENDED),
    }
    assert both["slower"]["text"].endswith(f", until {records.day(records.ENDED)}")
    assert both["recovered"]["lines"] == [f"commits {records.ENDED - 1:08d}..{records.ENDED:08d}"]
    rows = {change["model"]: change["kind"] for change in read(pages / "index.html")["changes"]}
    assert rows == {"slower": "slower", "leaps": "slower", "mended": "undone"}


def test_numbers_at_the_ends_of_what_there_is_are_short_on_a_page(pages: Path) -> None:
    """A multiple with an exponent, and no run of more than twenty digits in all that a person reads."""
    (mark,) = marks(pages, "leaps").values()
    assert mark["run"] == place(records.LEAPT)
    assert re.fullmatch(r"slower, 4\.6e\+299 times as long, from here on", mark["text"])
    for path in (page(pages, "leaps"), pages / "index.html"):
        text = re.sub(r"<script.*?</script>|<[^>]*>", " ", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"\d[\d,]{20}", text)


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
