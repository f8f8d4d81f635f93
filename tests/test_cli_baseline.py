"""`ipexperf baseline accept` writes the file and the rows of the history, or neither."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from history_records import ENVIRONMENT, make_case, make_launch, make_measurement

from ipexperf.cli import main
from ipexperf.history import History
from ipexperf.live_baseline import OtherArms, Wanted
from ipexperf.lock import Lock
from ipexperf.plan.options import Options
from ipexperf.running.baselines import RunBaselines
from ipexperf.verdict import PairsEvidence, Verdict

KEY = ENVIRONMENT["machine_key"]
MODELS = ("resnet50", "vgg16")
ID = "resnet50-cpu-bf16-infer-ipex"
NO_ROWS = "CREATE TRIGGER no_rows BEFORE INSERT ON baseline BEGIN SELECT RAISE(ABORT, 'the disk is full'); END;"
NO_COMMIT = """
CREATE TABLE doubt (run INTEGER REFERENCES run (id) DEFERRABLE INITIALLY DEFERRED);
CREATE TRIGGER no_rows AFTER INSERT ON baseline BEGIN INSERT INTO doubt VALUES (-1); END;
"""
"""What a full disk may do: refuse the row, or only the commit."""


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A history of three runs, in the folder that the test works in."""
    monkeypatch.chdir(tmp_path)
    with History.open("ipexperf.db") as history:
        uids = [history.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T10:00:00Z"}) for day in (1, 2, 3)]
        for uid in uids:
            for model in MODELS:
                measured = make_measurement(make_case(model), (0.0125, 0.0125))
                history.record(uid, measured, Verdict("no_baseline", "nothing was accepted"))
            never = make_measurement(make_case("alexnet"), (), cut="the budget was spent already")
            history.record(uid, never, Verdict("inconclusive", never.cut))
    return uids


@pytest.fixture
def path(tmp_path):
    return tmp_path / "baselines" / f"{KEY}.json"


def accept(uid, *arguments):
    named = [word for model in MODELS for word in ("--case", f"{model}-cpu-bf16-infer-ipex")]
    return main(["baseline", "accept", uid, "--reason", "first light", "--by", "ada", *named, *arguments])


def query(sql):
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        return connection.execute(sql).fetchall()


def live():
    """Model and run of every row that is not superseded."""
    return query(
        "SELECT c.model, r.uid FROM baseline b JOIN run r ON r.id = b.run_id JOIN series s ON s.id = b.series_id "
        'JOIN "case" c ON c.id = s.case_id WHERE b.superseded_by IS NULL ORDER BY b.id'
    )


def sessions(path):
    """Model and run of every session in the file."""
    document = json.loads(path.read_text())
    return [(case["case"]["model"], session["run"]) for case in document["cases"] for session in case["sessions"]]


def test_the_history_has_a_row_for_each_session_of_the_baseline(runs, path):
    """After two sessions were appended, and after a third one replaced them."""
    for uid in runs[:2]:
        assert accept(uid) == 0
    assert sorted(live()) == sorted(sessions(path))
    assert len(live()) == 4
    assert accept(runs[2], "--replace") == 0
    assert sorted(live()) == sorted(sessions(path)) == sorted((model, runs[2]) for model in MODELS)
    assert query("SELECT count(*) FROM baseline") == [(6,)]
    facts = "SELECT DISTINCT accepted_by, reason, s.metric FROM baseline b JOIN series s ON s.id = b.series_id"
    assert query(facts) == [("ada", "first light", "step_time")]


def test_the_numbers_of_a_busy_machine_are_accepted_on_purpose_alone(runs, capsys):
    """Those of pairs too, which say how two arms compare. What is accepted is said beside what it was."""
    assert accept(runs[0]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"accepted  {ID}  12.5 ms a step, its first"
    assert told[-1] == f"baselines/{KEY}.json: review it with `git add -N` and `git diff`, and commit it"
    launches = tuple(make_launch(number, 0.04, contended="steal 12 %" * (number < 2)) for number in range(4))
    with History.open("ipexperf.db") as history:
        uid = history.start_run(ENVIRONMENT, {"started_at": "2026-05-04T10:00:00Z"})
        for model in MODELS:
            slow = make_measurement(make_case(model), launches=launches)
            history.record(uid, slow, Verdict("inconclusive", "too few pairs", evidence=PairsEvidence("baseline:a")))
    assert accept(uid) == 1
    assert f"refused   {ID}: it was measured on a busy machine (steal 12 %): " in capsys.readouterr().out
    assert accept(uid, "--contended-ok") == 1
    assert accept(uid, "--contended-ok", "--regression-ok") == 0
    assert f"accepted  {ID}  12.5 -> 40.0 ms a step (3.2 times)" in capsys.readouterr().out


def test_a_refused_case_leaves_no_row(runs, path, capsys):
    """Such as a run that is in the file already, and a case that was never launched."""
    assert accept(runs[0], "--case", "alexnet-cpu-bf16-infer-ipex") == 1
    assert "refused   alexnet-cpu-bf16-infer-ipex: it has 0 launches" in capsys.readouterr().out
    before = path.read_bytes()
    assert accept(runs[0]) == 1
    assert "is in the baseline already" in capsys.readouterr().out
    assert path.read_bytes() == before
    assert live() == [(model, runs[0]) for model in MODELS]


def test_the_folder_is_named_by_option_or_environment(runs, tmp_path, monkeypatch, capsys):
    """`--baselines` has precedence over IPEXPERF_BASELINES, which test runs read too."""
    monkeypatch.setenv("IPEXPERF_BASELINES", "kept")
    assert accept(runs[0]) == 0
    assert sessions(tmp_path / "kept" / f"{KEY}.json") == [(model, runs[0]) for model in MODELS]
    assert not (tmp_path / "baselines").exists()
    capsys.readouterr()
    assert main(["baseline", "show", "vgg16-cpu-bf16-infer-ipex"]) == 0
    assert runs[0] in capsys.readouterr().out
    assert main(["baseline", "list", "--baselines", "elsewhere"]) == 2
    assert "there is no folder elsewhere" in capsys.readouterr().err


def test_an_empty_folder_prints_that_there_is_no_baseline(tmp_path, capsys):
    """As in a new checkout. No output would look like a fault."""
    (tmp_path / "none").mkdir()
    assert main(["baseline", "list", "--baselines", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out.startswith("no baseline in ")


@pytest.mark.parametrize("accepted_before", [False, True])
@pytest.mark.parametrize(("trouble", "told"), [(NO_ROWS, "the disk is full"), (NO_COMMIT, "FOREIGN KEY constraint")])
def test_a_history_that_cannot_be_written_leaves_the_file_unchanged(runs, path, capsys, trouble, told, accepted_before):
    """One sentence and exit status 2, whether the row or its commit fails. The next try succeeds."""
    if accepted_before:
        accept(runs[0])
    before, rows = path.read_bytes() if accepted_before else None, live()
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        connection.executescript(trouble)
    capsys.readouterr()
    assert accept(runs[1]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"ipexperf: the history ipexperf.db cannot be used: {told}")
    assert (said.err.count("\n"), said.out) == (1, "")
    assert (path.read_bytes() if path.exists() else None) == before
    assert live() == rows
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        connection.execute("DROP TRIGGER no_rows")
    assert accept(runs[1]) == 0
    assert sorted(live()) == sorted(sessions(path))


def test_a_file_that_cannot_be_written_leaves_no_row(runs, path, capsys):
    """One sentence and exit status 2."""
    path.parent.write_text("a file where the folder should be")
    assert accept(runs[0]) == 2
    told = capsys.readouterr().err
    assert "cannot be" in told
    assert told.count("\n") == 1
    assert live() == []


def test_the_lock_of_a_case_on_a_card_says_under_which_driver(runs, tmp_path):
    """Of one digest, that of the case which was accepted last, and a case on the CPU leaves it."""
    lock = Lock("3.11.7", "CPython linux x86_64")
    for driver, told in (("1.14", "1.14"), ("1.15", "1.15"), ("", "1.15")):
        software = {**ENVIRONMENT["software"], **({"accelerator": {"driver": driver}} if driver else {})}
        environment = {**ENVIRONMENT, "software": software, "lock": lock.digest, "lock_text": lock.text}
        with History.open("ipexperf.db") as history:
            uid = history.start_run(environment, {"started_at": "2026-05-04T10:00:00Z"})
            measured = make_measurement(environment=environment)
            history.record(uid, measured, Verdict("no_baseline", "nothing was accepted"))
        assert main(["baseline", "accept", uid, "--reason", "right", "--by", "ada", "--replace"]) == 0
        text = (tmp_path / "baselines" / "locks" / f"{lock.digest}.txt").read_text()
        assert f"# driver {told}\n" in text


def test_a_live_baseline_says_that_its_driver_was_another():
    old, new = (Lock("3.11.7", "CPython linux x86_64", driver=version) for version in ("1.14", "1.15"))
    case = make_case()
    for current, told in ((new, "; accepted under the driver 1.14, here is 1.15"), (old, "the same software")):
        arms = OtherArms(live={case: None}, wanted={case: Wanted(old)}, current=current)
        [line] = arms.lines({case: []})
        assert line.endswith(told)


def test_of_two_cards_in_one_machine_neither_is_held_against_the_other(runs, capsys):
    """The second has no baseline yet. Where the first is another one than before, that is said, and fails."""

    def on(card, number):
        hardware = {"host": "lab", "accelerator": {"properties": card, "pinned": f"ZE_AFFINITY_MASK={number}"}}
        return {**ENVIRONMENT, "machine_key": card, "hardware": hardware}

    uids = []
    with History.open("ipexperf.db") as history:
        for number, card in enumerate(("a770", "b580")):
            uids.append(history.start_run(on(card, number), {"started_at": f"2026-05-0{4 + number}T10:00:00Z"}))
            history.record(uids[-1], make_measurement(environment=on(card, number)), Verdict("no_baseline", "first"))
    keys = query("SELECT machine_key FROM series WHERE metric = 'step_time'")
    assert (keys.count(("a770",)), keys.count(("b580",))) == (1, 1)
    assert main(["compare", *uids]) == 0
    out = capsys.readouterr().out
    assert "machine_key: a770 -> b580" in out
    assert main(["baseline", "accept", uids[0], "--reason", "right", "--by", "ada"]) == 0
    found = []
    for number in (1, 0):
        baselines = RunBaselines(Options(baselines=Path("baselines")), [])
        baselines.read_files()
        found.append(baselines.judge(make_measurement(environment=on("b580", number)), ()))
    assert [(verdict.outcome, verdict.fails) for verdict in found] == [("no_baseline", False), ("not_comparable", True)]
    assert "accelerator.properties: a770 -> b580" in found[1].reason
