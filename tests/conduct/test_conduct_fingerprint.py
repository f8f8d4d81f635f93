"""The controller asks a worker for the fingerprint after all samples, and stores it with the launch."""

from __future__ import annotations

import json
from pathlib import Path

import conduct_play
import pytest

from ipexperf.bench.api import Settings
from ipexperf.case import Case
from ipexperf.conduct.conditions import Conditions
from ipexperf.result import Launch

pytestmark = pytest.mark.process

LOOKED_AT = str(Path(__file__).parents[1] / "fakes" / "looked_at.py")


def launched(fake: str, ran: Path, mode: str = "looked_at", **found: int) -> Launch:
    ran.write_text(json.dumps(found))
    settings = Settings(load=(fake, LOOKED_AT))
    conditions = Conditions(settings, variables={"FAKE_RAN": str(ran)}, timeout=30, samples=5, seconds=0.05)
    case = Case("tiny", "fake", "fp32", mode, "plain", 1, 1, data="none")
    return conduct_play.launch(case, 0, conditions, accuracy=True)[0]


def test_a_fingerprint_is_captured_between_samples_and_accuracy(fake: str, asked: list[str], tmp_path: Path) -> None:
    """So it changes no sample, no memory and no metric."""
    done = launched(fake, tmp_path / "ran.json", relu=3)
    assert done.outcome == "ok"
    assert asked[-5:] == ["proof", "metrics", "fingerprint", "accuracy", "close"]
    assert asked.count("fingerprint") == 1
    assert done.fingerprint is not None
    assert done.fingerprint["structure"] == {"graph": [{"node": "relu", "calls": 3}]}


def test_a_section_that_differs_between_two_steps_is_marked_unstable(fake: str, tmp_path: Path) -> None:
    done = launched(fake, tmp_path / "ran.json", random=1)
    assert done.fingerprint is not None
    assert (done.fingerprint["unstable"], done.fingerprint["digest"]) == (["graph"], None)


def test_a_failed_capture_costs_no_measurement(fake: str, tmp_path: Path) -> None:
    """The launch has its numbers, and the reason is stored."""
    ran = tmp_path / "ran.json"
    conditions = Conditions(
        Settings(load=(fake, LOOKED_AT)), variables={"FAKE_RAN": str(ran)}, timeout=30, samples=5, seconds=0.05
    )
    case = Case("tiny", "fake", "fp32", "looked_at", "plain", 1, 1, data="none")
    done, _ = conduct_play.launch(case, 0, conditions, accuracy=True)
    assert done.outcome == "ok"
    assert done.fingerprint is not None
    assert "FileNotFoundError" in done.fingerprint["missing"]["graph"]
