"""A host: the variables of its commands, its labels, and how it leaves."""

import json
import os
import subprocess
import sys
import time
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
    side, lines, status = HostSide("a"), [], None
    assert side.start("run", ["env"], []) == ""
    while status is None:
        more, status = side.poll()
        lines += more
    told = dict(line.split("=", 1) for line in lines)
    assert (told["OMP_NUM_THREADS"], told[membership.FOLDER]) == ("4", str(tmp_path)), (
        "`fleet down` finds it by the folder"
    )
    assert told["PATH"] == f"{Path(sys.executable).parent}:/usr/bin:/bin"
    assert told["IPEXPERF_DB"].startswith(str(tmp_path))
    assert not {"LD_PRELOAD", membership.ENVIRONMENT} & told.keys()


def test_the_labels_of_a_host_are_valid_for_ray() -> None:
    assert labels.value("Intel(R) Xeon(R) w9-3495X @ 1.9GHz (x)") == "Intel-R-Xeon-R-w9-3495X-1.9GHz-x"
    assert labels.value("é") == "unknown"
    assert len(labels.value("x" * 100)) == 63


@pytest.mark.process
def test_a_host_whose_torch_cannot_be_asked_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no such driver >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(labels.sys, "executable", str(program))
    with pytest.raises(UsageError, match="status 3, no such driver"):
        labels.look(tmp_path, os.environ)


@pytest.mark.torch
def test_a_host_says_what_it_is_chosen_by_and_what_equal_hosts_agree_in(tmp_path: Path) -> None:
    told = labels.look(tmp_path, os.environ)
    assert {"device", "cpu", "cores"} <= told["labels"].keys()
    assert {"machine_key cpu", "python", "torch"} <= told["equal"].keys()


@pytest.mark.process
def test_leaving_a_fleet_ends_no_process_of_another(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    left, stays = (
        subprocess.Popen(["sleep", "60"], env={**os.environ, membership.FOLDER: str(folder)}) for folder in folders
    )
    down = [sys.executable, "-m", "ipexperf.cli", "fleet", "down", "--folder", str(folders[0])]
    until = time.monotonic() + 20
    try:
        while not all(membership.members(folder) for folder in folders) and time.monotonic() < until:
            time.sleep(0.01)  # until both have begun
        for told in ("this host has left the fleet", f"{folders[0]} is in no fleet"):
            ended = subprocess.run(down, capture_output=True, text=True, timeout=60, check=False)
            assert (ended.returncode, ended.stdout) == (0, f"{told}\n"), ended.stderr
        assert left.wait(20) != 0
        assert stays.poll() is None
    finally:
        for process in (left, stays):
            process.kill()
            process.wait()
