"""What is on the pages: every case, the newest runs, the numbers of the history, and names that are no markup."""

import contextlib
import html
import math
import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dashboard_records import (
    CASES,
    EVIL,
    FAILED,
    FASTER,
    MACHINE,
    MOVED,
    PAIRED,
    PLAIN,
    RUNS,
    SLOWER,
    STEADY,
    fill,
    read,
    step,
    take_turns,
)

from ipexperf.dashboard import case_page, data, writing
from ipexperf.dashboard.folder import MANIFEST
from ipexperf.dashboard.story import slug
from ipexperf.errors import UsageError
from ipexperf.history import History
from ipexperf.judge.bisection import BisectionRecord, Change
from ipexperf.ratio import Ratio
from ipexperf.verdict import Level, PairsEvidence, SpeedVerdict, Verdict


def page(report: Path, case: Any) -> Path:
    return report / "cases" / f"{slug(case, 'xeon-8480-2s')}.html"


def test_every_page_is_there_and_every_link_leads_to_one(report: Path) -> None:
    """A page a case and a run, and no link of any page points at nothing."""
    assert len([*report.glob("cases/*.html")]) == len(CASES)
    assert len([*report.glob("runs/*.html")]) == RUNS
    for one in report.rglob("*.html"):
        told = one.read_text()
        links = [link for link in re.findall(r'(?:href|src)="([^"#]+)"', told) if link != "data:,"]
        links += [f"../{row['page']}".replace("../../", "../") if one.parent != report else row["page"]
                  for row in (read(one).get("rows", []) if 'id="data"' in told else [])]  # fmt: skip
        assert links
        assert [link for link in links if not (one.parent / link).is_file()] == []


def test_no_page_names_a_network_address(report: Path) -> None:
    """Nothing is loaded from anywhere: the only addresses are names of namespaces, licences and homes in comments."""
    for one in report.rglob("*.html"):
        assert re.findall(r"https?://", one.read_text()) == []
    for one in report.rglob("*.js"):
        assert re.findall(r"\b(?:fetch|XMLHttpRequest|WebSocket|sendBeacon)\b", one.read_text()) == []


def test_a_name_is_text_in_pages_and_in_their_data(report: Path) -> None:
    """A model called `</script><script>` adds no script, and is read back from the JSON letter by letter."""
    pages = [one.read_text() for one in report.glob("cases/*.html")]
    assert len({text.count("<script") for text in pages}) == 1
    assert [found for text in pages if (found := re.search(r"<[^>]*\son\w+=", text))] == []
    index = (report / "index.html").read_text()
    assert EVIL not in index
    assert EVIL in {row["model"] for row in read(report / "index.html")["rows"]}


def test_the_numbers_are_those_of_the_history(report: Path, history_path: Path) -> None:
    """Each point of a trend is the median that the history has, and each verdict its newest one."""
    with History.open(history_path, create=False) as history:
        points = [x for x in history.trend("step_time", dtype="bf16").itertuples() if not x.knobs]
    found = read(page(report, SLOWER))
    assert found["trends"]["step_time"]["run"] == list(range(RUNS))
    assert found["trends"]["step_time"]["median"] == [pytest.approx(x.median, rel=1e-4) for x in points]
    assert found["trends"]["step_time"]["lo"] == [pytest.approx(x.lo, rel=1e-4) for x in points]
    assert found["verdict"] == [x.verdict for x in points]
    assert (found["baseline"], found["trends"]["step_time"]["n"]) == (0.012, 3)  # the same for every run: told once
    assert list(found["trends"]) == ["step_time", "peak_memory", "accuracy"]


def test_the_roof_of_a_case_is_on_its_page(report: Path) -> None:
    """With the rate; without a roof the rate alone, without a rate no heading."""
    told = page(report, SLOWER).read_text()
    assert "410 GFLOP/s: 41 % of the roof of 1.00 TFLOP/s" in told
    assert "with no roof" in page(report, STEADY).read_text()
    assert "How near the roof" not in page(report, PLAIN).read_text()


