"""A fleet on a real Ray cluster: two nodes on this machine, made by the command, and what happens when they die."""

import contextlib
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fleet_suite import FAKES, MEASURE, ROOT, SUITE

from ipexperf.tools.fleet.membership import FOLDER

pytest.importorskip("ray", reason="needs Ray: pip install 'ipexperf[fleet]'")
pytestmark = [pytest.mark.long, pytest.mark.server]

PATIENCE = 150


def a_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Fleet:
    """Ray's head and a second node, each with a folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.address = f"127.0.0.1:{a_port()}"

    def host(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Start a node, with a suite in its folder."""
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "test_suite.py").write_text(SUITE)
        (self.folder / name / "pytest.ini").write_text("[pytest]\n")
        return self.call(self.host_command(name, *words))

    def host_command(self, name: str, *words: str) -> list[str]:
        place = ["--name", name, "--folder", str(self.folder / name)]
        return [sys.executable, "-m", "ipexperf.cli", "fleet", *words, *place]

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.call([sys.executable, "-m", "ipexperf.cli", "fleet", *words])

    def call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def words(self, folder: Path, models: str, *more: str) -> list[str]:
        """The command that has the hosts measure these models, into a history in this folder."""
        place = [*more, f"--db={folder}/db", self.address]
        return [sys.executable, "-m", "ipexperf.cli", "fleet", "run", *place, "--", *MEASURE, f"--model={models}"]

    def run(self, folder: Path, models: str, *more: str) -> subprocess.CompletedProcess[str]:
        return self.call(self.words(folder, models, *more))

    def start(self, folder: Path, models: str, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(folder, models, *more),
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def waits(self, name: str) -> Path:
        """Let `patient` wait on a host. Returns where it says that it began."""
        (self.folder / name / "wait").touch()
        mark = self.folder / name / "mark"
        mark.unlink(missing_ok=True)
        return mark

    def raylet(self, name: str) -> int:
        """The process that Ray has on a node."""
        (pid,) = (pid for pid, command in self.processes(name).items() if b"raylet/raylet" in command)
        return pid

    def processes(self, name: str) -> dict[int, bytes]:
        """All processes of a node, with their commands."""
        mark, processes = f"{FOLDER}={self.folder / name}\0".encode(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes():
                    processes[int(folder.name)] = (folder / "cmdline").read_bytes()
        return processes

    def leave(self, name: str) -> str:
        left = self.command("down", "--folder", str(self.folder / name))
        return left.stdout + left.stderr


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
    environment = {
        **ours,
        "PYTHONPATH": f"{FAKES / 'no_torch'}{os.pathsep}{ROOT}",
        "IPEXPERF_LEASES": str(tmp_path_factory.mktemp("leases")),
        "HOME": str(folder / "home"),
        "RAY_AUTH_MODE": "token",
    }
    token = folder / "home" / ".ray" / "auth_token"
    token.parent.mkdir(parents=True)
    token.write_text("0123456789abcdef" * 4)
    fleet = Fleet(folder, environment)
    port = fleet.address.rpartition(":")[2]
    try:
        up = fleet.host("one", "up", f"--port={port}")
        assert up.returncode == 0, up.stderr
        fleet.address = up.stdout.partition("ipexperf fleet join ")[2].split()[0]
        join = fleet.host("two", "join", fleet.address)
        assert join.returncode == 0, join.stderr
        yield fleet
    finally:
        left = [fleet.leave(name) for name in ("two", "one")]
    assert left == ["this host has left the fleet\n"] * 2
    assert "is in no fleet" in fleet.leave("one")


def statuses(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "db")) as database:
        return [status for (status,) in database.execute("SELECT status FROM run ORDER BY status")]


def wait_for(mark: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not mark.exists() and time.monotonic() < until:
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.1)
    assert mark.exists()


def test_the_hosts_describe_themselves(fleet: Fleet) -> None:
    answer = fleet.command("hosts", fleet.address)
    assert answer.returncode == 0, answer.stderr
    one, two = answer.stdout.splitlines()
    assert one.startswith("one  free")
    assert two.startswith("two  free")
    assert {"device=cpu", f"cores={len(os.sched_getaffinity(0))}"} <= set(one.split())
    assert fleet.command("hosts", fleet.address, "--where", "name=two").stdout == f"{two}\n"
    assert "did you mean cores?" in fleet.command("hosts", fleet.address, "--where", "core=8").stderr


def test_both_hosts_measure_into_one_history(fleet: Fleet, tmp_path: Path) -> None:
    ended = fleet.run(tmp_path, "tiny")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for host in ("one", "two"):
        assert re.search(rf"^{host} \| .*1 passed", ended.stdout, re.MULTILINE)
        assert f"host {host}: well" in ended.stdout
    assert statuses(tmp_path) == ["finished", "finished"]


def test_an_address_without_a_fleet_is_one_sentence(fleet: Fleet, tmp_path: Path) -> None:
    command = [word.replace(fleet.address, "127.0.0.1:1") for word in fleet.words(tmp_path, "tiny")]
    ended = fleet.call(command)
    assert ended.returncode == 2
    assert "no Ray cluster answers there" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_who_has_not_the_token_of_the_head_is_told_so(fleet: Fleet) -> None:
    stranger = Fleet(fleet.folder, {**fleet.environment, "RAY_AUTH_MODE": "disabled"})
    stranger.address = fleet.address
    for ended in (stranger.host("stranger", "join", fleet.address), stranger.command("hosts", fleet.address)):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "RAY_AUTH_MODE" in ended.stderr.splitlines()[-1]


def test_a_host_that_left_is_not_listed_as_one_that_died(fleet: Fleet) -> None:
    joined = fleet.host("three", "join", fleet.address)
    assert joined.returncode == 0, joined.stderr
    listed = fleet.command("hosts", fleet.address).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["one", "three", "two"]
    fleet.leave("three")
    assert "three" not in fleet.command("hosts", fleet.address).stdout


def test_a_host_that_blocks_is_in_the_fleet_until_its_command_ends(fleet: Fleet) -> None:
    (fleet.folder / "four").mkdir()
    command = fleet.host_command("four", "join", fleet.address, "--block")
    with (fleet.folder / "four.out").open("wb") as output:
        process = subprocess.Popen(command, env=fleet.environment, cwd=fleet.folder, stdout=output, stderr=output)
    until = time.monotonic() + PATIENCE
    while "four  free" not in fleet.command("hosts", fleet.address).stdout and time.monotonic() < until:
        assert process.poll() is None, (fleet.folder / "four.out").read_text()
    assert fleet.raylet("four")
    process.terminate()
    process.wait(PATIENCE)
    assert "four" not in fleet.command("hosts", fleet.address).stdout
    while fleet.processes("four") and time.monotonic() < until:
        time.sleep(0.1)
    assert fleet.processes("four") == {}


def test_sigterm_ends_the_commands_and_brings_what_they_recorded(fleet: Fleet, tmp_path: Path) -> None:
    """Ray's own handler would end this side alone."""
    mark = fleet.waits("one")
    process = fleet.start(tmp_path, "tiny,patient", "--where=name=one")
    wait_for(mark, process)
    process.terminate()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert not Path(f"/proc/{mark.read_text()}").exists()
    assert statuses(tmp_path) == ["interrupted"]


def test_a_host_whose_caller_is_killed_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    mark = fleet.waits("one")
    process = fleet.start(tmp_path, "patient", "--where=name=one")
    wait_for(mark, process)
    process.kill()
    process.communicate()
    assert fleet.command("hosts", fleet.address, "--where=name=one").stdout.startswith("one  busy")
    mark.with_name("wait").unlink()
    until = time.monotonic() + PATIENCE
    while "one  busy" in fleet.command("hosts", fleet.address).stdout and time.monotonic() < until:
        time.sleep(0.1)
    ended = fleet.command("collect", f"--db={tmp_path}/db", "--where=name=one", fleet.address)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert statuses(tmp_path) == ["finished"]


def test_a_host_that_dies_is_named_and_what_it_recorded_comes_when_it_is_back(fleet: Fleet, tmp_path: Path) -> None:
    mark = fleet.waits("two")
    process = fleet.start(tmp_path, "tiny,patient")
    wait_for(mark, process)
    os.kill(fleet.raylet("two"), signal.SIGKILL)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, output
    assert "host one: well" in output
    assert "host two: lost: " in output
    assert statuses(tmp_path) == ["finished"]
    (line,) = [line for line in fleet.command("hosts", fleet.address).stdout.splitlines() if line.startswith("two")]
    assert line.startswith("two  gone: ")
    mark.with_name("wait").unlink()
    measuring, until = Path(f"/proc/{mark.read_text()}"), time.monotonic() + PATIENCE
    while measuring.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not measuring.exists(), "what measured there ends by itself"
    fleet.leave("two")  # its Ray may leave processes behind
    joined = fleet.host("two", "join", fleet.address)
    assert joined.returncode == 0, joined.stderr
    ended = fleet.command("collect", f"--db={tmp_path}/db", fleet.address)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert statuses(tmp_path) == ["finished", "finished"]
