"""A host: the variables of its commands, its labels, and how it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipexperf.errors import UsageError
from ipexperf.tools.fleet import labels, membership
from ipexperf.tools.fleet.host_side import HostSide


@pytest.mark.process
def test_a_command_has_the_variables_with_which_the_host_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none that Ray sets for its own processes, such as an allocator that slows everything down."""
    monkeypatch.setenv("LD_PRELOAD", "libmine.so")
    monkeypatch.setenv(membership.ENVIRONMENT, json.dumps({"OMP_NUM_THREADS": "4", "PATH": "/usr/bin:/bin"}))
    monkeypatch.setenv(membership.FOLDER, str(tmp_path))
    monkeypatch.setenv(membership.ADDRESS, "10.0.0.5:6379")
    side, lines, status = HostSide("a"), [], None
    assert side.start("run", ["env"], []) == ""
    while status is None:
        more, status = side.poll()
        lines += more
    told = dict(line.split("=", 1) for line in lines)
    assert (told["OMP_NUM_THREADS"], told[membership.FOLDER]) == ("4", str(tmp_path))
    assert told[membership.ADDRESS] == "10.0.0.5:6379", "so that `fleet down` finds it"
    assert told["PATH"] == f"{Path(sys.executable).parent}:/usr/bin:/bin"
    assert told["IPEXPERF_DB"].startswith(str(tmp_path))
    assert not {"LD_PRELOAD", membership.ENVIRONMENT} & told.keys()


@pytest.mark.parametrize(
    "text", ["", "room", "=b", "Room=b", "room=", "room=b 2", "room=b,device=xpu", "device=xpu", "name=x"]
)
def test_an_invalid_label_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--label"):
        labels.parse(text)


def test_the_labels_of_a_host_are_valid_for_ray() -> None:
    assert labels.parse("room=b2") == ("room", "b2")
    assert labels.value("Intel(R) Xeon(R) w9-3495X @ 1.9GHz (x)") == "Intel-R-Xeon-R-w9-3495X-1.9GHz-x"
    assert labels.value("é") == "unknown"
    assert len(labels.value("x" * 100)) == 63


@pytest.mark.process
def test_a_host_whose_torch_cannot_be_asked_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, said = tmp_path / "python", list[str]()
    program.write_text("#!/bin/sh\necho no such driver >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(labels.sys, "executable", str(program))
    assert labels.describe("one", said.append)["device"] == "cpu"
    assert said[0].endswith(": status 3, no such driver")


@pytest.mark.torch
def test_equal_hosts_agree_in_machine_packages_and_commit() -> None:
    told = labels.look()["equal"]
    assert {"machine_key cpu", "python", "torch", "commit"} <= told.keys()


@pytest.fixture
def fleets() -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A process of each of two fleets of this host, by their addresses, which nobody else has."""
    addresses = [f"{uuid.uuid4()}:1", f"{uuid.uuid4()}:2"]
    processes = {
        address: subprocess.Popen(
            ["sleep", "60"], env={**os.environ, membership.FOLDER: "/host", membership.ADDRESS: address}
        )
        for address in addresses
    }
    yield processes
    for process in processes.values():
        process.kill()
        process.wait()


def down(address: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ipexperf.cli", "fleet", "down", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.process
def test_leaving_a_fleet_ends_no_process_of_another(fleets: dict[str, subprocess.Popen[bytes]]) -> None:
    (one, left), (other, stays) = fleets.items()
    until = time.monotonic() + 20
    while set(fleets) - set(membership.members().values()) and time.monotonic() < until:
        time.sleep(0.01)  # until both have begun
    assert down(one).stdout == "this host has left the fleet\n"
    assert left.wait(20) != 0
    assert stays.poll() is None
    wrong = down(one)
    assert wrong.returncode == 2
    assert f"fleet down {one}: this host is in no such fleet, but in " in wrong.stderr
    assert other in wrong.stderr
