"""One command on several hosts, which are folders here: what they record comes together in one history."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import cli_answers
import folder_fleet
import pytest
from fleet_suite import FAKES, MEASURE, PYTEST, ROOT, SUITE

from ipexperf.cli import main
from ipexperf.tools.fleet import cluster
from ipexperf.tools.fleet.host_side import HostSide

pytestmark = pytest.mark.process

PATIENCE = 90


class Rack:
    """Folders that are hosts, and one from where commands are given."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir()

    def host(self, name: str) -> Path:
        """Make a host."""
        host = self.folder / name
        host.mkdir()
        (host / "test_suite.py").write_text(SUITE)
        (host / "pytest.ini").write_text("[pytest]\n")
        return host

    def address(self, *names: str) -> str:
        return f"{','.join(names)}:1"

    def start(self, names: str, *command: str) -> subprocess.Popen[str]:
        """Start `fleet run` on these hosts in a process of its own."""
        words = [sys.executable, folder_fleet.__file__, "fleet", "run", self.address(*names), "--", *command]
        return subprocess.Popen(words, cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.home / 'ipexperf.db'}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()

    def statuses(self) -> list[str]:
        return sorted(status for (status,) in self.query("SELECT status FROM run"))

    def launches(self) -> list[str]:
        """The models of the launches."""
        rows = self.query("SELECT c.model FROM launch l JOIN \"case\" c ON c.id = l.case_id WHERE l.outcome = 'ok'")
        return sorted(model for (model,) in rows)


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rack:
    for name in [name for name in os.environ if name.startswith("IPEXPERF_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", f"{FAKES / 'no_torch'}{os.pathsep}{ROOT}")
    monkeypatch.setenv("IPEXPERF_LEASES", str(tmp_path / "leases"))
    monkeypatch.setattr(cluster, "RayFleet", folder_fleet.FolderFleet)
    rack = Rack(tmp_path)
    monkeypatch.chdir(rack.home)
    return rack


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened() and time.monotonic() < until:
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.05)
    assert happened()


@pytest.fixture
def patient(rack: Rack) -> Iterator[Path]:
    """A host on which the model `patient` waits."""
    host = rack.host("b")
    (host / "wait").touch()
    yield host
    (host / "wait").unlink(missing_ok=True)


def test_each_host_runs_the_command_and_its_history_is_merged_here(
    rack: Rack, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        rack.host(name)
    out = cli_answers.run(capsys, "fleet", "run", rack.address("a", "b"), "--", *MEASURE, "--model=tiny")
    for name in "ab":
        assert re.search(rf"^{name} \| .*1 passed", out, re.MULTILINE)
        assert f"host {name}: well" in out
        assert f"--db {rack.folder / name}" not in out, "the file goes"
        assert list((rack.folder / name / ".ipexperf" / "fleet").iterdir()) == []
    assert out.count("tiny-fake-fp32-spin-plain") >= 2, "the cases of each host"
    assert rack.statuses() == ["finished", "finished"]
    assert rack.launches() == ["tiny", "tiny"]
    cli_answers.run(capsys, "fleet", "collect", rack.address("a", "b"))
    assert len(rack.statuses()) == 2, "nothing is brought twice"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("sh", "-c", "test ${PWD##*/} = a"), "the command ended with status 1"),
        (("not-there",), "not-there cannot be started"),
    ],
)
def test_a_command_that_does_not_end_well_is_named_with_its_host(
    rack: Rack, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], told: str
) -> None:
    for name in "ab":
        rack.host(name)
    assert main(["fleet", "run", rack.address("a", "b"), "--", *command]) == 1
    answer = capsys.readouterr()
    assert f"host b: {told}" in answer.out
    assert answer.err.strip().endswith("b: the reasons are above")
    assert list((rack.folder / "b" / ".ipexperf" / "fleet").iterdir()) == []


