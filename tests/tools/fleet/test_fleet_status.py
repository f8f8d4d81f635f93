"""The status of a host, how busy it was, and the survey of a fleet."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import cli_answers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.tools.fleet import command, journal, labels, local, snapshots, status, survey
from ipexperf.tools.fleet.hosts import Host
from ipexperf.tools.fleet.journal import Journal, JournalSummary
from ipexperf.tools.fleet.snapshots import Snapshot
from ipexperf.tools.fleet.status import DAY, Activity, GroupSpan, Status, StatusFile

NOW = 1_800_000_000.0
GROUP = "resnet18 cpu infer 16x224"
MEASURING = Status("run1", "measuring", NOW - 200, GROUP, 2, 5, 4)


def test_a_status_is_read_while_its_process_lives(tmp_path: Path) -> None:
    one = Journal(tmp_path, "run1", "code")
    file = StatusFile(one.path, MEASURING)
    file.change(round=3, queue=0)
    assert journal.summaries(tmp_path) == [JournalSummary("run1", True, replace(MEASURING, round=3, queue=0))]
    one.close()
    assert journal.summaries(tmp_path) == [JournalSummary("run1", False, None)], "whoever wrote it is dead"
    file.remove()
    file.change(round=4)
    assert [path.name for path in tmp_path.iterdir()] == ["run1+code.jsonl"], "nothing is written after the end"


@pytest.mark.parametrize("text", ["", '{"run": 1}', '{"run": "a", "state": "asleep", "since": 1.0}'])
def test_an_unreadable_status_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run1+code.jsonl"
    status.path_of(path).write_text(text)
    assert status.read(path) is None


def test_an_unwritable_status_is_reported(tmp_path: Path) -> None:
    assert StatusFile(tmp_path / "not" / "there", MEASURING).problem == os.strerror(2)


def test_activity_has_the_measured_groups(tmp_path: Path) -> None:
    activity = Activity(tmp_path / "new" / "activity.jsonl")
    assert activity.since(0) == []
    for hour in range(3):
        assert activity.add(GroupSpan(hour * 3600.0, hour * 3600.0 + 900, "run1", GROUP)) == ""
    with (tmp_path / "new" / "activity.jsonl").open("a") as file:
        file.write('{"begin": 1.0, "en')
    assert [one.begin for one in activity.since(4000)] == [3600, 7200]
    assert status.share(activity.since(0), 0, 3 * 3600) == pytest.approx(0.25)
    assert Activity(tmp_path).add(GroupSpan(0, 1)) == os.strerror(21)


def test_a_long_record_drops_old_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "LONGEST", 2000)
    activity = Activity(tmp_path / "activity.jsonl")
    for number in range(100):
        activity.add(GroupSpan(number * DAY / 10, number * DAY / 10 + 60, "run1", GROUP))
    assert 10 <= len(activity.since(0)) <= 30


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=8), st.floats(0, 90))
def test_a_share_counts_overlapping_groups_once(spans: list[tuple[float, float]], begin: float) -> None:
    stretches = [GroupSpan(min(span), max(span)) for span in spans]
    busy = status.share(stretches, begin, 100)
    assert 0 <= busy <= 1 + 1e-9
    assert busy == pytest.approx(status.share(stretches * 2, begin, 100))
    assert status.share([*stretches, GroupSpan(0, 100)], begin, 100) == pytest.approx(1)


def test_a_snapshot_has_the_group_that_is_being_measured(tmp_path: Path) -> None:
    folder = journal.folder_of(tmp_path)
    one = Journal(folder, "run1", "code")
    StatusFile(one.path, MEASURING)
    snapshots.activity_of(tmp_path).add(GroupSpan(NOW - 1000, NOW - 800, "run0", "before"))
    seen = snapshots.take(tmp_path, NOW - 1000, NOW)
    assert seen.doing == MEASURING
    assert (seen.seconds, seen.busy) == (1000, pytest.approx(0.4))
    assert [one.run for one in seen.stretches] == ["run0", "run1"]
    assert snapshots.take(tmp_path, None, NOW).seconds == DAY
    one.close()


def test_a_host_without_ray_has_joined_with_its_first_run(tmp_path: Path) -> None:
    """Its busy share is of the time since then, not of a whole day."""
    fleet = local.LocalFleet("local:a,b", tmp_path)
    host, other = fleet.hosts()
    fleet.channel(host, print, wait=True).close()
    mark = tmp_path / "fleet" / "local" / "a" / local.JOINED
    os.utime(mark, (time.time() - 120, time.time() - 120))
    fleet.channel(host, print, wait=True).close()
    seen = fleet.snapshots([host, other])
    assert isinstance(first := seen["a"], Snapshot)
    assert isinstance(never := seen["b"], Snapshot)
    assert 120 <= first.seconds < 3600
    assert survey.busy_text(first).startswith("measured 0% of the last 2 min")
    assert (never.seconds, survey.busy_text(never)) == (0, "has not measured for any run")


class Rack:
    """A fleet that says what it was given."""

    def __init__(self, **hosts: Snapshot | str) -> None:
        self._snapshots = hosts
        self.taken: set[str] = set()
        self.dead: dict[str, str] = {}

    def hosts(self) -> list[Host]:
        return [Host(name, name, labels={"device": "cpu", "room": "a"}) for name in self._snapshots]

    def free(self) -> dict[str, bool]:
        return {name: name not in self.taken for name in self._snapshots}

    def gone(self) -> dict[str, str]:
        return self.dead

    def snapshots(self, hosts: Sequence[Host]) -> dict[str, Snapshot | str]:
        return {host.name: self._snapshots[host.name] for host in hosts}

    def close(self) -> None:
        """Nothing to close."""


def seen_at(doing: Status | None = None, busy: float = 0.37, **more: tuple[GroupSpan, ...]) -> Snapshot:
    return Snapshot(NOW, (JournalSummary("run1", True, doing),) if doing else (), 5 * 3600.0, busy, **more)


def test_the_survey_shows_what_every_host_does() -> None:
    rack = Rack(
        one=seen_at(MEASURING),
        two=seen_at(Status("run1", "quiet", NOW - 65)),
        three=seen_at(),
        four=seen_at(),
        five="nothing within 30 s",
        six=seen_at(replace(MEASURING, alone=True)),
        seven=seen_at(Status("run2", "waiting", NOW - 30, GROUP, 0, 5, 0, "waiting for the CPU: pytest has held it")),
    )
    rack.taken, rack.dead = {"one", "two", "four", "seven"}, {"eight": "it was killed"}
    seen = survey.make(rack)
    assert [(one.host.name, one.state) for one in seen] == [
        ("one", "measuring"),
        ("two", "quiet"),
        ("three", "free"),
        ("four", "taken"),
        ("five", "does not answer"),
        ("six", "finishing"),
        ("seven", "waiting"),
        ("eight", "gone"),
    ]
    assert survey.lines(seen) == [
        "one  measuring  device=cpu  room=a",
        f"    run run1: {GROUP}, round 2 of 5, for 3 min 20 s; 4 groups to come",
        "    measured 37% of the last 5 h 00 min",
        "two  quiet  device=cpu  room=a",
        "    run run1 has nothing for it to measure for 65.0 s",
        "    measured 37% of the last 5 h 00 min",
        "three  free  device=cpu  room=a",
        "    measured 37% of the last 5 h 00 min",
        "four  taken  device=cpu  room=a",
        "    measured 37% of the last 5 h 00 min",
        "five  does not answer: nothing within 30 s  device=cpu  room=a",
        "six  finishing  device=cpu  room=a",
        f"    run run1: {GROUP}, round 2 of 5, for 3 min 20 s; its pytest is gone",
        "    measured 37% of the last 5 h 00 min",
        "seven  waiting  device=cpu  room=a",
        f"    run run2: {GROUP} waits for its devices for 30.0 s (waiting for the CPU: pytest has held it)",
        "    measured 37% of the last 5 h 00 min",
        "eight  gone: it was killed",
    ]
    first, *_, last = survey.rows(seen)
    assert first["doing"]["group"] == GROUP
    assert (first["doing"]["round"], first["doing"]["rounds"], first["doing"]["queue"]) == (2, 5, 4)
    assert (first["doing"]["seconds"], first["busy"], first["room"]) == (200, 0.37, "a")
    assert last == {"host": "eight", "state": "gone", "reason": "it was killed"}
    (brief,) = survey.rows(survey.make(Rack(one=seen_at(busy=1 / DAY))))
    assert brief["busy"] == pytest.approx(1 / DAY, rel=1e-3), "a second of a day"


def test_a_host_that_dies_during_the_survey_is_listed_once() -> None:
    rack = Rack(one=seen_at(), two="its node died", three=seen_at())
    rack.dead = {"two": "it was killed", "three": "it was killed after its answer", "four": "it was killed before"}
    gone = [(one.host.name, one.state, one.reason) for one in survey.make(rack) if one.state == "gone"]
    assert gone == [
        ("two", "gone", "it was killed"),
        ("three", "gone", "it was killed after its answer"),
        ("four", "gone", "it was killed before"),
    ]
    assert [one.host.name for one in survey.make(rack)] == ["one", "two", "three", "four"]


def test_a_run_that_was_cut_off_is_named() -> None:
    snapshot = Snapshot(NOW, (JournalSummary("run1", False), JournalSummary("run2", True)), DAY, 0.0)
    (line,) = [line for line in survey.lines(survey.make(Rack(one=snapshot))) if "--perf-resume" in line]
    assert line == "    keeps what it measured of a run that was cut off: --perf-resume run1"


def test_the_page_draws_each_host_since_the_first_one_joined() -> None:
    hours = 5 * 3600.0
    stretches = (GroupSpan(NOW - hours / 2, NOW - hours / 4, "run1", "<b>"), GroupSpan(NOW - DAY, NOW - hours * 0.75))
    page = survey.page(survey.make(Rack(one=seen_at(stretches=stretches), two="silent")), 10)
    assert '<meta http-equiv="refresh" content="10">' in page
    assert '<rect x="240.0" width="120.0" y="2" height="14"><title>&lt;b&gt;, run run1, ' in page
    assert '<rect x="0.0" width="120.0" y="2" height="14">' in page
    assert "the left end 5 h 00 min before" in page
    assert "<td>does not answer</td>" in page
    assert "<td>silent</td>" in page
    assert 'http-equiv="refresh"' not in survey.page(survey.make(Rack(one=seen_at())))


def test_the_command_looks_at_a_local_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    host = tmp_path / ".ipexperf" / "fleet" / "local" / "a"
    one = Journal(journal.folder_of(host), "run1", "code")
    StatusFile(one.path, replace(MEASURING, since=time.time() - 5))
    out = cli_answers.run(capsys, "fleet", "hosts", "local:a,b", "--html", "page.html")
    first, second, *_ = out.splitlines()
    assert first == "a  measuring  device=cpu"
    assert re.match(rf"    run run1: {re.escape(GROUP)}, round 2 of 5, for \d+\.\d+ s", second)
    assert "b  free" in out
    assert GROUP in (tmp_path / "page.html").read_text()
    document = json.loads(cli_answers.run(capsys, "fleet", "hosts", "local:a,b", "--json", "--hosts", "name=a"))
    assert [(row["host"], row["state"]) for row in document] == [("a", "measuring")]
    one.close()


def test_a_watch_repeats_the_survey_until_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", sleep)
    out = cli_answers.run(capsys, "fleet", "hosts", "local:a", "--watch", "7")
    assert out.count("a  free") == 3
    assert waits == [7, 7, 7]
    assert "\x1b" not in out, "a pipe is not cleared"


def test_a_card_that_torch_cannot_describe_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    cards = {"xpu": {labels.PROBLEM: "driver too old"}}
    monkeypatch.setattr(labels, "_cards", lambda: (cards, ""))
    described = labels.describe("one", said.append)
    assert (described["device"], described["card"]) == ("cpu_xpu", "unknown")
    assert said == ["torch can use xpu here and cannot describe it: driver too old: it joins as card=unknown"]


def test_a_failure_to_describe_all_cards_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(labels, "_cards", lambda: ({}, "status -11, Segmentation fault"))
    described = labels.describe("one", said.append)
    assert (described["device"], described["card"]) == ("cpu", "unknown")
    assert "torch cannot say which cards are here: status -11, Segmentation fault" in said[0]


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import sys; print('no such driver', file=sys.stderr); sys.exit(3)", "status 3, no such driver"),
        ("import time; time.sleep(60)", "no answer within 0.5 s"),
    ],
)
def test_the_report_says_why_cards_cannot_be_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {labels.sys.executable} -c "{script}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(labels.sys, "executable", str(program))
    monkeypatch.setattr(labels, "CARD_SECONDS", 0.5 if "sleep" in script else 60)
    assert labels._cards() == ({}, reason)


def test_one_card_that_cannot_be_described_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def describe(self) -> dict[str, str]:
            raise RuntimeError("the driver\nfell over")

    monkeypatch.setattr(labels.registry.devices, "get", lambda _: Broken())
    assert labels._description("xpu") == {"problem": "the driver fell over"}
