"""`ipexperf evidence` runs the cases that this machine can prove, and writes and checks files of the results."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from fake_rounds import played

from ipexperf import cli
from ipexperf.bench import loading, registry
from ipexperf.dtypes import DTYPES
from ipexperf.errors import HistoryError, WorkerError
from ipexperf.recorder import Recorder
from ipexperf.result import Check
from ipexperf.tools.evidence import command as evidence
from ipexperf.tools.evidence import records

if TYPE_CHECKING:
    from ipexperf.compare.arm import Arm

pytestmark = pytest.mark.process

FAKES = Path(__file__).parents[1] / "fakes"
HARDWARE = {"cpu": "Some CPU", "isa": ["avx2"], "cores": 2, "memory": 2**34, "accelerator": None, "host": "box7"}
WHERE = {
    "machine_key": "fake-2c",
    "hardware": HARDWARE,
    "software": {"torch": "2.8.0", "executable": "/home/ann/python"},
    "variables": {"OMP_NUM_THREADS": "2"},
}
HELD = Check("dtype", True, "as said", "as said")
NAME = "some-avx2-fake.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, registries: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, and the fakes as the only modes, models and stacks."""
    monkeypatch.chdir(tmp_path)
    for leaves in (registry.modes, registry.models, registry.stacks):
        leaves._items.clear()
    loading.load([str(FAKES / "fake.py"), str(FAKES / "movers.py")])
    for name in registry.models.names():
        if name != "tiny":
            del registry.models._items[name]
    monkeypatch.delitem(DTYPES, "int8")  # a worker would quantise its networks
    for room in (evidence, records):  # the networks that fail would run on the fake device too
        monkeypatch.setattr(room, "NETWORKS", FAKES / "movers.py")
    return tmp_path


def a_second(arm: Arm) -> float:
    """The step time of every arm."""
    del arm
    return 1.0


def run(*options: str) -> int:
    """Run the command. Return its exit status."""
    return cli.main(["evidence", "--device", "fake", "--into", "out", *options])


