"""Metrics beside speed that moved are named with both levels in the table, the block, JUnit and markdown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_records import FAST, PLAIN, SLOW, measurement, summary, told

from ipexperf.judge.metrics import combined
from ipexperf.report import markdown
from ipexperf.report.block import failure_block
from ipexperf.report.junit import properties
from ipexperf.report.moved import changed
from ipexperf.result import Level, Verdict

MIB = 2.0**20
OK = Verdict("ok", "a slowdown above 5% is excluded", ratio=1.01, lo=0.99, hi=1.03)
MORE = Verdict(
    "regressed",
    "2.0% more than the baseline (90% interval +1.8% to +2.2%), surely beyond 0.5%",
    metric="peak_memory",
    ratio=1.02,
    lo=1.018,
    hi=1.022,
    level=Level(400 * MIB, 408 * MIB),
)
LESS = replace(MORE, outcome="improved", metric="held_memory", ratio=0.98, level=Level(400 * MIB, 392 * MIB))
SAME = replace(MORE, outcome="ok", metric="library_memory", ratio=1.0, level=Level(MIB, MIB))
LARGER = combined(OK, [MORE, LESS, SAME])
MADE = measurement(FAST, 0.02)


def test_a_change_has_both_levels() -> None:
    assert changed(MORE) == "+2.0 % (400 MiB -> 408 MiB)"
    slower = replace(MORE, metric="compile_time", ratio=1.1, level=Level(2.0, 2.2))
    assert changed(slower) == "+10.0 % (2.00 s -> 2.20 s)"


def test_the_summary_has_a_line_for_each_metric_that_moved() -> None:
    lines = told([MADE, measurement(PLAIN, 0.08)], {FAST.uid: LARGER, PLAIN.uid: OK})
    assert [line for line in lines if line.startswith(("WORSE", "better"))] == [
        f"WORSE peak_memory (1): {FAST.id} +2.0 % (400 MiB -> 408 MiB)",
        f"better held_memory (1): {FAST.id} -2.0 % (400 MiB -> 392 MiB)",
    ]


def test_the_change_in_the_table_is_that_of_the_time() -> None:
    """Not that of the metric that decided the outcome."""
    [row] = [line for line in told([MADE], {FAST.uid: LARGER}) if line.startswith(f"{FAST.id} ")]
    assert "+1.0 % [-1, +3] %" in row
    assert row.endswith("regressed")


def test_a_case_that_takes_more_memory_is_not_called_slower() -> None:
    """The sentence on time does not count verdicts on memory."""
    text = "\n".join(told([MADE], {FAST.uid: LARGER}))
    assert "slower than the baseline: none of those that could be judged (1 of 1 case)" in text
    assert f"REGRESSED (1): worse than the baseline or the other arm, beyond doubt: {FAST.id}" in text


def test_the_block_of_a_failed_test_names_every_metric_that_moved() -> None:
    text = failure_block(MADE, LARGER, [], "", "")
    assert text.splitlines()[0] == f"{FAST.id} (batch 8): REGRESSED"
    assert "  why         peak_memory: 2.0% more than the baseline" in text
    assert "  peak_memory +2.0 % (400 MiB -> 408 MiB): regressed" in text
    assert "  held_memory -2.0 % (400 MiB -> 392 MiB): improved" in text
    assert "library_memory" not in text


def test_junit_has_the_verdict_of_every_metric_that_was_judged() -> None:
    found = dict(properties(MADE, LARGER))
    assert (found["verdict"], found["ratio"]) == ("regressed", "1.01")
    assert {name: value for name, value in found.items() if name.startswith(("verdict_", "ratio_"))} == {
        "verdict_peak_memory": "regressed",
        "ratio_peak_memory": "1.02",
        "verdict_held_memory": "improved",
        "ratio_held_memory": "0.98",
        "verdict_library_memory": "ok",
        "ratio_library_memory": "1",
    }


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (LARGER, "- 🔴 `{}` (batch 8): **regressed**: peak\\_memory: 2.0% more than the baseline"),
        (combined(OK, [LESS]), "- 🔵 `{}` (batch 8): held\\_memory -2.0 % (400 MiB -&gt; 392 MiB)"),
    ],
)
def test_markdown_names_metrics_that_moved(verdict: Verdict, said: str) -> None:
    text, plain = (markdown.text(rows(one), "", None) for one in (verdict, SLOW))
    assert text.count(said.format(FAST.id)) == 1
    assert "held" not in plain


def rows(verdict: Verdict) -> list[markdown.CaseRow]:
    made = summary([MADE], {FAST.uid: verdict})
    return markdown.rows(made.networks.values(), made.speeds)
