"""Slow-downs on purpose: they do what their name says, in the worker, and only there."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from ipexperf.bench.api import Settings
from ipexperf.bench.process import injections
from ipexperf.bench.process.line import Line
from ipexperf.bench.process.worker import Worker
from ipexperf.case import Case

CASE = Case("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")


class Clock:
    """A clock that only work moves: each look at it takes a thousandth of a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.mark.parametrize("share", [0.03, 0.05, 0.1, 1.0])
def test_a_busy_step_takes_its_share_longer(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the precision of the clock, however long the step was this time."""
    clock, lengths = Clock(), iter((1.0, 2.0, 0.5))
    monkeypatch.setattr(injections, "perf_counter", clock)

    def step() -> None:
        clock.now += next(lengths)

    session: Any = SimpleNamespace(step=step)
    injections.slow(session, lambda: None, f"busy={share}")
    for seconds in (1.0, 2.0, 0.5):
        begin = clock.now
        session.step()
        assert clock.now - begin == pytest.approx(seconds * (1 + share), abs=0.005)


def test_a_worker_slows_the_case_that_it_is_told_to(fake: str) -> None:
    """The step of its session is another; without a word of it, it is the session's own."""

    def stepped(**more: Any) -> bool:
        worker = Worker(Line(io.StringIO(), io.StringIO()))
        request = {"case": CASE.to_json(), "settings": asdict(Settings(load=(fake,), **more))}
        worker.begin(json.loads(json.dumps(request)))
        worker.prepare({})
        return "step" in vars(worker._ready[0])

    assert not stepped()
    assert stepped(injected="busy=0.05")
