"""What a night asks of other commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ipexperf.tools.nightly import command

pytestmark = pytest.mark.process
SEARCH = """
import json, sys
from ipexperf import cli
told = cli._parser().parse_args(sys.argv[1:])
seen = told.commits, told.json, told.ipexperf_db, str(told.ipexperf_baselines), told.tests
print(json.dumps({"culprits": [], "reason": str(seen)}))
"""


@pytest.mark.parametrize(("behind", "tests"), [("-- bench/test_a.py::test_b", ["bench/test_a.py::test_b"]), ("", [])])
def test_a_search_has_the_places_of_the_night(
    behind: str, tests: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words behind `--` are a test: they once became options of pytest, and no function was ever searched."""
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, "-c", SEARCH))
    night = command.Processes(tmp_path, (), "mine.db", Path("accepted"))
    case = "" if tests else "--model resnet18 "
    told = night.search(f"ipexperf bisect --commits a..b {case}{behind}", 60.0)
    assert told == (str(("a..b", True, "mine.db", "accepted", tests)), True)


def test_a_search_that_fails_says_so_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, "-c", "raise SystemExit(2)"))
    told, is_last = command.Processes(tmp_path, (), "mine.db", Path("accepted")).search("ipexperf bisect", 60.0)
    assert told.startswith("`ipexperf bisect` failed")
    assert not is_last
