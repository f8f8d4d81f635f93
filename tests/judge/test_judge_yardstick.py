"""A case in units of a yardstick: judged by that, accepted with its name, and never compared across yardsticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judge_records import ENVIRONMENT, baseline, candidate, measurement

from ipexperf.errors import BaselineError
from ipexperf.judge import accept, screen, yardstick
from ipexperf.judge import baseline as files
from ipexperf.judge.baseline import Baselines, CaseBaseline
from ipexperf.judge.policy import Policy
from ipexperf.result import PRIMARY, RELATIVE

POLICY = Policy()
HERE: dict[str, Any] = {**ENVIRONMENT, "yardstick": {"content": "aaaa", "packages": ["torch 2.8"], "work": "product"}}
OTHER = {**HERE, "yardstick": {"content": "bbbb"}}
UNITS = ((0.50, 0.501, 0.499), (0.502, 0.50, 0.501), (0.499, 0.50, 0.501))


def accepted(sessions: Sequence[Sequence[float]] = UNITS) -> CaseBaseline:
    """An accepted case in units of a yardstick, with the seconds that every session has beside them."""
    found = baseline(sessions, where=HERE)
    return replace(found, sessions=tuple(replace(one, metrics={"step_time": 0.01}) for one in found.sessions))


def verdict_on(relative: float, seconds: float, where: Any = HERE) -> screen.Verdict:
    """The verdict on three launches with these times. The baseline has a relative time of 0.5."""
    found = measurement([seconds] * 3, where=where, relative_time=relative)
    return screen.judge(found, accepted(), POLICY)


def test_the_environment_decides_which_metric_is_judged() -> None:
    assert yardstick.metric(ENVIRONMENT) == PRIMARY
    assert yardstick.metric({**ENVIRONMENT, "yardstick": None}) == PRIMARY
    assert yardstick.metric(HERE) == RELATIVE


def test_a_slow_machine_is_no_regression_and_a_slow_case_is_one() -> None:
    """Twice the seconds in the same units: the machine is slow. Twice the units in the same seconds: the case is."""
    assert verdict_on(0.5, 0.02).outcome == "ok"
    slower = verdict_on(1.0, 0.01)
    assert (slower.outcome, slower.ratio) == ("regressed", pytest.approx(2, rel=0.01))
    assert slower.reason.endswith("in units of the yardstick aaaa")
    assert slower.evidence is not None
    assert slower.evidence.yardstick == "aaaa"


@pytest.mark.parametrize(
    ("where", "named"), [(OTHER, "yardstick: aaaa -> bbbb"), (ENVIRONMENT, "yardstick: aaaa -> unset")]
)
def test_another_yardstick_is_not_comparable(where: Any, named: str) -> None:
    """Neither is a measurement without a yardstick."""
    found = verdict_on(0.5, 0.01, where)
    assert (found.outcome, found.ratio) == ("not_comparable", None)
    assert named in found.reason


def test_a_baseline_has_the_relative_time_and_the_seconds(tmp_path: Path) -> None:
    """Runs are judged by the first, and people read the second. The file names the yardstick."""
    metrics = {"step_time": (0.01, 0.01), "relative_time": (0.5, 0.5)}
    found = accept.accept(
        Baselines("xeon-2c"), [candidate((), environment=HERE, metrics=metrics)], reason="r", by="ada", now="2026-01-01"
    )
    files.write(tmp_path, found.baselines)
    (one,) = files.read(tmp_path, "xeon-2c").cases
    assert one.sessions[0].launches == (0.5, 0.5)
    assert (one.level, one.step_time) == (pytest.approx(0.5), pytest.approx(0.01))
    assert yardstick.content(one.environment) == "aaaa"


def test_a_session_with_another_yardstick_does_not_join() -> None:
    """One list would have two units. It may replace the baseline, and the diff then compares seconds."""
    stored = Baselines("xeon-2c", (accepted(((0.5, 0.5),)),))
    metrics = {"step_time": (0.01, 0.01), "relative_time": (0.9, 0.9)}
    offered = candidate((), 9, environment=OTHER, metrics=metrics)
    refused = accept.accept(stored, [offered], reason="r", by="ada", now="2026-01-01").refused
    assert "yardstick: aaaa -> bbbb" in refused[0][1]
    taken = accept.accept(stored, [offered], reason="r", by="ada", now="2026-01-01", replace=True)
    assert taken.baselines.cases[0].level == pytest.approx(0.9)


def test_launches_without_a_relative_time_are_not_accepted_under_a_yardstick() -> None:
    """The environment names a yardstick, and the launches took no turns with it."""
    offered = candidate((), environment=HERE, metrics={"step_time": (0.01, 0.01)})
    refused = accept.accept(Baselines("xeon-2c"), [offered], reason="r", by="ada", now="2026-01-01").refused
    assert refused[0][1] == "it has 0 launches with a relative_time, 2 are needed"
    assert screen.judge(measurement([0.01] * 3, where=HERE), accepted(), POLICY).outcome == "failed"


def test_a_file_that_has_units_without_seconds_is_damaged(tmp_path: Path) -> None:
    """One sentence, not an error in the middle of a run."""
    files.write(tmp_path, Baselines("xeon-2c", (baseline(UNITS, where=HERE),)))
    with pytest.raises(BaselineError, match="is damaged"):
        files.read(tmp_path, "xeon-2c")
