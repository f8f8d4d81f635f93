"""A fleet on a real Ray cluster: two nodes on this machine, made by the command, and what happens when they die."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipexperf.variables import FLEET_FOLDER

pytest.importorskip("ray", reason="needs Ray: pip install 'ipexperf[fleet]'")
pytestmark = [pytest.mark.long, pytest.mark.server]

ROOT = Path(__file__).parents[3]
FAKES = ROOT / "tests" / "fakes"
SUITE = """
import pytest


@pytest.mark.perf
def test_it(perf):
    perf()
"""
CELL = ["--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain"]
SHORT = ["--perf-launches", "1", "--perf-samples", "5", "--perf-seconds", "0.05", "--perf-without=roof"]
LOAD = [f"--perf-load={FAKES / name}" for name in ("fake.py", "any_machine.py", "fleet_models.py")]
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
        """Start a node."""
        (self.folder / name).mkdir(exist_ok=True)
        return self.call(self.host_command(name, *words))

    def host_command(self, name: str, *words: str) -> list[str]:
        """The command of a node that behaves as if it were alone on this machine."""
        code = "import sys; from ipexperf.tools.fleet import membership; membership.members = lambda: []; "
        code += "from ipexperf import cli; sys.exit(cli.main())"
        return [sys.executable, "-c", code, "fleet", *words, "--name", name, "--folder", str(self.folder / name)]

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

    def pytest(self, folder: Path, models: str, *more: str) -> list[str]:
        (folder / "test_suite.py").write_text(SUITE)
        (folder / "pytest.ini").write_text("[pytest]\n")
        plugins = ["-p", "ipexperf.short_options", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
        command = [sys.executable, "-m", "pytest", f"--rootdir={folder}", str(folder), *plugins, *LOAD]
        return [
            *command,
            "--model",
            models,
            *CELL,
            *SHORT,
            f"--perf-fleet={self.address}",
            f"--perf-db={folder}/db",
            *more,
        ]

    def run(self, folder: Path, models: str, *more: str) -> subprocess.CompletedProcess[str]:
        return self.call(self.pytest(folder, models, *more))

    def raylet(self, name: str) -> int:
        """The process that Ray has on a node."""
        (pid,) = (pid for pid, command in self.processes(name).items() if b"raylet/raylet" in command)
        return pid

    def processes(self, name: str) -> dict[int, bytes]:
        """All processes of a node, with their commands."""
        mark, processes = f"{FLEET_FOLDER}={self.folder / name}\0".encode(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes():
                    processes[int(folder.name)] = (folder / "cmdline").read_bytes()
        return processes

    def leave(self, name: str) -> None:
        """What `ipexperf fleet down` does to a host, for one of several that are on this machine."""
        for pid in self.processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        while self.processes(name) and time.monotonic() < until:
            time.sleep(0.1)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
    environment = {
        **ours,
        "PYTHONPATH": f"{FAKES / 'no_torch'}{os.pathsep}{ROOT}",
        "IPEXPERF_LEASES": str(tmp_path_factory.mktemp("leases")),
        "FLEET_MARK": str(folder / "mark"),
        "HOME": str(folder / "home"),
    }
    token = folder / "home" / ".ray" / "auth_token"
    token.parent.mkdir(parents=True)
    token.write_text("0123456789abcdef" * 4)
    fleet = Fleet(folder, environment)
    port = fleet.address.rpartition(":")[2]
    try:
        up = fleet.host("one", "up", f"--port={port}", "--label=room=a")
        assert up.returncode == 0, up.stderr
        fleet.address = up.stdout.partition("ipexperf fleet join ")[2].split()[0]
        join = fleet.host("two", "join", fleet.address, "--label=room=b")
        assert join.returncode == 0, join.stderr
        yield fleet
    finally:
        down = fleet.command("down", fleet.address)  # whoever runs these tests may have a fleet of their own
    assert down.stdout == "this host has left the fleet\n", down.stderr
    assert "left" not in fleet.command("down", fleet.address).stdout


def runs(folder: Path) -> list[dict[str, Any]]:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(folder / "db")) as database:
        rows = database.execute("SELECT status, meta FROM run ORDER BY id").fetchall()
    return [{"status": status, **json.loads(meta)} for status, meta in rows]


def test_the_hosts_describe_themselves(fleet: Fleet) -> None:
    answer = fleet.command("hosts", fleet.address, "--json")
    assert answer.returncode == 0, answer.stderr
    one, two = json.loads(answer.stdout)
    assert (one["host"], one["room"], one["state"]) == ("one", "a", "free")
    assert (two["host"], two["room"], two["device"]) == ("two", "b", "cpu")
    assert int(one["cores"]) == len(os.sched_getaffinity(0))
    chosen = fleet.command("hosts", fleet.address, "--hosts", "room=b")
    assert chosen.stdout.startswith("two  free")
    assert "    measured 0% of the last " in chosen.stdout
    assert "did you mean room?" in fleet.command("hosts", fleet.address, "--hosts", "rom=b").stderr


def test_both_hosts_measure_into_one_history(fleet: Fleet, tmp_path: Path) -> None:
    ended = fleet.run(tmp_path, "tiny", "-v")
    assert ended.returncode == 0, ended.stdout
    assert "tiny-fake-fp32-spin-plain@one] PASSED" in ended.stdout
    assert "tiny-fake-fp32-spin-plain@two] PASSED" in ended.stdout
    assert [run["status"] for run in runs(tmp_path)] == ["finished", "finished"]
    assert "0 groups" not in ended.stdout
    answer = json.loads(fleet.command("hosts", fleet.address, "--json").stdout)
    assert [(one["state"], one["keeps"]) for one in answer] == [("free", []), ("free", [])]
    assert all(one["busy"] > 0 for one in answer)


def test_an_address_without_a_fleet_is_one_sentence(fleet: Fleet, tmp_path: Path) -> None:
    command = [word.replace(fleet.address, "127.0.0.1:1") for word in fleet.pytest(tmp_path, "tiny")]
    ended = fleet.call(command)
    assert ended.returncode == 4
    assert "no Ray cluster answers there" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_who_has_not_the_token_of_the_head_gets_one_sentence(fleet: Fleet, tmp_path: Path) -> None:
    fleet_of_a_stranger = Fleet(fleet.folder, {**fleet.environment, "HOME": str(tmp_path)})
    fleet_of_a_stranger.address = fleet.address
    for ended in (
        fleet_of_a_stranger.host("stranger", "join", fleet.address),
        fleet_of_a_stranger.command("hosts", fleet.address),
    ):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "asks for a token: copy ~/.ray/auth_token" in ended.stderr.splitlines()[-1]
        assert "Traceback" not in ended.stderr


def test_a_host_that_left_is_not_listed_as_one_that_died(fleet: Fleet) -> None:
    joined = fleet.host("three", "join", fleet.address)
    assert joined.returncode == 0, joined.stderr
    assert [one["host"] for one in json.loads(fleet.command("hosts", fleet.address, "--json").stdout)] == [
        "one",
        "three",
        "two",
    ]
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


def test_sigterm_ends_the_run_as_ctrl_c_does(fleet: Fleet, tmp_path: Path) -> None:
    """Ray's own handler would fail one test, and the run would go on."""
    command, lines = fleet.pytest(tmp_path, "tiny,patient", "--perf-hosts=room=a", "-v"), []
    with subprocess.Popen(
        command, env=fleet.environment, cwd=fleet.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "PASSED" in line:
                process.terminate()
    Path(fleet.environment["FLEET_MARK"]).unlink(missing_ok=True)
    assert process.returncode == 2, "".join(lines)
    assert [run["status"] for run in runs(tmp_path)] == ["interrupted"]


def test_a_killed_host_fails_only_its_own_cases(fleet: Fleet, tmp_path: Path) -> None:
    mark = Path(fleet.environment["FLEET_MARK"])
    command = fleet.pytest(tmp_path, "tiny,patient", "--perf-hosts=room=b")
    process = subprocess.Popen(
        command, env=fleet.environment, cwd=fleet.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    until = time.monotonic() + PATIENCE
    while not mark.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert mark.exists()
    measuring = int(mark.read_text())
    one, two = json.loads(fleet.command("hosts", fleet.address, "--json").stdout)
    assert (one["state"], two["state"]) == ("free", "measuring")
    assert two["doing"]["group"].startswith("patient fake")
    assert (two["doing"]["round"], two["doing"]["rounds"]) == (1, 1)
    os.kill(fleet.raylet("two"), signal.SIGKILL)
    output, _ = process.communicate(timeout=PATIENCE)
    (line,) = [line for line in fleet.command("hosts", fleet.address).stdout.splitlines() if line.startswith("two")]
    assert line.startswith("two  gone: ")
    assert process.returncode == 1, output
    assert "1 failed, 1 passed" in output
    assert "the host two was lost" in output
    (run,) = runs(tmp_path)
    assert run["status"] == "finished"
    Path(f"{mark}.go").touch()
    while Path(f"/proc/{measuring}").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not Path(f"/proc/{measuring}").exists(), "what measured there ends by itself"
    journals = list((fleet.folder / "two" / ".ipexperf" / "fleet" / "runs").iterdir())
    assert [path.stem.partition("+")[0] for path in journals] == [run["fleet"]["run"]], "and leaves what it measured"
