"""A run of `ipexperf ab`, or under variables that the series has not, on the pages: drawn, but never a case's state."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dashboard_records import FASTER, PAIRED, PLAIN, environment, fill, measured, read, step, take_turns

from ipexperf.case import NetworkCase
from ipexperf.dashboard import writing
from ipexperf.dashboard.story import slug
from ipexperf.history import History
from ipexperf.history.experiments import SUBCOMMAND
from ipexperf.judge.policy import Policy
from ipexperf.verdict import Verdict

NIGHTS = 5
SSE41 = {"ONEDNN_MAX_CPU_ISA": "SSE41"}


def try_out(path: Path, case: NetworkCase, number: int, times: float = 3.0, **meta: Any) -> None:
    """Record one more run of a case, so many times as slow; not of a subcommand: under another variable."""
    usual = environment(number)
    under = usual if meta else {**usual, "variables": {**usual["variables"], **SSE41}}
    one = measured(case, number)
    slow = [
        replace(launch, metrics={**launch.metrics, "step_time": launch.metrics["step_time"] * times,
                                 "throughput": launch.metrics["throughput"] / times})
        for launch in one.launches
    ]  # fmt: skip
    with History.open(path) as history:
        uid = history.start_run(under, {"started_at": f"2026-05-{number + 1:02d}T02:00:00Z", **meta})
        history.record(uid, replace(one, launches=tuple(slow), environment=under), Verdict("regressed", "slower"))
        history.settle(uid, {"line": "1 case is slower"}, {}, Policy())
        history.finish_run(uid, "finished")


def pages(path: Path) -> Path:
    with History.open(path, create=False) as history:
        writing.write(history, path.with_suffix(""))
    return path.with_suffix("")


def rows(report: Path, page: str, key: str = "rows") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(report / page)[key]
    return found


def badges(report: Path) -> list[str]:
    """The verdicts of each run, newest first, as the page of runs has them."""
    cells = re.findall(r'<td class="badges">(.*?)</td>', (report / "runs.html").read_text(), re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in cells]


@pytest.mark.parametrize("times", [1, 5])
def test_a_run_under_another_variable_is_not_the_state_of_a_case(tmp_path: Path, times: int) -> None:
    """Fp32 under SSE41 after the nights: the state, the speed-up and the changes are those of the nights."""
    path = fill(tmp_path / "nights.db", (PLAIN, FASTER), NIGHTS)
    take_turns(path, 2.5)
    for number in range(NIGHTS, NIGHTS + times):
        try_out(path, PLAIN, number)
    report = pages(path)
    (row,) = [row for row in rows(report, "index.html") if row["id"] == PLAIN.id]
    assert row["step"] == pytest.approx(step(PLAIN, NIGHTS - 1), rel=0.01)
    assert (row["outcome"], row["old"]) == ("no_baseline", times)
    assert row["tried"] == "ONEDNN_MAX_CPU_ISA: unset -> SSE41"
    assert rows(report, "index.html", "changes") == []
    assert "1 case is slower" not in (report / "index.html").read_text()
    (gain,) = rows(report, "speedups.html")
    assert (gain["speedup"], gain["note"]) == (pytest.approx(2.5, rel=1e-4), "3 rounds")
    assert badges(report)[:2] == ["1 as an experiment", "1 as an experiment" if times > 1 else "○ 2 no baseline"]


def test_an_experiment_is_drawn_and_named_on_the_page_of_its_case(tmp_path: Path) -> None:
    path = fill(tmp_path / "nights.db", (PLAIN,), NIGHTS)
    try_out(path, PLAIN, NIGHTS)
    page = f"cases/{slug(PLAIN, environment(0)['machine_key'])}.html"
    report = pages(path)
    assert rows(report, page, "trends")["step_time"]["run"] == list(range(NIGHTS + 1))  # type: ignore[call-overload]
    (mark,) = rows(report, page, "marks")
    assert (mark["run"], mark["lines"]) == (NIGHTS, ["ONEDNN_MAX_CPU_ISA: unset -> SSE41"])
    assert mark["text"].startswith("an experiment")


def test_a_run_of_ab_is_no_state_and_leads_to_the_page_of_its_case(tmp_path: Path) -> None:
    """It is no case of the overview and no regression of a run."""
    path = fill(tmp_path / "nights.db", (PLAIN, FASTER), 2)
    try_out(path, PAIRED, 2, **{SUBCOMMAND: "ab"})
    report = pages(path)
    assert {row["id"] for row in rows(report, "index.html")} == {PLAIN.id, FASTER.id}
    assert "1 case is slower" not in (report / "index.html").read_text()
    (run,) = [one for one in (report / "runs").glob("*.html") if rows(report, f"runs/{one.name}")[0]["id"] == PAIRED.id]
    (row,) = rows(report, f"runs/{run.name}")
    assert (run.parent / row["page"]).is_file()
    assert badges(report)[0] == "1 as an experiment"
