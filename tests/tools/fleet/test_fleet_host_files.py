"""The files of a host: what a journal keeps of a run, the status beside it, and how busy the host was."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fleet_codec import CASE, MEASURED, ROUND

from ipexperf.errors import UsageError
from ipexperf.tools.fleet import host_files, messages
from ipexperf.tools.fleet.host_files import DAY, GroupSpan, Journal, JournalSummary
from ipexperf.tools.fleet.messages import GroupProgress

NOW = 1_800_000_000.0


def progress(group: str, *, over: bool, rounds: int, cut: str = "") -> str:
    made = tuple(replace(ROUND, uid=f"{group}{number}") for number in range(rounds))
    return messages.line(GroupProgress(ord(group), group, ((CASE, replace(MEASURED, cut=cut)),), made, over))


def journals(host: Path) -> list[JournalSummary]:
    return list(host_files.snapshot(host).journals)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """The journal of a run of the host that is in the test's folder."""
    return Journal(host_files.runs_of(tmp_path), "run", "code")


def test_a_journal_has_the_complete_groups_of_its_code(journal: Journal, tmp_path: Path) -> None:
    journal.add(progress("a", over=False, rounds=1))
    journal.add(progress("a", over=True, rounds=2))
    journal.add(progress("b", over=False, rounds=1))
    journal.add(progress("c", over=True, rounds=1, cut="it was stopped"))
    journal.add('{"is":"GroupProgress","cut off by a lo')
    [whole] = journal.complete()
    assert whole.group == "a"
    assert len(whole.rounds) == 3
    other = Journal(journal.path.parent, "run", "other")
    assert other.complete() == []
    journal.close()
    other.close()
    assert journals(tmp_path) == [JournalSummary("run", busy=False)] * 2


def test_a_journal_on_a_full_disk_can_be_closed(journal: Journal, tmp_path: Path) -> None:
    """Lines that it could not write are still buffered, and must not fail its end."""
    journal._file.close()
    journal._file = Path("/dev/full").open("a+")  # noqa: SIM115 - the journal closes it
    with pytest.raises(OSError, match="No space left on device"):
        journal.add(progress("a", over=True, rounds=1))
    journal.remove()
    assert journals(tmp_path) == []


def test_two_hosts_with_one_folder_are_refused(journal: Journal, tmp_path: Path) -> None:
    """Home folders of a cluster are often the same on all of its nodes."""
    journal.show()
    with pytest.raises(UsageError, match=f"{tmp_path} is the folder of another host too: .* --folder"):
        Journal(journal.path.parent, "run", "code", only=True)
    assert host_files.snapshot(tmp_path).doing, "the status of the first one stays"
    journal.remove()
    Journal(journal.path.parent, "run", "code", only=True).remove()


def test_opening_a_journal_waits_for_its_writer(journal: Journal) -> None:
    said: list[str] = []
    reader = threading.Thread(target=lambda: Journal(journal.path.parent, "run", "code", said.append).close())
    reader.start()
    until = time.monotonic() + 20
    while not said and time.monotonic() < until:
        time.sleep(0.01)
    assert said == ["waiting for the group that is still being measured here for run run"]
    assert reader.is_alive()
    journal.remove()
    reader.join(20)
    assert not reader.is_alive()


@pytest.mark.parametrize("name", ["", "../x", "/etc/passwd", "a+b"])
def test_a_journal_is_in_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is no run of a fleet"):
        Journal(tmp_path, name, "code")


def test_a_status_is_read_while_its_process_lives(journal: Journal, tmp_path: Path) -> None:
    journal.show(state="measuring", since=NOW, group="g", round=2)
    journal.show(round=3)
    doing = host_files.snapshot(tmp_path).doing
    assert doing is not None
    assert (doing.run, doing.state, doing.group, doing.round) == ("run", "measuring", "g", 3)
    journal._file.close()
    assert host_files.snapshot(tmp_path).doing is None, "whoever wrote it is dead"
    journal.close()
    journal.show(round=4)
    assert [path.name for path in journal.path.parent.iterdir()] == ["run+code.jsonl"], "nothing is written at its end"


def test_a_status_of_another_version_is_unknown(journal: Journal, tmp_path: Path) -> None:
    host_files.status_of(journal.path).write_text('{"run": "run", "state": "asleep", "since": 1.0}')
    assert journals(tmp_path) == [JournalSummary("run", busy=True)]
    journal.close()


def test_a_host_remembers_what_it_measured_of_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that a loss of power cut off are left out, and old ones dropped."""
    assert host_files.spans(tmp_path, 0) == []
    for hour in range(3):
        host_files.remember(tmp_path, GroupSpan(hour * 3600.0, hour * 3600.0 + 900, "run", "g"))
    with (tmp_path / ".ipexperf" / "fleet" / "activity.jsonl").open("a") as file:
        file.write('{"begin": 1.0, "en\n')
    assert [one.begin for one in host_files.spans(tmp_path, 4000)] == [3600, 7200]
    monkeypatch.setattr(host_files, "LONGEST", 2000)
    for number in range(100):
        host_files.remember(tmp_path, GroupSpan(number * DAY / 10, number * DAY / 10 + 60, "run", "g"))
    assert 10 <= len(host_files.spans(tmp_path, 0)) <= 30


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=8), st.floats(0, 90))
def test_a_share_counts_overlapping_groups_once(spans: list[tuple[float, float]], begin: float) -> None:
    stretches = [GroupSpan(min(span), max(span)) for span in spans]
    busy = host_files.share(stretches, begin, 100)
    assert 0 <= busy <= 1 + 1e-9
    assert busy == pytest.approx(host_files.share(stretches * 2, begin, 100))
    assert host_files.share([*stretches, GroupSpan(0, 100)], begin, 100) == pytest.approx(1)


def test_a_snapshot_has_the_group_that_is_being_measured(journal: Journal, tmp_path: Path) -> None:
    journal.show(state="measuring", since=NOW - 200, group="g")
    host_files.remember(tmp_path, GroupSpan(NOW - 1000, NOW - 800, "before", "g"))
    seen = host_files.snapshot(tmp_path, NOW - 1000, NOW)
    assert (seen.seconds, seen.busy) == (1000, pytest.approx(0.4))
    assert [one.run for one in seen.stretches] == ["before", "run"]
    assert host_files.snapshot(tmp_path, None, NOW).seconds == DAY
    journal.close()