def test_a_level_that_moved_is_marked_with_what_lies_there(report: Path) -> None:
    """The change stands at its run and names the other torch; a steady case has a mark for the environment alone."""
    moved = read(page(report, SLOWER))
    kinds = {mark["kind"]: mark for mark in moved["marks"]}
    assert {kind: mark["run"] for kind, mark in kinds.items()} == {"slower": MOVED}
    assert "torch: 2.8.0+cpu -> 2.9.0+cpu" in kinds["slower"]["lines"]
    assert [level[:2] for level in moved["levels"]] == [[0, MOVED - 1], [MOVED, RUNS - 1]]
    steady = read(page(report, PLAIN))
    assert [mark["kind"] for mark in steady["marks"]] == ["environment"]
    told = read(report / "index.html")
    first, *_ = told["changes"]
    assert told["rows"][first["row"]]["id"] == SLOWER.id
    assert (first["kind"], first["change"], first["run"]) == ("regressed", "+15.0 %", MOVED)
    assert "torch: 2.8.0+cpu -> 2.9.0+cpu" in first["why"]


def test_a_search_for_a_culprit_is_on_the_page_of_its_case_on_its_machine(tmp_path: Path) -> None:
    """The finding, both ends and what ran otherwise, all as text; other pages have no heading for it."""
    search = BisectionRecord(
        case=SLOWER,
        good="lock:good.txt",
        bad=EVIL,
        outcome="culprit",
        reason="torch is enough, and without it the bad end is not slower",
        culprits=(Change("package", "torch", "2.7.0", "2.8.0"),),
        culprit=Ratio(1.08, 1.05, 1.11),
        ran=("relu is no longer fused",),
        machine_key=MACHINE,
        started_at="2026-05-03T10:00:00Z",
        finished_at="2026-05-03T10:10:00Z",
    )
    elsewhere = replace(search, reason="elsewhere", machine_key="other", culprits=(), outcome="alike")
    path = fill(tmp_path / "nightly.db", (SLOWER, PLAIN), 2)
    with History.open(path) as history:
        for one in (search, elsewhere):
            history.record_bisection(one, "nightly")
        writing.write(history, tmp_path / "report")
    [section] = re.findall(
        r'<section id="bisections">.*?</section>', page(tmp_path / "report", SLOWER).read_text(), re.DOTALL
    )
    assert "2026-05-03 10:10" in section
    assert "CULPRIT: torch is enough" in section
    assert "torch: 2.7.0 -&gt; 2.8.0\ntime of the culprit alone: +8.0 % (+5.0 to +11.0)" in section
    assert "relu is no longer fused" in section
    assert EVIL not in section
    assert html.escape(EVIL) in section
    assert "elsewhere" not in section
    assert 'id="bisections"' not in page(tmp_path / "report", PLAIN).read_text()


def test_what_failed_has_no_number(report: Path) -> None:
    """A failure is a row with its verdict, and never a zero."""
    (row,) = [row for row in read(report / "index.html")["rows"] if row["model"] == FAILED.model]
    assert row["outcome"] == "failed"
    assert {"step", "lo", "hi", "factor", "ratio"} & set(row) == set()
    assert set(read(page(report, FAILED))["trends"]["step_time"]["median"]) == {None}


def test_a_comparison_of_two_arms_and_a_speedup_have_their_pages(report: Path) -> None:
    """What differs between the arms, how the case compares with the other one, and what a stack is worth."""
    compared = page(report, PAIRED).read_text()
    assert "<h2>What differs between the arms</h2>" in compared
    assert "stack: stock -&gt; ipex" in compared
    assert "38.5 % faster (-41.0 to -36.0 %; " in compared
    assert "otherwise than in the other arm" in compared
    assert "otherwise than in the baseline" in page(report, SLOWER).read_text()
    (gain,) = read(report / "speedups.html")["rows"]
    assert (gain["id"], gain["over"], gain["seen"]) == (FASTER.id, "ipex over stock", True)
    assert gain["speedup"] == pytest.approx(4 / 3, rel=0.02)


def test_a_run_of_another_history_writes_no_page_elsewhere(tmp_path: Path) -> None:
    path = fill(tmp_path / "theirs.db", (PLAIN,), runs=1)
    with contextlib.closing(sqlite3.connect(path)) as theirs, theirs:
        theirs.execute("UPDATE run SET uid = '../../../planted'")
    with History.open(path, create=False) as history, pytest.raises(UsageError, match="names no file inside a folder"):
        writing.write(history, tmp_path / "report")
    assert not (tmp_path / "report").exists()
    assert not list(tmp_path.rglob("planted*"))