def test_the_results_are_written_to_a_file_named_after_the_machine(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file can be read again and names no host and no folder. The history has the run."""
    played(monkeypatch, a_second, HELD, environment=WHERE)
    assert run() == 0
    path = folder / "out" / NAME
    whole = records.read(path)
    held = {str(record.row) for record in whole.rows if record.state == "held"}
    assert {"spin fp32 plain", "whirl bf16 new", "packed=off on old", "update=own on old", "model tiny"} <= held
    assert {record.state for record in whole.rows} == {"held", "impossible"}
    output = capsys.readouterr().out
    assert f"{len(held)} rows held, 0 did not, 0 were not reached, " in output
    assert "cannot be shown here: new cannot" not in output
    assert output.endswith(f"written to out/{NAME}\n")
    assert not {"box7", "/home/ann", str(folder)} & set(path.read_text().split('"'))
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        assert connection.execute("SELECT status, count(*) FROM run").fetchone() == ("finished", 1)
        (count,) = connection.execute("SELECT count(*) FROM measurement").fetchone()
    assert count == len(whole.cases)


def test_a_case_that_fails_is_reported_and_run_again_with_fewer_settings(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the case that failed with its log, and the exit status is WRONG."""

    def fails(arm: Arm) -> float:
        if dict(arm.case.knobs).get("update") == "own":
            raise WorkerError("error", "no such update", log="the last\nwords")
        return 1.0

    played(monkeypatch, fails, HELD, environment=WHERE)
    assert run() == evidence.WRONG
    assert "did not hold: error: no such update\n  update=own on old\n" in capsys.readouterr().out
    whole = records.read(folder / "out" / NAME)
    [bad] = [record for record in whole.cases if not record.sound]
    assert (bad.outcome, bad.reason, bad.log) == ("error", "no such update", ("the last", "words"))
    assert bad.case.knobs == (("update", "own"),)
    assert any(dataclasses.replace(bad.case, knobs=()) == record.case for record in whole.cases if record.sound)


def interrupted_after_six(monkeypatch: pytest.MonkeyPatch) -> list[Arm]:
    """Run until Ctrl-C in the sixth case. Return the arms that were played, to which later runs add theirs."""
    arms_played: list[Arm] = []

    def stops(arm: Arm) -> float:
        arms_played.append(arm)
        if len(arms_played) == 6:
            raise KeyboardInterrupt
        return 1.0

    played(monkeypatch, stops, HELD, environment=WHERE)
    monkeypatch.setattr("ipexperf.bench.process.environment.hardware", lambda: HARDWARE)
    assert run() == cli.INTERRUPTED
    return arms_played


def test_an_interruption_keeps_what_was_measured(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file and the history have it. The other rows are reported as not reached."""
    interrupted_after_six(monkeypatch)
    assert "not reached: it was interrupted before" in capsys.readouterr().out
    states = [record.state for record in records.read(folder / "out" / NAME).rows]
    assert {"held", "unreached"} <= set(states)
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        assert connection.execute("SELECT status FROM run").fetchone() == ("interrupted",)


def test_a_history_that_fails_loses_nothing_that_was_measured(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has it, and the error is printed."""
    written = []

    def fails(*arguments: object) -> None:
        written.append(arguments)
        if len(written) > 2:
            raise HistoryError("the disk is full")

    played(monkeypatch, a_second, HELD, environment=WHERE)
    monkeypatch.setattr(Recorder, "_write_round", fails)
    assert run() == cli.USAGE_ERROR
    assert "the disk is full" in capsys.readouterr().err
    whole = records.read(folder / "out" / NAME)
    assert len(whole.cases) > 4
    assert "the run ended before: the disk is full" in {record.why for record in whole.rows}


def test_no_case_begins_that_would_end_too_late(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case is expected to take as long as those before it."""
    clock = [0.0]

    def slow(arm: Arm) -> float:
        clock[0] += 30.0
        return 1.0

    monkeypatch.setattr("ipexperf.tools.evidence.experiment.time", SimpleNamespace(monotonic=lambda: clock[0]))
    played(monkeypatch, slow, HELD, environment=WHERE)
    assert run("--minutes", "2") == 0
    assert "not reached: the 2 minutes were over before" in capsys.readouterr().out
    assert len(records.read(folder / "out" / NAME).cases) == 4


def test_a_second_run_adds_what_the_first_did_not_reach(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs no case of a row that holds. It is refused if there is no file, and if the file lacks nothing."""
    assert run("--add") == cli.USAGE_ERROR
    assert "--add: out has no file of this machine and fake: leave it out" in capsys.readouterr().err
    arms_played = interrupted_after_six(monkeypatch)
    before = records.read(folder / "out" / NAME)
    assert run("--add") == 0
    whole = records.read(folder / "out" / NAME)
    assert {record.state for record in whole.rows} == {"held", "impossible"}
    assert {record.case for record in before.cases} < {record.case for record in whole.cases}
    added_cases = [arm.case for arm in arms_played[6:]]
    assert not {record.case for record in before.cases} & set(added_cases)
    assert whole.made["minutes"] == 40
    assert run("--add") == cli.USAGE_ERROR
    assert "fake can show nothing more here" in capsys.readouterr().err


def test_results_of_other_software_go_to_a_file_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file does not change."""
    interrupted_after_six(monkeypatch)
    before = (folder / "out" / NAME).read_text()
    played(monkeypatch, a_second, HELD, environment={**WHERE, "software": {"torch": "2.9.0"}})
    assert run("--add") == 0
    assert (folder / "out" / NAME).read_text() == before
    assert records.read(folder / "out" / "other-software" / NAME).software["torch"] == "2.9.0"


def test_the_plan_lists_cases_and_what_cannot_be_shown(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = played(monkeypatch, a_second, environment=WHERE)
    assert run("--plan") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "tiny-fake-fp32-whirl-new+searched:on" in lines
    assert "cannot show  whirl fp32 old: old cannot whirl" in lines
    assert rounds == []
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--device", "fake,cpu"), "--device: a file is of one device: choose one, and run it again for others"),
        (("--device", "toaster"), "--device: unknown device 'toaster'"),
        (("--device", "xpu"), "--device xpu cannot run here: "),
        (("--pages",), "--pages: there is no docs/reference/features.md here: run it in the root of a checkout"),
        (("--check",), "docs/evidence has no file of evidence: ipexperf evidence writes one"),
        (("--check", "none.json"), "none.json cannot be read: No such file or directory"),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evidence", *words]) == cli.USAGE_ERROR
    err = capsys.readouterr().err
    assert sentence in err
    assert "Traceback" not in err


def test_a_variable_that_hides_instructions_of_the_cpu_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert run() == cli.USAGE_ERROR
    assert "ONEDNN_MAX_CPU_ISA=AVX2: evidence is of all that a CPU can do" in capsys.readouterr().err


def test_every_file_is_checked_and_each_wrong_one_has_its_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, a_second, HELD, environment=WHERE)
    assert run() == 0
    assert cli.main(["evidence", "--check", "--into", "out"]) == 0
    assert f"out/{NAME}: Some, AVX2 (fake): " in capsys.readouterr().out
    whole = json.loads((folder / "out" / NAME).read_text())
    (folder / "out" / "a.json").write_text("{")
    (folder / "out" / "b.json").write_text(json.dumps({**whole, "device": "cpu"}))
    assert cli.main(["evidence", "--check", "--into", "out"]) == cli.USAGE_ERROR
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[2].split(":")[0].strip() for line in lines] == ["out/a.json", "out/b.json"]


def test_the_pages_are_filled_from_the_files(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, a_second, HELD, environment=WHERE)
    assert run() == 0
    pages = folder / "docs" / "reference"
    pages.mkdir(parents=True)
    for name in ("features.md", "devices.md"):
        (pages / name).write_text("# Title\n\n<!-- evidence: modes -->\n<!-- end of evidence -->\n")
    for action in ("written", "as it was"):
        capsys.readouterr()
        assert run("--pages") == 0
        assert capsys.readouterr().out == "".join(
            f"docs/reference/{page}.md: {action}\n" for page in ("features", "devices")
        )
    assert "| `whirl` | fp32 | new |" in (pages / "features.md").read_text()
