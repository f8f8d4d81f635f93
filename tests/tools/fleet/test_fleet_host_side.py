"""A host: the code of a run, the variables of its measurements, and its labels."""

from __future__ import annotations

import io
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
from ipexperf.tools.fleet import agent, code, labels, membership, worker
from ipexperf.variables import FLEET_ADDRESS, FLEET_ENVIRONMENT, FLEET_FOLDER


def test_the_code_is_named_by_its_content(tmp_path: Path) -> None:
    one = tmp_path / "mine.py"
    one.write_text("A = 1\n")
    digest, archive = code.pack([str(one), "a.module"])
    assert code.pack([str(one)])[0] == digest
    assert code.pack()[0] != digest
    home = code.unpack(archive, digest, tmp_path / "host")
    assert (home / "ipexperf" / "result.py").is_file()
    assert (home / code.loaded(str(one))).read_text() == "A = 1\n"
    assert not list(home.rglob("*.pyc"))
    assert code.unpack(b"no archive", digest, tmp_path / "host") == home, "what is there is not unpacked again"
    one.write_text("A = 2\n")
    assert code.pack([str(one)])[0] != digest


def test_a_measurement_has_the_variables_with_which_the_host_joined() -> None:
    joined = {"OMP_NUM_THREADS": "4", "PATH": "/bin", "LD_PRELOAD": "libmine.so"}
    rays = {"OMP_NUM_THREADS": "1", "RAY_x": "1", "LD_PRELOAD": "/venv/ray/core/libjemalloc.so libmine.so"}
    marks = {FLEET_FOLDER: "/host", FLEET_ADDRESS: "10.0.0.5:6379"}
    told = {**rays, FLEET_ENVIRONMENT: json.dumps(joined), **marks}
    assert agent.surroundings(told, rays) == {**joined, **marks}


def test_variables_that_ray_adds_are_removed_if_the_originals_are_not_recorded() -> None:
    """Ray's daemon loads an allocator of its own. A case of ResNet-18 took 1.7 times as long with it."""
    rays = {"RAY_x": "1", "PATH": "/bin", "LD_PRELOAD": "/venv/ray/core/libjemalloc.so"}
    parent = {**rays, "OMP_NUM_THREADS": "4"}
    assert agent.surroundings({}, parent) == {"OMP_NUM_THREADS": "4", "PATH": "/bin"}
    assert agent.surroundings({**rays, "OMP_NUM_THREADS": "1"}, {}) == {"PATH": "/bin"}
    both = {"LD_PRELOAD": "/venv/ray/core/libjemalloc.so:/usr/lib/libtcmalloc.so"}
    assert agent.surroundings({}, both) == {"LD_PRELOAD": "/usr/lib/libtcmalloc.so"}


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


@pytest.mark.parametrize(
    ("cards", "device", "sentence"),
    [
        (
            ({"xpu": {labels.PROBLEM: "driver too old"}}, ""),
            "cpu_xpu",
            "torch can use xpu here and cannot describe it: driver too old: it joins as card=unknown",
        ),
        (({}, "status -11, Segmentation fault"), "cpu", "torch cannot say which cards are here: status -11, Segm"),
    ],
)
def test_a_card_that_torch_cannot_describe_is_reported(
    monkeypatch: pytest.MonkeyPatch, cards: tuple[dict[str, dict[str, str]], str], device: str, sentence: str
) -> None:
    said: list[str] = []
    monkeypatch.setattr(labels, "_cards", lambda: cards)
    described = labels.describe("one", said.append)
    assert (described["device"], described["card"]) == (device, "unknown")
    assert said[0].startswith(sentence)


@pytest.mark.process
def test_the_report_says_why_cards_cannot_be_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no such driver >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(labels.sys, "executable", str(program))
    assert labels._cards() == ({}, "status 3, no such driver")


@pytest.fixture
def fleets() -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A process of each of two fleets of this host, by their addresses, which nobody else has."""
    addresses = [f"{uuid.uuid4()}:1", f"{uuid.uuid4()}:2"]
    processes = {
        address: subprocess.Popen(["sleep", "60"], env={**os.environ, FLEET_FOLDER: "/host", FLEET_ADDRESS: address})
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


def test_a_host_ends_after_a_request_that_it_cannot_read() -> None:
    """Its main thread waits for requests, and once waited for ever, also after its controller was gone."""
    pipe = worker.Pipe(io.StringIO("no request\n"), io.StringIO())
    with pytest.raises(ValueError, match="Expecting value"):
        pipe._read()
    assert pipe.waiting.get_nowait() is None
    assert pipe.gone.is_set()
