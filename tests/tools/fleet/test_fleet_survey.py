"""The survey of a fleet: what each host does, how busy it was and what it keeps."""

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

from ipexperf.tools.fleet import command, host_files, local, survey
from ipexperf.tools.fleet.host_files import DAY, GroupSpan, Journal, JournalSummary, Snapshot, Status
from ipexperf.tools.fleet.hosts import Host

NOW = 1_800_000_000.0
GROUP = "resnet18 cpu infer 16x224"
MEASURING = Status("run1", "measuring", NOW - 200, GROUP, 2, 5, 4)


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


def told(views: Sequence[survey.HostView]) -> list[str]:
    return [line for view in views for line in survey.lines(view)]


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
    assert told(seen) == [
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
    first, *_, last = map(survey.row, seen)
    assert first["doing"]["group"] == GROUP
    assert (first["doing"]["round"], first["doing"]["rounds"], first["doing"]["queue"]) == (2, 5, 4)
    assert (first["doing"]["seconds"], first["busy"], first["room"]) == (200, 0.37, "a")
    assert last == {"host": "eight", "state": "gone", "reason": "it was killed"}
    (brief,) = map(survey.row, survey.make(Rack(one=seen_at(busy=1 / DAY))))
    assert brief["busy"] == pytest.approx(1 / DAY, rel=1e-3), "a second of a day"


def test_a_host_that_dies_during_the_survey_is_listed_once() -> None:
    rack = Rack(one=seen_at(), two="its node died", three=seen_at())
    rack.dead = {"two": "it was killed", "three": "it was killed after its answer", "four": "it was killed before"}
    seen = survey.make(rack)
    assert [(one.host.name, one.reason) for one in seen if one.state == "gone"] == list(rack.dead.items())
    assert [one.host.name for one in seen] == ["one", "two", "three", "four"]


def test_a_run_that_was_cut_off_is_named() -> None:
    snapshot = Snapshot(NOW, (JournalSummary("run1", False), JournalSummary("run2", True)), DAY, 0.0)
    (line,) = [line for line in told(survey.make(Rack(one=snapshot))) if "--perf-resume" in line]
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
    one = Journal(host_files.runs_of(host), "run1", "code")
    one.show(state="measuring", since=time.time() - 5, group=GROUP, round=2, rounds=5)
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
