"""A host: the code of a run, its journal, the variables of its measurements, and its labels."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_fleet_codec import CASE, MEASURED, ROUND

from ipexperf.errors import UsageError
from ipexperf.tools.fleet import agent, code, journal, labels, membership, messages
from ipexperf.tools.fleet.messages import GroupProgress
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
    one.write_text("A = 2\n")
    assert code.pack([str(one)])[0] != digest


def test_present_code_is_not_unpacked_again(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("a.py", "")
    home = code.unpack(archive.getvalue(), "d", tmp_path)
    (home / "mark").touch()
    assert code.unpack(b"no archive", "d", tmp_path) == home
    assert (home / "mark").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    assert code.loaded(str(tmp_path / "a" / "x.py")) != code.loaded(str(tmp_path / "b" / "x.py"))


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


def progress(group: str, *, over: bool, rounds: int, cut: str = "") -> str:
    made = tuple(replace(ROUND, uid=f"{group}{number}") for number in range(rounds))
    return messages.line(GroupProgress(ord(group), group, ((CASE, replace(MEASURED, cut=cut)),), made, over))


def test_a_journal_has_the_complete_groups(tmp_path: Path) -> None:
    one = journal.Journal(tmp_path, "run", "code")
    one.add(progress("a", over=False, rounds=1))
    one.add(progress("a", over=True, rounds=2))
    one.add(progress("b", over=False, rounds=1))
    one.add(progress("c", over=True, rounds=1, cut="it was stopped"))
    one.add('{"is":"GroupProgress","cut off by a lo')
    assert journal.summaries(tmp_path) == [journal.JournalSummary("run", busy=True)]
    [whole] = one.complete()
    assert whole.group == "a"
    assert len(whole.rounds) == 3
    one.remove()
    assert journal.summaries(tmp_path) == []


def test_a_journal_on_a_full_disk_is_reported_and_can_be_closed(tmp_path: Path) -> None:
    """Lines that it could not write are still buffered, and must not fail its end."""
    one = journal.Journal(tmp_path, "run", "code")
    one._file.close()
    one._file = Path("/dev/full").open("a+")  # noqa: SIM115 - the journal closes it
    assert one.add(progress("a", over=True, rounds=1)) == "No space left on device"
    one.remove()
    assert one._file.closed
    assert journal.summaries(tmp_path) == []


def test_other_code_has_its_own_journal(tmp_path: Path) -> None:
    one = journal.Journal(tmp_path, "run", "code")
    one.add(progress("a", over=True, rounds=1))
    one.close()
    other = journal.Journal(tmp_path, "run", "other")
    assert other.complete() == []
    other.close()
    assert journal.summaries(tmp_path) == [journal.JournalSummary("run", busy=False)] * 2


def test_two_hosts_with_one_folder_are_refused(tmp_path: Path) -> None:
    """Home folders of a cluster are often the same on all of its nodes."""
    folder = journal.folder_of(tmp_path)
    one = journal.Journal(folder, "run", "code", only=True)
    with pytest.raises(UsageError, match=f"{tmp_path} is the folder of another host too: .* --folder"):
        journal.Journal(folder, "run", "code", only=True)
    one.remove()
    journal.Journal(folder, "run", "code", only=True).remove()


def test_opening_a_journal_waits_for_its_writer(tmp_path: Path) -> None:
    writer = journal.Journal(tmp_path, "run", "code")
    said: list[str] = []
    reader = threading.Thread(target=lambda: journal.Journal(tmp_path, "run", "code", said.append).close())
    reader.start()
    until = time.monotonic() + 20
    while not said and time.monotonic() < until:
        time.sleep(0.01)
    assert said == ["waiting for the group that is still being measured here for run run"]
    assert reader.is_alive()
    writer.remove()
    reader.join(20)
    assert not reader.is_alive()


@pytest.mark.parametrize("name", ["", "../x", "/etc/passwd", "a/b", "a+b"])
def test_a_journal_is_in_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is no run of a fleet"):
        journal.Journal(tmp_path, name, "code")


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
