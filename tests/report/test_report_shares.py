"""The lines of the summary on ablated knobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from report_records import FAST, crashed, measurement, together

from ipexperf.report import shares
from ipexperf.report.shares import HEADING
from ipexperf.report.speeds import Speeds
from ipexperf.report.table import summary_lines
from ipexperf.result import Launch, Measurement, RoundRecord, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipexperf.case import Case

PREPACK = replace(FAST, knobs=(("weights_prepack", "off"),))
LAYOUT = replace(FAST, knobs=(("channels_last", "off"),))
GRAPH = replace(FAST, knobs=(("graph_mode", "on"),))
STOCK = replace(FAST, stack="stock")
ABLATED = ("weights_prepack", "channels_last", "graph_mode")


def taken(case: Case, *steps: float) -> Measurement:
    """A measurement whose launches took these steps."""
    launches = tuple(
        Launch(index, "ok", metrics={"step_time": step, "throughput": case.batch / step})
        for index, step in enumerate(steps)
    )
    return replace(measurement(case, 1.0), launches=launches)


def ratio_lines(
    measurements: Sequence[Measurement],
    verdicts: Mapping[str, Verdict],
    ablated: Sequence[str],
    rounds: Sequence[RoundRecord] = (),
) -> list[str]:
    return shares.ratio_lines(Speeds.of(measurements, verdicts, rounds), ablated)


WHOLE = taken(FAST, 0.100, 0.101, 0.099)


def test_each_ablated_knob_has_its_share_and_noise_has_none() -> None:
    """A knob without which a case takes 31 % more has a share. One within the noise shows none."""
    slower, noise = taken(PREPACK, 0.131, 0.132, 0.130), taken(LAYOUT, 0.100, 0.107, 0.099)
    heading, line = ratio_lines([WHOLE, slower, noise], {}, ABLATED)
    assert heading == HEADING
    whole, told = line.split(": ", 1)
    assert whole.strip() == FAST.id
    prepack, layout = told.split("; ")
    assert prepack.startswith("without weights_prepack 1.31* times the step time (1.2")
    assert "no share" not in prepack
    assert layout.startswith("without channels_last 1.02* times the step time (0.9")
    assert layout.endswith(", no share seen")


def test_a_knob_that_is_off_by_default_is_called_switched_on() -> None:
    """Ablation turns graph_mode on, so `without` would be wrong."""
    (_, line) = ratio_lines([WHOLE, taken(GRAPH, 0.05, 0.0501, 0.0499)], {}, ABLATED)
    assert f"{FAST.id}: with graph_mode=on 0.500* times the step time (0.4" in line


def test_a_share_comes_from_the_rounds_that_both_were_in() -> None:
    """On a machine that drifts, launches differ by more than neighbouring turns."""
    whole, without = taken(FAST, 0.100, 0.140, 0.090), taken(PREPACK, 0.131, 0.181, 0.118)
    (_, line) = ratio_lines([whole, without], {}, ABLATED, together([whole, without]))
    assert "without weights_prepack 1.31 times the step time (1.2" in line
    (_, line) = ratio_lines([whole, without], {}, ABLATED)
    assert line.endswith("no share seen")


def test_a_single_launch_has_a_ratio_without_an_interval() -> None:
    """The line says so."""
    (_, line) = ratio_lines([WHOLE, taken(PREPACK, 0.3)], {}, ABLATED)
    assert line.endswith("without weights_prepack 3.00* times the step time (a single launch has no interval)")


@pytest.mark.parametrize("side", [0, 1])
def test_a_failed_or_invalid_case_has_no_share(side: int) -> None:
    """The line says so in place of a number."""
    pair = [WHOLE, taken(PREPACK, 0.131, 0.132)]
    (_, line) = ratio_lines(pair, {pair[side].case.uid: Verdict("invalid", "")}, ABLATED)
    assert line.endswith("without weights_prepack not told: one of the two has no numbers that count")
    failed = replace(crashed(), case=pair[side].case)
    assert "times" not in ratio_lines([pair[1 - side], failed], {}, ABLATED)[1]


def test_a_sweep_that_was_no_ablation_and_a_missing_side_have_no_line() -> None:
    """A knob that was only set asks for no share."""
    assert ratio_lines([WHOLE, taken(PREPACK, 0.2, 0.2)], {}, ()) == []
    assert ratio_lines([taken(PREPACK, 0.2, 0.2)], {}, ABLATED) == []


def test_the_lines_are_below_the_table_and_at_most_120_columns_wide() -> None:
    cases = [WHOLE, *(taken(case, 0.131, 0.132) for case in (PREPACK, LAYOUT, GRAPH, STOCK))]
    lines = summary_lines(cases, {}, {"no such device": 1}, [], ABLATED)
    assert lines.index(HEADING) < lines.index("left out: 1 cell of the matrix")
    assert sum("times" in line for line in lines) >= 2
    assert max(map(len, lines)) <= 120
