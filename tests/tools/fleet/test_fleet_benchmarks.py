"""The benchmarks of fleets in small: writers at once, a simulated rack, and machines whose cables are pulled."""

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
MACHINES = """
import os, socket, sys
from pathlib import Path
sys.path.insert(0, {fleet!r})
import machines

if reason := machines.missing():
    sys.exit(reason)
SERVE = "import socket; socket.create_server(('{{}}', 5000)).accept()[0].sendall(b'here')"
ASK = "import socket; print(socket.create_connection(('{{}}', 5000), 2).recv(9))"
with machines.Network(Path({folder!r}), ("one", "two"), dict(os.environ)) as network:
    one, two = network.machines.values()
    serving = two.popen([sys.executable, "-c", SERVE.format(two.address)], two.folder)
    ask = [sys.executable, "-c", ASK.format(two.address)]
    two.cut()
    cut = one.run(ask, 20)
    two.mend()
    answers = [one.run(ask, 20).stdout for _ in range(20) if serving.poll() is None]
    name = two.run(["hostname"], 20).stdout
    two.close()
    dead = one.run(ask, 20)
print([cut.returncode, "refused" in cut.stderr, [answer for answer in answers if answer], name, dead.returncode])
"""


def run(script: str, *words: str) -> list[dict[str, Any]]:
    """The answers of a benchmark, a line of JSON each."""
    command = [sys.executable, str(FLEET / script), *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.server
@pytest.mark.parametrize("tls", [False, True])
def test_concurrent_writers_lose_nothing_and_double_nothing(*, tls: bool) -> None:
    pytest.importorskip("psycopg")
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip("no PostgreSQL server is installed here")
    words = ["--writers", "6", "--cases", "5", "--nights", "2", *(["--tls"] if tls else [])]
    _, first, second, size = run("writers.py", *words)
    for night in (first, second):
        assert (night["lost"], night["twice"], night["failed"]) == (0, 0, 0)
        assert night["writers"] * night["cases"] == 30
    assert size["verdict"] == 60


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


@pytest.mark.process
def test_a_cable_can_be_pulled_and_power_cut(tmp_path: Path) -> None:
    script = MACHINES.format(fleet=str(FLEET), folder=str(tmp_path / "rack"))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    if ended.returncode:
        pytest.skip(f"no machines can be made here: {ended.stderr.strip().splitlines()[-1]}")
    assert ended.stdout == "[1, False, [\"b'here'\\n\"], 'two\\n', 1]\n"


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
