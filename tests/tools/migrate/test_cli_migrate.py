"""`ipexperf migrate` measures both stacks in the same rounds, and keeps what was measured if it is interrupted."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import cli_answers
import pytest
from fake_rounds import played

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces it
from ipexperf import cli
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from ipexperf.compare.arm import Arm

pytestmark = pytest.mark.process

MOVERS = Path(__file__).parents[2] / "fakes" / "movers.py"
SIDES = ("--from", "stack=old", "--to", "stack=new")
CELLS = ("--device", "fake", "--dtype", "fp32", "--mode", "spin,streamed,teach,whirl")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in a folder of its own, where the history is written."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def arguments(fake: str) -> list[str]:
    """The command for the model `tiny` from `old` to `new`."""
    return ["migrate", "tiny", f"--perf-load={fake},{MOVERS}", *CELLS, *SIDES]


def seconds(arm: Arm) -> float:
    """The step time: the new stack takes twice as long as the old one, but its mode `whirl` half as long."""
    return 0.5 if arm.case.mode == "whirl" else 2.0 if arm.case.stack == "new" else 1.0


def test_the_page_has_the_findings_and_the_advice(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the terminal, and in the files that the options name."""
    played(monkeypatch, seconds)
    markdown, html = tmp_path / "page.md", tmp_path / "page.html"
    assert cli.main([*arguments, f"--markdown={markdown}", f"--html={html}"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("tiny: from old to new\n")
    assert "- fp32 on old, spin: fp32 on new, whirl, is 2.00 (" in output
    assert "own comes with old: new has none" in output
    assert "  - model = old.optimise(model)\n" in output
    for text in (markdown.read_text(), html.read_text()):
        assert "own comes with old: new has none" in text


def test_the_page_is_printed_although_a_file_cannot_be_written(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played(monkeypatch, seconds)
    (tmp_path / "file").touch()
    assert cli.main([*arguments, f"--markdown={tmp_path / 'file' / 'page.md'}"]) == 2
    captured = capsys.readouterr()
    assert "own comes with old: new has none" in " ".join(captured.out.split())
    assert "page.md cannot be written: " in captured.err


def test_migrate_records_a_run_in_the_history(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`show` reads it like any other run."""
    played(monkeypatch, seconds)
    assert cli.main(arguments) == 0
    capsys.readouterr()
    document = json.loads(cli_answers.run(capsys, "show", "last", "--json"))
    assert {(case["case"]["mode"], case["case"]["stack"]) for case in document["cases"]} >= {
        ("spin", "old"),
        ("whirl", "new"),
    }
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        (status,) = connection.execute("SELECT status FROM run").fetchone()
        (count,) = connection.execute("SELECT count(*) FROM round").fetchone()
    assert (status, count) == ("finished", 9)


def test_the_json_document_has_the_findings_of_the_page(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, seconds)
    assert cli.main([*arguments, "--json", "--perf-without=record"]) == 0
    document = json.loads(capsys.readouterr().out)
    replacements = {row["case"]["id"].removeprefix("tiny-fake-fp32-"): row["replacement"] for row in document["rows"]}
    assert replacements == {
        "spin-old": "faster",
        "streamed-old": "faster",
        "teach-old": "slower",
        "teach-old+update:own": "none",
        "teach-old+update:quick": "slower",
    }
    spin = next(row for row in document["rows"] if row["case"]["id"] == "tiny-fake-fp32-spin-old")
    assert spin["best"] == "tiny-fake-fp32-whirl-new"
    ratios = {one["id"].removeprefix("tiny-fake-fp32-"): one["times_as_fast"] for one in spin["candidates"]}
    assert ratios.keys() == {"spin-new", "whirl-new", "whirl-new+searched:on"}
    assert ratios["whirl-new"]["ratio"] == pytest.approx(2.0, rel=0.01)
    assert [one["knob"] for one in document["settings"]] == ["packed"]
    assert document["run"] is None
    assert document["left_out"] == {"old cannot whirl": ["tiny-fake-fp32-whirl-old"]}


def test_an_arm_that_fails_is_a_row_and_the_others_go_on(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example if the user's file can be imported in only one of the two environments."""

    def fails(arm: Arm) -> float:
        if arm.case.stack == "new" and arm.case.mode == "teach":
            raise WorkerError("error", "no module named nets")
        return seconds(arm)

    played(monkeypatch, fails)
    assert cli.main(arguments) == 0
    output = capsys.readouterr().out
    assert "- fp32 on old, teach: not known: new: error: no module named nets\n" in output
    assert "- fp32 on old, spin: fp32 on new, whirl, is 2.00 (" in output


def test_if_nothing_can_be_compared_the_last_sentence_is_the_reason(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(arm: Arm) -> float:
        raise WorkerError("error", f"no module named nets in {arm.case.stack}")

    played(monkeypatch, fails)
    assert cli.main(arguments) == cli.USAGE_ERROR
    last_sentence = "ipexperf: nothing could be compared: old: error: no module named nets in old\n"
    assert capsys.readouterr().err.endswith(last_sentence)


def test_rows_that_a_spent_budget_did_not_reach_say_so(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most valuable rows are measured first."""
    rounds = played(monkeypatch, seconds)
    monkeypatch.setattr(Conductor, "spent", lambda _: len(rounds) > 0)
    assert cli.main([*arguments, "--json"]) == 0
    rows = {
        row["case"]["id"].removeprefix("tiny-fake-fp32-"): row for row in json.loads(capsys.readouterr().out)["rows"]
    }
    assert rows["spin-old"]["replacement"] == "faster"
    assert rows["teach-old"]["replacement"] == "unmeasured"
    assert "the budget (--perf-budget) was spent already" in rows["teach-old"]["why_not"]


def test_a_round_that_would_not_end_in_time_is_not_begun(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the whole command takes no longer than `--minutes`. Earlier rounds show how long a round takes."""
    rounds = played(monkeypatch, seconds)
    monkeypatch.setattr(Conductor, "left", lambda _: -1.0 if rounds else 1e3)
    assert cli.main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    reasons = {row["case"]["id"].removeprefix("tiny-fake-fp32-"): row["why_not"] for row in document["rows"]}
    assert reasons["spin-old"] == ""
    assert reasons["teach-old"].startswith("old: a round takes about ")
    assert len(rounds) == 1


def test_an_interruption_keeps_what_was_measured(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is printed, the run is recorded as interrupted, and the exit status is that of Ctrl-C."""

    def interrupted(arm: Arm) -> float:
        if arm.case.mode == "teach":
            raise KeyboardInterrupt
        return seconds(arm)

    played(monkeypatch, interrupted)
    assert cli.main(arguments) == cli.INTERRUPTED
    output = capsys.readouterr().out
    assert "- fp32 on old, spin: fp32 on new, whirl, is 2.00 (" in output
    assert "- fp32 on old, teach" in output.partition("\nNot measured\n")[2]
    assert ": old: it was interrupted\n" in output.partition("\nNot measured\n")[2]
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        assert connection.execute("SELECT status FROM run").fetchone() == ("interrupted",)


def test_each_side_has_its_variables_and_one_that_names_no_interpreter_runs_in_this_one(
    fake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old stack does not run in the interpreter of the new one."""
    other_python = tmp_path / "python"
    other_python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other_python.chmod(0o755)
    rounds = played(monkeypatch, seconds)
    sides = ("--from", "stack=old SIDE=a", "--to", f"stack=new SIDE=b python={other_python}")
    assert cli.main(["migrate", "tiny", f"--perf-load={fake},{MOVERS}", *CELLS, *sides]) == 0
    played_arms = [arm for arms in rounds for arm in arms]
    where = {(arm.case.stack, arm.conditions.python, arm.conditions.variables["SIDE"]) for arm in played_arms}
    assert where == {("old", sys.executable, "a"), ("new", str(other_python), "b")}
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("nothing", *SIDES), "MODEL: unknown model 'nothing': "),
        (("./nowhere.py:net", *SIDES), "'./nowhere.py:net': there is no file ./nowhere.py"),
        (("tiny", "--from", "stack=old", "--to", "stack=old"), "--from and --to: both are the stack old"),
        (("tiny", "--from", "stack=old dtype=bf16", "--to", "stack=new"), "--from 'stack=old dtype=bf16': a side is"),
        (("tiny", "--from", "nowhere", "--to", "stack=new"), "--from 'nowhere': 'nowhere' is no interpreter, no lock"),
        (("tiny", "--from", "stack=old", "--to", "shipped:nothing stack=new"), "--to: no lock 'shipped:nothing' comes"),
        (("tiny", "--from", "stack=old", "--to", "lock:nothing.txt stack=new"), "--to: there is no lock nothing.txt"),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence(
    fake: str, words: tuple[str, ...], refusal: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes before anything is measured or made, with exit code 2. Nothing is downloaded from a hub."""
    rounds = played(monkeypatch, seconds)
    assert cli.main(["migrate", words[0], f"--perf-load={fake},{MOVERS}", *CELLS, *words[1:]]) == cli.USAGE_ERROR
    output, errors = capsys.readouterr()
    assert errors.startswith(f"ipexperf: {refusal}")
    assert (output, errors.count("\n"), rounds) == ("", 1, [])
