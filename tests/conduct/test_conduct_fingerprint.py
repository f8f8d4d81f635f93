"""What ran is asked for in a pass of its own: after every sample, and it is the launch's."""

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


def test_it_is_asked_for_after_the_samples_and_before_the_accuracy(fake: str, asked: list[str], tmp_path: Path) -> None:
    """Nothing that is captured can lie in a sample, in the memory, or in a metric."""
    done = launched(fake, tmp_path / "ran.json", relu=3)
    assert done.outcome == "ok"
    assert asked[-5:] == ["proof", "metrics", "fingerprint", "accuracy", "close"]
    assert asked.count("fingerprint") == 1
    assert done.fingerprint is not None
    assert done.fingerprint["structure"] == {"graph": [{"node": "relu", "calls": 3}]}


def test_two_launches_of_the_same_have_one_digest(fake: str, tmp_path: Path) -> None:
    """In processes of their own; and another structure has another."""
    digests = [launched(fake, tmp_path / "ran.json", relu=count).fingerprint["digest"] for count in (3, 3, 4)]  # type: ignore[index]
    assert digests[0] == digests[1] != digests[2]


def test_what_is_random_is_marked(fake: str, tmp_path: Path) -> None:
    """The second look differed from the first."""
    done = launched(fake, tmp_path / "ran.json", random=1)
    assert done.fingerprint is not None
    assert (done.fingerprint["unstable"], done.fingerprint["digest"]) == (["graph"], None)


def test_a_look_that_fails_costs_no_measurement(fake: str, tmp_path: Path) -> None:
    """The numbers were taken, and the reason is kept."""
    ran = tmp_path / "ran.json"
    conditions = Conditions(
        Settings(load=(fake, LOOKED_AT)), variables={"FAKE_RAN": str(ran)}, timeout=30, samples=5, seconds=0.05
    )
    case = Case("tiny", "fake", "fp32", "looked_at", "plain", 1, 1, data="none")
    done, _ = conduct_play.launch(case, 0, conditions, accuracy=True)
    assert done.outcome == "ok"
    assert done.fingerprint is not None
    assert "FileNotFoundError" in done.fingerprint["missing"]["graph"]


def test_a_mode_without_looks_has_none(fake: str, tmp_path: Path) -> None:
    assert launched(fake, tmp_path / "ran.json", "spin").fingerprint is None
