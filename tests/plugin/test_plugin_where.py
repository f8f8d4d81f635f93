"""The commands that a run prints find its history and its baselines, wherever these are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_rounds import played

from ipexperf.errors import WorkerError
from ipexperf.history import History
from ipexperf.plan.options import Options
from ipexperf.run import Run

if TYPE_CHECKING:
    from ipexperf.compare.arm import Arm

pytestmark = pytest.mark.process


def chosen(fake: str, **more: Any) -> Options:
    """Options of a run of one case."""
    axes: dict[str, Any] = {"model": ("tiny",), "device": ("fake",), "mode": ("spin",), "stack": ("plain",)}
    return Options(**{**axes, "dtype": ("fp32",), "launches": 2, "without": ("roof",), "load": (fake,), **more})


def told(fake: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, record: bool = True, **where: Any) -> list[str]:
    """Each line that a run of one case with a regression prints, of a failed test and at the end."""
    monkeypatch.chdir(folder)
    run = Run(chosen(fake, without=("roof",) if record else ("roof", "record"), **where), folder, lambda _: None)
    played(monkeypatch, lambda _: 0.01)
    run.open(())
    found = run.measure(run.plan.cases[0])
    assert found is not None
    block = run.block(found[0], dataclasses.replace(found[1], outcome="regressed"), ["suites/"])
    lines = [*block.splitlines(), *run.summary({})]
    run.finish("finished")
    return [line.strip() for line in lines]


def test_a_run_in_its_usual_places_says_nothing_of_them(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands look there by themselves."""
    commands = [line for line in told(fake, tmp_path, monkeypatch) if "ipexperf " in line]
    assert any("baseline accept" in line for line in commands)
    assert not any("--db" in line or "--baselines" in line for line in commands)


def test_what_is_elsewhere_is_named_so_that_a_shell_takes_it(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the block of the failed test and at the end."""
    lines = told(fake, tmp_path, monkeypatch, db="my history.db", baselines=Path("kept here"))
    where = "--db 'my history.db' --baselines 'kept here'"
    [block] = [line for line in lines if line.startswith("accept  ")]
    assert block.endswith(f'--case tiny-fake-fp32-spin-plain {where} --regression-ok --reason "WHY"')
    assert any(line.startswith(f'ipexperf baseline accept last {where} --reason "..."') for line in lines)
    assert any(line.startswith("ipexperf show last --db 'my history.db'  ") for line in lines)


def test_what_is_on_no_record_cannot_be_accepted(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last run that there is would be another."""
    lines = told(fake, tmp_path, monkeypatch, record=False)
    assert any(line.startswith("reproduce  ") for line in lines)
    assert not any("baseline accept" in line for line in lines)


@pytest.mark.parametrize(
    ("launches", "fails", "offered"),
    [(2, False, ["show", "trend", "baseline"]), (1, False, ["show", "trend"]), (2, True, ["show"])],
)
def test_a_run_without_numbers_offers_no_command_that_needs_them(
    launches: int, offered: list[str], fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """A failed case is not accepted, nor is one with a single launch: these commands would be refused."""
    monkeypatch.chdir(tmp_path)
    run = Run(chosen(fake, launches=launches), tmp_path, lambda _: None)

    def seconds(_: Arm) -> float:
        if fails:
            raise WorkerError("crashed", "it fell over")
        return 0.01

    played(monkeypatch, seconds)
    run.open(())
    run.measure(run.plan.cases[0])
    run.finish("interrupted")
    lines = [line.strip() for line in run.summary({})]
    after = lines[lines.index("where to look next:") + 1 :]
    assert [line.split()[1] for line in after if line.startswith("ipexperf ")][: len(offered)] == offered
    assert any("baseline accept" in line for line in after) is ("baseline" in offered)
    assert any("ipexperf trend" in line for line in after) is ("trend" in offered)


@pytest.mark.parametrize(("begun", "last"), [("2020-01-01T00:00:00Z", True), ("2099-01-01T00:00:00Z", False)])
def test_a_run_that_is_not_the_last_one_is_named_by_its_uid(
    begun: str, fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, last: bool
) -> None:
    """The clock of this host, or of another one that writes the same history, is wrong."""
    monkeypatch.chdir(tmp_path)
    with History.open("ipexperf.db") as history:
        history.start_run({"machine_key": "m"}, {"started_at": begun})
    run = Run(chosen(fake), tmp_path, lambda _: None)
    played(monkeypatch, lambda _: 0.01)
    run.open(())
    run.measure(run.plan.cases[0])
    run.finish("finished")
    assert run.uid is not None
    name = "last" if last else run.uid[:18]
    lines = [line.strip() for line in run.summary({})]
    assert any(line.startswith(f"ipexperf show {name} ") for line in lines)
    assert any(line.startswith(f"ipexperf baseline accept {name} ") for line in lines)
