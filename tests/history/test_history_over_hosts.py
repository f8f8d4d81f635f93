"""Two softwares over all hosts that measured both: which runs are meant, the verdict of each case, and what is said."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from typing import TYPE_CHECKING, Any

import cli_answers
import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement

from ipexperf.dashboard import writing
from ipexperf.errors import HistoryError
from ipexperf.history import History, over_hosts, selectors
from ipexperf.history.database import reading

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ("arc1", "arc2", "arc3", "arc4", "arc5")
MODELS = ("resnet18", "resnet50", "bert_base")
OLD, NEW = "2.8.0+cpu", "2.9.0+cpu"


def measure(
    history: History,
    day: int,
    torch: str,
    slower: dict[str, float],
    *,
    hosts: tuple[str, ...] = HOSTS,
    machine_key: str = "arc",
    models: tuple[str, ...] = MODELS,
    launches: int = 4,
    shared: bool = False,
) -> None:
    """A fleet run: each host in a run of its own, slower by so much."""
    for host in hosts[:1] if shared else hosts:
        chance = random.Random(f"{day} {host}")  # noqa: S311 - noise, no secret
        environment = {
            **ENVIRONMENT,
            "machine_key": machine_key,
            "software": {"torch": torch, "ipex": "2.8.0+cpu"},
            "hardware": {"cpu": "Xeon", "host": host},
        }
        names = hosts if shared else (host,)
        meta: dict[str, Any] = {"fleet": {"run": f"fleet-{day}-{machine_key}", "hosts": {name: [] for name in names}}}
        uid = history.start_run(environment, {"started_at": f"2026-05-{day:02}T08:00:00Z", **meta})
        for model in models:
            steps = tuple(
                0.01 * math.exp(chance.gauss(0, 0.004)) * (1 + slower.get(host, slower.get("all", 0.0)))
                for _ in range(launches)
            )
            history.record(uid, make_measurement(make_case(model), steps=steps, environment=environment), OK)


def everywhere(folder: Path, slower: dict[str, float], **more: Any) -> Path:
    path = folder / "h.db"
    with History.open(path) as history:
        measure(history, 1, OLD, {}, **more)
        measure(history, 2, NEW, slower, **more)
    return path


def test_a_case_slower_on_all_hosts_regressed(tmp_path: Path) -> None:
    with History.open(everywhere(tmp_path, {"all": 0.10})) as history:
        compared = over_hosts.compare(history, "torch=2.8", "torch=2.9")
    assert {one.outcome for one in compared.cases} == {"regressed"}
    assert [one.model for one in compared.cases] == ["bert_base", "resnet18", "resnet50"]
    first = compared.cases[0]
    assert first.ratio == pytest.approx(1.10, abs=0.01)
    assert first.lo is not None
    assert first.hi is not None
    assert first.lo < first.ratio < first.hi
    assert [one.host for one in first.hosts] == list(HOSTS)
    assert compared.second.software == ("torch 2.9.0+cpu, IPEX 2.8.0+cpu, commit a1b2c3d4e5",)
    assert compared.notes == ()


def test_a_host_that_disagrees_is_named_and_left_out(tmp_path: Path) -> None:
    with History.open(everywhere(tmp_path, {"arc3": 0.40})) as history:
        compared = over_hosts.compare(history, "torch=2.8", "torch=2.9")
    assert {(one.outcome, one.odd) for one in compared.cases} == {("ok", ("arc3",))}
    assert compared.notes == ("arc3 disagrees with its equals in 3 of 3 cases: look at that machine",)
    assert [one.note for one in compared.cases[0].hosts] == ["", "", "odd", "", ""]


def test_hosts_of_another_kind_are_judged_apart(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.db") as history:
        for day, torch, slower in ((1, OLD, 0.0), (2, NEW, 0.15)):
            measure(history, day, torch, {"all": slower}, machine_key="arc")
            measure(history, day, torch, {}, machine_key="xeon", hosts=("x1", "x2", "x3"))
        compared = over_hosts.compare(history, "torch=2.8", "torch=2.9")
    outcomes = {(one.machine_key, one.outcome) for one in compared.cases}
    assert outcomes == {("arc", "regressed"), ("xeon", "ok")}
    assert compared.notes == ("hosts of 2 kinds: a ratio is over the hosts of one kind, because others may differ",)


def test_a_case_that_one_host_has_gets_no_verdict(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.db") as history:
        measure(history, 1, OLD, {})
        measure(history, 2, NEW, {}, models=("resnet18",))
        measure(history, 3, NEW, {}, hosts=("arc1",), models=("resnet50",))
        compared = over_hosts.compare(history, "torch=2.8", "torch=2.9")
    reasons = {one.model: (one.outcome, one.reason) for one in compared.cases}
    assert reasons["resnet18"][0] == "ok"
    missing = "the second did not measure it on arc2, arc3, arc4, arc5"
    assert reasons["resnet50"] == (None, f"only arc1 measured both: {missing}")
    missing = "the second did not measure it on arc1, arc2, arc3, arc4, 1 more"
    assert reasons["bert_base"] == (None, f"no host measured both: {missing}")
    assert compared.notes == ("2 of 3 cases have no verdict: fewer than 2 equal hosts measured both",)


def refused(path: Path, first: str = "torch=2.8", second: str = "torch=2.9") -> str:
    """Why two softwares cannot be compared over hosts."""
    with History.open(path) as history, pytest.raises(HistoryError) as error:
        over_hosts.compare(history, first, second)
    return str(error.value)


def test_a_single_launch_has_no_spread(tmp_path: Path) -> None:
    reason = refused(everywhere(tmp_path, {}, launches=1))
    assert reason.endswith(
        "In 3 of 3 cases, no host measured both: one launch has no spread on arc1, arc2, arc3, arc4, 1 more."
    )


def test_runs_that_hosts_shared_are_left_out(tmp_path: Path) -> None:
    path = everywhere(tmp_path, {}, shared=True)
    assert "hosts shared the runs (--perf-spread share), so that each case was on one alone" in refused(path)
    with History.open(path) as history:
        measure(history, 3, OLD, {}, models=("resnet18",))
        measure(history, 4, NEW, {}, models=("resnet18",))
        compared = over_hosts.compare(history, "torch=2.8", "torch=2.9")
    assert [one.model for one in compared.cases] == ["resnet18"]
    assert compared.notes == (
        "2 runs that several hosts shared are left out: each of their cases was on one host alone",
    )


def test_one_host_is_refused(tmp_path: Path) -> None:
    reason = refused(everywhere(tmp_path, {}, hosts=("arc1",)))
    assert reason == (
        "'torch=2.8' and 'torch=2.9' have no case that 2 equal hosts measured in both: only arc1 did. "
        "`ipexperf compare` without --hosts is for one host."
    )


def test_hosts_that_are_not_equal_are_refused(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.db") as history:
        measure(history, 1, OLD, {}, hosts=("arc1",))
        measure(history, 2, NEW, {}, hosts=("x1",), machine_key="xeon")
    assert refused(tmp_path / "h.db").endswith(" measured in both: arc1 measured one, x1 the other.")
    with History.open(tmp_path / "h.db") as history:
        measure(history, 3, NEW, {}, hosts=("arc1",))
        measure(history, 4, OLD, {}, hosts=("x1",), machine_key="xeon")
    assert refused(tmp_path / "h.db").endswith("In 3 of 6 cases, only arc1 measured both.")


def test_a_note_says_that_hosts_differ_more_than_is_assumed(tmp_path: Path) -> None:
    """Whether the software or the machines are the cause stays open."""
    slower = dict(zip(HOSTS, (-0.3, -0.1, 0.15, 0.5, 0.25), strict=True))
    with History.open(everywhere(tmp_path, slower)) as history:
        compared = over_hosts.compare(history, "torch=2.8", "torch=2.9")
    assert {one.outcome for one in compared.cases} == {"inconclusive"}
    assert all(one.disagree and one.assumed_spread > 0.1 for one in compared.cases)
    (note,) = compared.notes
    assert note.startswith("on arc the hosts differ by ")
    assert note.endswith(", more than the 2% that is assumed: the intervals are as wide as that needs")


def resolved(history: History, selector: str) -> list[tuple[str, str | None]]:
    with reading(history._engine, history._name) as connection:
        return [(one.started_at[8:10], one.host) for one in selectors.resolve_set(connection, selector)]


def test_a_selector_names_all_runs_of_a_fleet_run(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.db") as history:
        for day in (1, 2, 3):
            measure(history, day, OLD if day == 1 else NEW, {}, hosts=("arc1", "arc2"), models=("resnet18",))
        newest = {("03", "arc1"), ("03", "arc2")}
        assert set(resolved(history, "last")) == newest
        assert set(resolved(history, "fleet-3-arc")) == newest
        assert set(resolved(history, history.find_run("last").uid)) == newest
        assert set(resolved(history, "2026-05-03")) == newest
        assert set(resolved(history, "last~1")) == {("02", "arc1"), ("02", "arc2")}
        assert set(resolved(history, "main~2")) == {("01", "arc1"), ("01", "arc2")}
        assert len(resolved(history, "torch=2.9")) == 4
        assert len(resolved(history, "main")) == 6
        for selector, reason in (
            ("torch=2.7", "no run has torch=2.7: this history has 2.8.0.cpu, 2.9.0.cpu"),
            ("last~3", "no run matches 'last~3'"),
            ("2026-06-01", "no run matches '2026-06-01'"),
            ("fleet-", "'fleet-' is ambiguous: it begins fleet-1-arc, fleet-2-arc, fleet-3-arc"),
        ):
            with pytest.raises(HistoryError, match=reason):
                resolved(history, selector)
        history.start_run(ENVIRONMENT, {"started_at": "2999-01-01T00:00:00Z"})
        with pytest.raises(HistoryError, match=r"'last~1' is not clear: .* in the future"):
            resolved(history, "last~1")


def test_an_impossible_comparison_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ["--db", str(everywhere(tmp_path, {}))]
    refused = cli_answers.refused(capsys, "compare", "main", "last", "--hosts", *database)
    assert "'main' and 'last' both name the run" in refused
    metric = ("--metric", "throughput")
    refused = cli_answers.refused(capsys, "compare", "last~1", "last", "--hosts", *metric, *database)
    assert "over several hosts a time is judged, such as step_time: throughput is none" in refused


def test_the_command_prints_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "last~1", "last", "--hosts", "--db", str(everywhere(tmp_path, {"all": 0.10, "arc3": 0.5}))]
    out = cli_answers.run(capsys, *words)
    assert "first    last~1: 5 runs on arc1, arc2, arc3, arc4, arc5, 2026-05-01 08:00:00 UTC" in out
    assert "torch 2.9.0+cpu, IPEX 2.8.0+cpu, commit a1b2c3d4e5" in out
    assert "arc3 disagrees with its equals in 3 of 3 cases" in out
    (line,) = [line for line in out.splitlines() if line.startswith("  resnet18")]
    assert "regressed" in line
    assert "(odd)" in line
    document = json.loads(cli_answers.run(capsys, *words, "--json"))
    assert [one["outcome"] for one in document["cases"]] == ["regressed"] * 3
    assert document["cases"][0]["hosts"][2]["note"] == "odd"
    rows = list(csv.DictReader(io.StringIO(cli_answers.run(capsys, *words, "--csv"))))
    assert [row["outcome"] for row in rows] == ["regressed"] * 3


def test_the_report_has_the_newest_software_over_all_hosts(tmp_path: Path) -> None:
    with History.open(everywhere(tmp_path, {"all": 0.10})) as history:
        writing.write(history, tmp_path / "report")
    text = (tmp_path / "report" / "hosts.html").read_text()
    assert "The newest software, over all hosts" in text
    assert "torch 2.9.0+cpu, IPEX 2.8.0+cpu, commit a1b2c3d4e5, beside torch 2.8.0+cpu" in text
    assert text.count("<td>regressed</td>") == 3
