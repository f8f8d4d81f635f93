"""Nights with planted causes: each is named once, none is invented, and a night that was cut off goes on."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from ipexperf.errors import UsageError
from ipexperf.report.rerun import Search
from ipexperf.tools.nightly import ledger as ledgers
from ipexperf.tools.nightly import night as nights
from ipexperf.tools.nightly import text
from ipexperf.tools.nightly.ledger import Finding, Ledger, Night

CASES = ("resnet50-bf16", "resnet50-fp32", "bert-bf16", "dlrm-fp32")
TORCH = ("torch: 2.8.0 -> 2.9.0",)
EDIT = ("nets.py:12 'x' -> 'y'",)


def failing(case: str, differs: tuple[str, ...], ratio: float = 1.3) -> Finding:
    searches = (Search("package or variable", "baseline:a"),) if differs else ()
    dossier = f"../dossiers/2026-11-01/{case}-0a1b2c3d/index.html"
    return Finding(case, f"{case} is slower", ratio, differs, ("one", "two"), dossier, searches)


class World:
    """A machine on which the causes of a script are planted. It is a night's tools, and may be cut off."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = "arc"
        self.cases: tuple[str, ...] = CASES
        self.doubtful: tuple[str, ...] = ()
        """Cases that do not fail, and of which nothing is known."""
        self.slow: dict[str, Finding] = {}
        self.refused = ""
        self.accepted: tuple[str, ...] = ()
        self.cut: str = ""
        """The step in which the machine reboots."""
        self.calls: list[str] = []
        self.answer, self.is_last = "package torch (2.8.0 -> 2.9.0): proven", True

    def _called(self, step: str) -> None:
        self.calls.append(step)
        if step == self.cut:
            self.cut = ""
            raise KeyboardInterrupt

    def measure(self, date: str) -> Night:
        self._called("measure")
        if self.refused:
            return Night(date, red=self.refused)
        found = tuple(self.slow[case] for case in self.cases if case in self.slow)
        well = tuple(case for case in self.cases if case not in {*self.slow, *self.doubtful})
        return Night(date, f"run-{date}", self.machine, self.cases, well, found)

    def accept(self, night: Night, cases: Sequence[str]) -> None:
        self.accepted = tuple(cases)
        self._called(f"accept {night.run}")

    def search(self, finding: Finding, search: Search, seconds: float) -> tuple[str, bool]:
        assert seconds > 0
        self._called(f"search {finding.case}")
        return self.answer, self.is_last

    def keep(self, ledger: Ledger) -> None:
        ledgers.write(ledger, self.folder)

    def night(self, date: str, seconds: float = 3600.0) -> tuple[Ledger, Night]:
        return nights.play(ledgers.read(self.folder), date, self, seconds, clock=lambda: 0.0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def plant(world: World, findings: Iterable[Finding]) -> None:
    world.slow = {finding.case: finding for finding in findings}


def test_fourteen_nights_name_each_cause_once_and_invent_none(world: World) -> None:
    """A new torch, an edit, a case that was left out, a night without power, another machine, and recoveries."""
    titles = []
    script: dict[int, tuple[Finding, ...]] = {
        4: (failing("resnet50-bf16", TORCH), failing("bert-bf16", TORCH, 1.5)),
        8: (failing("dlrm-fp32", EDIT),),
    }
    ended = {4: range(4, 7), 8: range(8, 11)}
    for day in range(1, 15):
        if day == 9:
            continue  # no power
        world.machine = "arc" if day < 12 else "battlemage"
        world.cases = tuple(case for case in CASES if not (day == 13 and case == "resnet50-fp32"))
        plant(world, [finding for begin, found in script.items() if day in ended[begin] for finding in found])
        ledger, night = world.night(f"2026-11-{day:02}")
        titles.append(text.summary(ledger, night))
    assert [(issue.since, issue.before, issue.last, issue.closed) for issue in ledger.issues] == [
        ("2026-11-04", "2026-11-03", "2026-11-06", "2026-11-07"),
        ("2026-11-08", "2026-11-07", "2026-11-10", "2026-11-11"),
    ]
    assert [text.title(issue) for issue in ledger.issues] == ["bert-bf16 and 1 more: +50.0 %", "dlrm-fp32: +30.0 %"]
    assert [call for call in world.calls if call.startswith("search")] == ["search bert-bf16", "search dlrm-fp32"]
    assert titles[3] == "2 of 4 cases passed, 1 new regression"
    assert titles[4] == "2 of 4 cases passed, 1 still open"
    assert titles[6] == "4 of 4 cases passed"
    assert titles[11] == "3 of 3 cases passed, 1 not measured that were before"
    assert ledger.missed(ledger.nights[-2]) == {"resnet50-fp32": "2026-11-12"}
    assert "The machine is another one than in the night of 2026-11-11: arc -> battlemage." in text.night(
        ledger, next(one for one in ledger.nights if one.date == "2026-11-12")
    )


def test_two_causes_of_one_night_are_two_issues(world: World) -> None:
    world.night("2026-11-01")
    plant(world, [failing("resnet50-bf16", TORCH), failing("dlrm-fp32", EDIT)])
    ledger, _ = world.night("2026-11-02")
    assert [issue.cases for issue in ledger.issues] == [{"resnet50-bf16"}, {"dlrm-fp32"}]


@pytest.mark.parametrize("step", ["measure", "accept run-2026-11-02", "search bert-bf16"])
def test_a_night_that_was_cut_off_goes_on_where_it_stopped(world: World, step: str) -> None:
    world.night("2026-11-01")
    plant(world, [failing("bert-bf16", TORCH)])
    world.calls, world.cut = [], step
    with pytest.raises(KeyboardInterrupt):
        world.night("2026-11-02")
    ledger, night = world.night("2026-11-02")
    steps = ["measure", "accept run-2026-11-02", "search bert-bf16"]
    place = steps.index(step)
    assert world.calls == [*steps[: place + 1], *steps[place:]]
    assert (night.done, ledger.issues[0].culprit) == (ledgers.STEPS, world.answer)


@pytest.mark.parametrize(("answer", "told"), [("", "not searched yet"), ("it failed", "it failed")])
def test_a_search_without_an_answer_is_begun_again_in_the_next_night(world: World, answer: str, told: str) -> None:
    """It had no time, or it failed: a disk was full, an index did not answer."""
    plant(world, [failing("bert-bf16", TORCH)])
    world.answer, world.is_last = answer, False
    ledger, _ = world.night("2026-11-01")
    assert f"**Culprit**: {told}" in text.issue(ledger.issues[0])
    world.answer, world.is_last = "package torch", True
    ledger, _ = world.night("2026-11-02")
    assert "**Culprit**: package torch" in text.issue(ledger.issues[0])
    assert len(ledger.issues) == 1
    world.calls = []
    world.night("2026-11-03")
    assert not [call for call in world.calls if call.startswith("search")]


def test_without_minutes_nothing_is_searched(world: World) -> None:
    plant(world, [failing("bert-bf16", TORCH)])
    world.night("2026-11-01", seconds=0.0)
    assert not [call for call in world.calls if call.startswith("search")]


def test_what_fails_or_has_an_open_issue_is_not_accepted(world: World) -> None:
    """Also not in a night in which nothing is known of it, such as the first on another machine: it stays open."""
    world.night("2026-11-01")
    plant(world, [failing("bert-bf16", TORCH)])
    world.night("2026-11-02")
    assert world.accepted == ("resnet50-bf16", "resnet50-fp32", "dlrm-fp32")
    plant(world, [])
    world.machine, world.doubtful = "battlemage", CASES
    ledger, _ = world.night("2026-11-03")
    assert world.accepted == ("resnet50-bf16", "resnet50-fp32", "dlrm-fp32")
    assert [issue.cases for issue in ledger.open] == [{"bert-bf16"}]


def test_a_run_that_fails_as_a_whole_is_not_accepted() -> None:
    night = dataclasses.replace(Night("2026-11-01", "run", "arc", CASES, CASES), red="half of the cases moved")
    assert nights.acceptable(Ledger(), night) == []


def test_cases_of_an_issue_recover_one_by_one(world: World) -> None:
    world.night("2026-11-01")
    plant(world, [failing("bert-bf16", TORCH, 1.5), failing("dlrm-fp32", TORCH, 1.2)])
    world.night("2026-11-02")
    plant(world, [failing("dlrm-fp32", TORCH, 1.2)])
    ledger, _ = world.night("2026-11-03")
    assert text.title(ledger.issues[0]) == "dlrm-fp32: +20.0 %"
    assert "- `bert-bf16`: well again in the night of 2026-11-03" in text.issue(ledger.issues[0])
    assert world.accepted == ("resnet50-bf16", "resnet50-fp32", "bert-bf16")
    plant(world, [])
    ledger, _ = world.night("2026-11-04")
    assert "**Closed** in the night of 2026-11-04." in text.issue(ledger.issues[0])


def test_a_case_that_is_gone_for_a_week_keeps_no_issue_open(world: World) -> None:
    plant(world, [failing("bert-bf16", TORCH)])
    world.night("2026-11-01")
    world.cases = ("resnet50-bf16",)
    for day in range(2, 9):
        ledger, _ = world.night(f"2026-11-{day:02}")
        assert bool(ledger.open) == (day < 8)
    assert ledger.issues[0].ended == {"bert-bf16": "not measured for 7 nights"}


def test_cases_without_known_differences_are_one_issue_only_for_one_reason(world: World) -> None:
    plant(world, [failing("bert-bf16", ()), failing("dlrm-fp32", ())])
    ledger, _ = world.night("2026-11-01")
    assert len(ledger.issues) == 2


def test_without_a_dossier_the_search_waits_for_one(world: World) -> None:
    late = dataclasses.replace(failing("bert-bf16", TORCH), dossier="", searches=())
    plant(world, [late])
    ledger, _ = world.night("2026-11-01")
    assert not ledger.issues[0].searched
    plant(world, [failing("bert-bf16", TORCH)])
    ledger, _ = world.night("2026-11-02")
    assert ledger.issues[0].culprit == world.answer


def test_a_regression_that_comes_back_is_another_issue(world: World) -> None:
    for day, slow in ((1, True), (2, False), (3, True)):
        plant(world, [failing("bert-bf16", TORCH)] if slow else [])
        ledger, _ = world.night(f"2026-11-{day:02}")
    assert [(issue.number, issue.since, issue.closed) for issue in ledger.issues] == [
        (1, "2026-11-01", "2026-11-02"),
        (2, "2026-11-03", ""),
    ]


def test_a_night_that_measured_nothing_says_so_and_accepts_nothing(world: World) -> None:
    world.night("2026-11-01")
    world.calls, world.refused = [], "pytest ended with exit status 4 and recorded no run"
    ledger, night = world.night("2026-11-02")
    assert world.calls == ["measure"]
    assert text.summary(ledger, night).startswith(f"{world.refused}, 0 of 0 cases")
    assert len(ledger.missed(night)) == len(CASES)


def test_a_second_run_of_a_day_is_a_night_of_its_own(world: World) -> None:
    world.night("2026-11-01")
    _, second = world.night("2026-11-01")
    _, third = world.night("2026-11-01")
    assert (second.date, third.date) == ("2026-11-01-02", "2026-11-01-03")


def test_names_become_no_markup() -> None:
    finding = dataclasses.replace(failing("net", EDIT), case="a`b", reason="<script>", told=("one", "*two*"))
    issue = ledgers.Issue(1, "2026-11-01", "", (finding,), "2026-11-01")
    told = text.issue(issue)
    assert "<script>" not in told
    assert "## `a'b`" in told
    assert r"- \*two\*" in told


def test_a_ledger_of_another_version_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ledgers.NAME).write_text('{"version": 9}')
    with pytest.raises(UsageError, match=re.escape(ledgers.NAME)):
        ledgers.read(tmp_path)
