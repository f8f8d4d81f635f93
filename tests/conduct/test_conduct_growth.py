"""The record of a case says that its steps become slower and slower, but not of requests, which may wait longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ipexperf.bench import loading, registry
from ipexperf.case import Case
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Sample

CASE = Case("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")


@pytest.mark.process
@pytest.mark.parametrize("waiting", [False, True])
def test_only_steps_that_follow_one_another_become_slower(
    *, waiting: bool, fake: str, registries: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading.load([fake])
    monkeypatch.setattr(type(registry.modes.get(CASE.mode)), "requests", waiting)
    slower = tuple(Sample(0.01 * 1.05**number, 0.01, 0.0) for number in range(20))
    launches = [replace(Launch(0, "ok", samples=slower), index=index) for index in range(3)]
    found = Conductor(Options(load=(fake,)), tmp_path, lambda _: None).measurement(CASE, launches, {}, "now")
    assert [bool(launch.notes) for launch in found.launches] == [not waiting] * 3
