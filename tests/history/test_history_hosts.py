"""Equal machines in one history, and what `ipexperf hosts` says of them."""

from __future__ import annotations

import json
import math
import random
import re
from typing import TYPE_CHECKING, Any

import cli_answers
import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement

from ipexperf.dashboard import writing
from ipexperf.history import History, host_times

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ("arc1", "arc2", "arc3", "arc4", "arc5")


def rack(folder: Path, *, slow: str = "arc3", since: int = 8, nights: int = 16, shared: bool = False) -> Path:
    """A fleet run each night on five hosts of one kind, one of which becomes 5 % slower."""
    path = folder / "h.db"
    chance = random.Random(1)  # noqa: S311 - noise, no secret
    with History.open(path) as history:
        for night in range(nights):
            at = f"2026-05-{night + 1:02}T08:00:00Z"
            for host in HOSTS:
                environment = {**ENVIRONMENT, "hardware": {"cpu": "Xeon", "host": "" if shared else host}}
                names = HOSTS if shared else (host,)
                meta: dict[str, Any] = {"fleet": {"run": f"f{night}", "hosts": {name: [] for name in names}}}
                uid = history.start_run(environment, {"started_at": at, **meta})
                for model in ("resnet18", "resnet50", "bert_base"):
                    late = 0.05 if host == slow and night >= since else 0.0
                    step = 0.01 * math.exp(late + chance.gauss(0, 0.004))
                    measured = make_measurement(make_case(model), steps=(step, step, step), environment=environment)
                    history.record(uid, measured, OK)
    return path


def test_the_slow_host_is_named_with_the_night_since_when(tmp_path: Path) -> None:
    with History.open(rack(tmp_path)) as history:
        (kind,) = host_times.kinds(history)
    assert kind.machine_key == ENVIRONMENT["machine_key"]
    first, *others = kind.hosts
    assert (first.host, first.state, first.equals, first.cases) == ("arc3", "slower", 4, 3)
    assert first.since.startswith("2026-05-09")
    assert first.ratio == pytest.approx(1.05, abs=0.01)
    assert {one.state for one in others} == {"usual"}
    assert len(first.course) == 16


def test_the_report_has_a_page_of_hosts(tmp_path: Path) -> None:
    with History.open(rack(tmp_path)) as history:
        writing.write(history, tmp_path / "report")
    text = (tmp_path / "report" / "hosts.html").read_text()
    assert "slower than its 4 equals since 2026-05-09: the machine, not the software." in text
    assert text.count("<polyline") == 5
    assert 'href="hosts.html" aria-current="page">Hosts</a>' in text
    assert 'href="hosts.html">Hosts</a>' in (tmp_path / "report" / "index.html").read_text()


def test_hosts_that_shared_a_run_are_not_told_apart(tmp_path: Path) -> None:
    with History.open(rack(tmp_path, nights=2, shared=True)) as history:
        assert host_times.kinds(history) == []


def test_containers_whose_names_last_a_day_are_no_hosts(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.db") as history:
        for day in range(1, 7):
            for container in ("x", "y"):
                environment = {**ENVIRONMENT, "hardware": {"cpu": "Xeon", "host": f"{container}{day}"}}
                uid = history.start_run(environment, {"started_at": f"2026-05-{day:02}T08:00:00Z"})
                history.record(uid, make_measurement(environment=environment), OK)
        assert host_times.kinds(history) == []


def test_hosts_without_a_fleet_are_compared_by_day_and_software(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.db") as history:
        for day in range(1, 5):
            for host, step in (("one", 0.01), ("two", 0.012)):
                environment = {**ENVIRONMENT, "hardware": {"cpu": "Xeon", "host": host}}
                uid = history.start_run(environment, {"started_at": f"2026-05-{day:02}T08:00:00Z"})
                history.record(uid, make_measurement(steps=(step, step, step), environment=environment), OK)
        (kind,) = host_times.kinds(history)
    assert {one.state for one in kind.hosts} == {"few"}
    assert sorted(one.ratio for one in kind.hosts) == pytest.approx([1 / 1.2, 1.2])


def test_the_command_says_it_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(rack(tmp_path))
    answer = cli_answers.run(capsys, "hosts", "--db", path, "--since", "2026-05-01")
    sentence = r"arc3 is \d\.\d % slower than its 4 equals since 2026-05-09: the machine, not the software\."
    assert re.search(sentence, answer), answer
    rows = json.loads(cli_answers.run(capsys, "hosts", "--db", path, "--since", "2026-05-01", "--json"))
    assert [row["state"] for row in rows] == ["slower", "usual", "usual", "usual", "usual"]
    assert "No two hosts of one kind" in cli_answers.run(capsys, "hosts", "--db", path)
