"""The benchmarks of fleets in small: a simulated rack."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
FLEET = ROOT / "benchmarks" / "fleet"


def run(script: str, *words: str) -> list[dict[str, Any]]:
    """The answers of a benchmark, a line of JSON each."""
    command = [sys.executable, str(FLEET / script), *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.process
@pytest.mark.parametrize(("spread", "groups", "cases"), [("share", 4, 8), ("each", 12, 24)])
def test_a_simulated_rack_measures_every_group_once(spread: str, groups: int, cases: int) -> None:
    _, answer = run("rack.py", "--part", "dispatch", "--size", f"3,4,2,0.01,{spread},file,judged")
    assert (answer["hosts"], answer["groups"], answer["cases"]) == (3, groups, cases)
    assert answer["recorded"] == cases


@pytest.mark.process
def test_a_simulated_night_has_its_rows() -> None:
    _, first, second = run("rack.py", "--part", "database", "--size", "2,2,file")
    assert (first["cases"], second["cases"]) == (20, 20)
    assert second["rows"] > first["rows"]
    assert second["bytes"] > first["bytes"]


def test_the_check_of_a_trial_finds_each_kind_of_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost case, one that was measured again although it was complete, and a round that is there twice."""
    monkeypatch.syspath_prepend(str(FLEET))
    specification = importlib.util.spec_from_file_location("faults", FLEET / "faults.py")
    assert specification is not None
    assert specification.loader is not None
    faults = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "faults", faults)
    specification.loader.exec_module(faults)

    def run(status: str, **cases: list[float] | None) -> dict[str, Any]:
        recorded = [{"case": name, "values": values} for name, values in cases.items()]
        return {"host": "n1", "status": status, "cases": recorded}

    killed = run("running", again=[1.0, 2.0], kept=[1.0, 2.0], half=None, gone=[1.0, 2.0])
    resumed = run("finished", again=[1.5, 2.0], kept=[1.0, 2.0], half=[3.0, 4.0])
    document = {"runs": [killed, resumed], "rounds": 9, "rounds_twice": ["round 1 of g"]}
    one = faults.Trial(0, "pytest", "each", resumed=True)
    faults.judge(one, document, {"again@n1", "kept@n1", "half@n1", "gone@n1", "half@n2"})
    assert one.lost == ["gone@n1", "half@n2"]
    assert one.twice == ["again@n1", "round 1 of g"]
    assert not one.well
    assert one.rounds == 9
    alone = faults.Trial(0, "worker", "each")
    faults.judge(alone, document, {"kept@n1"})
    assert alone.wrong == "1 runs are still running"