def test_what_took_turns_is_told_by_its_rounds(tmp_path: Path) -> None:
    """The speed-up, the figure of the case and the twin: each with its own interval, and how it is known."""
    path = fill(tmp_path / "turns.db", (PLAIN, FASTER), runs=2)
    target = tmp_path / "report"
    take_turns(path, 2.5)
    with History.open(path, create=False) as history:
        writing.write(history, target)
    (gain,) = read(target / "speedups.html")["rows"]
    assert (gain["speedup"], gain["note"]) == (pytest.approx(2.5, rel=1e-4), "3 rounds")
    assert gain["lo"] < 2.5 < gain["hi"]
    text = (target / "speedups.html").read_text()
    assert "Intervals are over rounds, in which both cases took turns" in text
    assert "are over launches" not in text
    rows = {row["id"]: row for row in read(target / "index.html")["rows"]}
    assert rows[FASTER.id]["factor"] == pytest.approx(2.5, rel=1e-4)
    figures = page(target, FASTER).read_text()
    assert "2.50\N{MULTIPLICATION SIGN}" in figures
    assert "in turns, 3 rounds" in figures
    assert f"{PLAIN.id}, batch 16, the same again: 0.99" in text


def test_a_report_without_speedups_has_no_empty_page(tmp_path: Path) -> None:
    """A page that would show nothing is not there, and no link to it either."""
    with History.open(fill(tmp_path / "small.db", (PLAIN,), runs=1), create=False) as history:
        written = writing.write(history, tmp_path / "report")
    assert (written.cases, written.runs, written.older) == (1, 1, 0)
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {"index.html", "runs.html", "cases", "runs", "assets", MANIFEST}
    assert "speedups.html" not in (tmp_path / "report" / "index.html").read_text()


def test_only_the_newest_runs_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit keeps the newest, says how many it left, and only the newest of those have a page."""
    monkeypatch.setattr(writing, "RUN_PAGES", 2)
    with History.open(fill(tmp_path / "some.db", (PLAIN,), runs=5), create=False) as history:
        written = writing.write(history, tmp_path / "report", limit=4)
    assert (written.runs, written.older) == (4, 1)
    assert len([*(tmp_path / "report" / "runs").iterdir()]) == 2
    median = read(page(tmp_path / "report", PLAIN))["trends"]["step_time"]["median"]
    assert median == [pytest.approx(step(PLAIN, number) * 1.002, rel=1e-4) for number in range(1, 5)]


def test_what_is_no_number_is_not_told() -> None:
    """Infinity and NaN are no JSON, and 0.1 + 0.2 needs no seventeen digits."""
    assert [data.short(value) for value in (math.inf, math.nan, None, 0.1 + 0.2)] == [None, None, None, 0.3]
    assert data.formatted("accuracy", 0.945) == "94.5 %"
    assert data.formatted("peak_memory", 2**30) == "1.00 GiB"
    assert data.formatted("step_time", None) == "-"


def test_what_failed_in_place_of_the_time_is_told() -> None:
    more = Verdict("regressed", metric="held_memory", ratio=Ratio(10.0), level=Level(2**20, 10 * 2**20))
    red = Verdict("regressed", others=(more,), speed=SpeedVerdict("ok", ""))
    assert data.instead(red) == ("held memory 10.0 times", ["1.00 MiB", "10.0 MiB"])
    assert data.instead(replace(red, speed=None)) is None


def test_the_page_of_a_case_tells_what_else_measuring_it_again_takes(history_path: Path) -> None:
    """The shell's variables, the target of a network of one's own, and for `ab` the words of both its arms."""
    again = {"targets": {"mynets.small": "mynets:small"}, "load": ["leaf.py"], "variables": {"OMP_NUM_THREADS": "1"}}
    with History.open(history_path) as history:
        recorded = next(one for one in history.measurements("last") if one.case == PLAIN)
    own = replace(recorded, case=replace(PLAIN, model="mynets.small"))
    told = case_page._reproduce(own, {"again": again})
    assert told.startswith(
        "OMP_NUM_THREADS=1 pytest suites/ --perf-load leaf.py --perf-model mynets:small --perf-device"
    )
    second = replace(own, case=replace(PLAIN, model="mynets.small", device="xpu"))
    assert "--perf-device xpu:1 " in case_page._reproduce(second, {"again": {**again, "indices": {"xpu": 1}}})
    compared = replace(own, verdict=Verdict("ok", "", evidence=PairsEvidence("itself", own="level=O0")))
    meta = {"again": again, "command": ["ipexperf", "ab", "--b", "level=O0 stack=ipex"]}
    assert case_page._reproduce(compared, meta) == "OMP_NUM_THREADS=1 ipexperf ab --b 'level=O0 stack=ipex'"
    assert case_page._reproduce(own, {}).startswith("pytest suites/ --perf-model mynets.small ")