def test_where_chooses_the_hosts(rack: Rack, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        rack.host(name)
    out = cli_answers.run(capsys, "fleet", "run", "--where", "name!=a", rack.address("a", "b"), "--", "pwd")
    assert f"b | {rack.folder / 'b'}" in out
    assert "host a" not in out


def test_a_host_that_is_lost_keeps_what_it_recorded_until_it_is_back(
    rack: Rack, patient: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rack.host("a")
    process = rack.start("ab", *MEASURE, "--model=tiny,patient")
    wait_for((patient / "mark").exists, process)
    away = patient.rename(rack.folder / "away")
    os.kill(int((away / "mark").read_text()), signal.SIGKILL)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, output
    assert "host a: well" in output
    assert "host b: lost: " in output
    assert rack.launches() == ["patient", "tiny"], "those of the other host"
    away.rename(patient)
    for _ in range(2):  # the second time there is nothing to bring
        cli_answers.run(capsys, "fleet", "collect", rack.address("a", "b"))
        assert rack.launches() == ["patient", "tiny", "tiny"]
        assert rack.statuses() == ["finished", "interrupted"], "the second was killed"


def test_a_host_goes_on_without_its_caller(rack: Rack, patient: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = rack.start("b", *MEASURE, "--model=patient")
    wait_for((patient / "mark").exists, process)
    process.kill()
    process.communicate()
    assert cli_answers.run(capsys, "fleet", "hosts", rack.address("b")) == "b  busy  device=cpu\n"
    assert "still runs" in cli_answers.run(capsys, "fleet", "collect", rack.address("b"))
    (patient / "wait").unlink()
    until = time.monotonic() + PATIENCE
    while "b  busy" in cli_answers.run(capsys, "fleet", "hosts", rack.address("b")) and time.monotonic() < until:
        time.sleep(0.1)
    cli_answers.run(capsys, "fleet", "collect", rack.address("b"))
    assert rack.statuses() == ["finished"]
    assert rack.launches() == ["patient"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_commands_and_brings_what_they_recorded(
    rack: Rack, patient: Path, gone: Callable[[int], bool], number: signal.Signals
) -> None:
    process = rack.start("b", *MEASURE, "--model=tiny,patient")
    wait_for((patient / "mark").exists, process)
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert gone(int((patient / "mark").read_text()))
    assert rack.statuses() == ["interrupted"]
    assert rack.launches() == ["tiny"]
    assert "Traceback" not in output


def test_what_cannot_be_read_stays_on_its_host(rack: Rack, capsys: pytest.CaptureFixture[str]) -> None:
    kept = rack.host("a") / ".ipexperf" / "fleet" / "run"
    kept.mkdir(parents=True)
    (kept / "lock").touch()
    (kept / "history.db").write_text("no history")
    assert main(["fleet", "collect", rack.address("a")]) == 1
    assert "host a: not brought: " in capsys.readouterr().out
    assert (kept / "history.db").exists()


def shares(out: str) -> dict[str, set[str]]:
    """The cases that each host collected."""
    found: dict[str, set[str]] = {}
    for host, case in re.findall(r"^(\w+) \| \S+\[(\S+)\]$", out, re.MULTILINE):
        found.setdefault(host, set()).add(case)
    return found


def test_equal_hosts_share_the_cases(rack: Rack, capsys: pytest.CaptureFixture[str]) -> None:
    """Each case is on one host, cases that are compared on the same one, and so it stays from run to run."""
    for name in "abc":
        rack.host(name)
    words = [*PYTEST, "--dtype=fp32,bf16", "--model=tiny,other,patient", "--collect-only", "-q"]
    dealt = [
        shares(cli_answers.run(capsys, "fleet", "run", "--share", rack.address(*names), "--", *words))
        for names in ("abc", "cba")
    ]
    assert dealt[0] == dealt[1]
    cases = [case for share in dealt[0].values() for case in share]
    models = [model for share in dealt[0].values() for model in {case.split("-")[0] for case in share}]
    assert len(cases) == len(set(cases)) == 6
    assert sorted(models) == ["other", "patient", "tiny"]


def test_hosts_that_differ_share_nothing(
    rack: Rack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        rack.host(name)
    monkeypatch.setattr(HostSide, "software", lambda side: {"torch": side._name, "numpy": "2.1"})
    refusal = cli_answers.refused(capsys, "fleet", "run", "--share", rack.address("a", "b"), "--", "touch", "ran")
    assert "--share: b is not equal to a in torch" in refusal
    assert not (rack.folder / "a" / "ran").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("home:1",), "say behind -- what each host is to run"),
        (("home:1", "--", "pytest", "--perf-db=mine.db"), "each host records into a file of its own"),
        (("--where=devise=cpu", "home:1", "--", "true"), "did you mean device?"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    rack: Rack, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    assert told in cli_answers.refused(capsys, "fleet", "run", *words)
