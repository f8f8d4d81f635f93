"""Merging histories: nothing is lost or doubled, and files that cannot be merged are refused."""

import sqlite3
from contextlib import closing

import pytest
from history_records import (
    CRASHED,
    ENVIRONMENT,
    HARDWARE,
    OK,
    make_case,
    make_launch,
    make_measurement,
    make_round,
    make_seat,
)

from ipexperf.errors import HistoryError
from ipexperf.history import History, merging, schema
from ipexperf.history.records import Accepted
from ipexperf.judge.policy import Policy

TABLES = tuple(schema.metadata.tables)


def fill(path, *models, environment=ENVIRONMENT, finish=True):
    """One run of these models, in two rounds, and its uid."""
    with History.open(path) as history:
        uid = history.start_run(environment, {"suite": "nightly"})
        for model in models:
            bad = model == "bad"
            launches = (make_launch(0, 0.01), CRASHED) if bad else (make_launch(0, 0.01), make_launch(1, 0.012))
            history.record(uid, make_measurement(make_case(model), launches=launches, environment=environment), OK)
        for number in (1, 2):
            arms = [make_seat(make_case(model), 0.01, "case") for model in models]
            twin = make_seat(make_case(models[0]), 0.01, "twin")
            history.record_round(uid, make_round(*arms, twin, uid=f"{number}{uid[1:]}", number=number))
        if finish:
            history.finish_run(uid, "finished")
    return uid


def counts(path):
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in TABLES}  # noqa: S608


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def take(path, *others):
    """What `ipexperf db merge` does."""
    merging.check(path, others)
    with History.open(path) as history:
        return [merging.merge(history, other) for other in others]


@pytest.fixture
def here(tmp_path):
    return tmp_path / "here.db"


@pytest.fixture
def there(tmp_path):
    return tmp_path / "there.db"


def test_a_merged_history_has_the_runs_of_both_unchanged(here, there):
    """Row ids differ in both files. Every launch, sample, verdict and environment is attached to its run."""
    fill(here, "alexnet", "resnet50")
    other = {**ENVIRONMENT, "machine_key": "xeon-6980p"}
    uid = fill(there, "vgg16", "resnet50", "bad", environment=other)
    with History.open(there) as history:
        whole, samples = history.show(uid), history.samples(uid, make_case("vgg16").uid)
    (merged,) = take(here, there)
    counted = {"run": 1, "case": 2, "launch": 6, "round": 2, "continued": 0}
    assert {name: merged[name] for name in counted} == counted
    with History.open(here) as history:
        assert history.show(uid) == whole
        assert len(whole.rounds) == 2
        assert history.samples(uid, make_case("vgg16").uid) == samples
        assert len(history.runs()) == 2
        with history._engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []


def test_merging_again_or_back_changes_nothing(here, there):
    """Rows are identified by content."""
    fill(here, "alexnet")
    fill(there, "vgg16", "bad")
    assert any(take(here, there)[0].values())
    before, other = dump(here), dump(there)
    assert not any(take(here, there)[0].values())
    assert dump(here) == before
    assert dump(there) == other
    take(there, here)
    assert counts(there) == counts(here)


def test_a_run_merged_while_it_was_running_is_completed_by_the_next_merge(here, there):
    """Merging back never makes it unfinished."""
    fill(here, "alexnet")
    uid = fill(there, "vgg16", environment=HARDWARE, finish=False)
    take(here, there)
    with History.open(there) as history:
        history.record(uid, make_measurement(make_case("resnet50")), OK)
        history.record_round(uid, make_round(make_seat(make_case("vgg16"), 0.01), make_seat(make_case(), 0.01)))
        history.settle(uid, {"line": "platform shift"}, {}, Policy().for_run())
        history.finish_run(uid, "finished")
    (merged,) = take(here, there)
    assert [merged[name] for name in ("run", "continued", "case", "round")] == [0, 1, 1, 1]
    with History.open(here) as history:
        detail = history.show(uid)
        assert (detail.run.status, detail.run.meta["settled"]["line"]) == ("finished", "platform shift")
        assert [x.case.axes["model"] for x in detail.cases] == ["resnet50", "vgg16"]
        assert len(detail.rounds) == 3
    assert take(here, there)[0]["continued"] == 0


def test_a_case_with_more_launches_replaces_the_merged_one(here, there):
    """It was merged while it waited to be measured again. Its first record does not come back."""
    fill(here, "alexnet")
    uid = fill(there, "vgg16", "resnet50", finish=False)
    earlier = there.with_name("earlier.db")
    earlier.write_bytes(there.read_bytes())
    take(here, there)
    launches = tuple(make_launch(number, 0.02 + number / 1000) for number in range(4))
    with History.open(there) as history:
        history.record(uid, make_measurement(make_case("vgg16"), launches=launches), OK, again=True)
        whole, samples = history.show(uid), history.samples(uid, make_case("vgg16").uid)
    assert any(take(here, there)[0].values())
    for _ in range(2):
        with History.open(here) as history:
            assert (history.show(uid).cases, history.show(uid).rounds) == (whole.cases, whole.rounds)
            assert history.samples(uid, make_case("vgg16").uid) == samples
        assert not any(take(here, earlier)[0].values())


def test_acceptances_are_merged_with_what_superseded_them(here, there):
    uids = [fill(there, "resnet50") for _ in range(2)]
    fill(here, "alexnet")
    for uid in uids:
        accept(there, uid)
        take(here, there)
    query = "SELECT run.uid, later.uid FROM baseline b JOIN run ON run.id = b.run_id "
    query += "LEFT JOIN baseline n ON n.id = b.superseded_by LEFT JOIN run later ON later.id = n.run_id ORDER BY b.id"
    with closing(sqlite3.connect(here)) as connection:
        assert connection.execute(query).fetchall() == [(uids[0], uids[1]), (uids[1], None)]


def accept(path, uid):
    case, accepted_at = make_case(), "2026-05-05T10:00:00Z"
    acceptance = Accepted(uid, case, case, "xeon-8480-2s", frozenset({uid}), accepted_at, "ada", "x")
    with History.open(path) as history, history.accepting([acceptance]):
        pass


def refusal(here, *others):
    """The sentence with which a merge is refused. It wrote nothing."""
    before = dump(here)
    with pytest.raises(HistoryError) as raised:
        take(here, *others)
    assert dump(here) == before
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_files_that_cannot_be_merged_are_refused_before_anything_is_written(here, there, tmp_path):
    """Itself, a missing file, or no database. Good files beside it wait too."""
    fill(here, "alexnet")
    fill(there, "vgg16")
    assert "is the history itself" in refusal(here, there, here)
    link = tmp_path / "link.db"
    link.symlink_to(here)
    assert "is the history itself" in refusal(here, link)
    assert "there is no history" in refusal(here, there, tmp_path / "missing.db")
    text = tmp_path / "text.db"
    text.write_text("model,time\n" * 200)
    assert "file is not a database" in refusal(here, there, text)


@pytest.mark.parametrize(
    ("revision", "advice"), [("0042", "upgrade ipexperf"), ("0000", "run `ipexperf db upgrade --db ")]
)
def test_another_schema_is_refused(here, there, revision, advice):
    """Its rows could be misread. The other file belongs to somebody else and is not migrated."""
    fill(here, "alexnet")
    fill(there, "vgg16")
    with closing(sqlite3.connect(there)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()
    other = dump(there)
    message = refusal(here, there)
    assert f"has schema {revision}, and this program {schema.REVISION}: {advice}" in message
    assert dump(there) == other


def test_a_merge_that_fails_halfway_is_rolled_back(here, there):
    """The last of the tables cannot be written."""
    fill(here, "alexnet")
    fill(there, "vgg16")
    before = dump(here)
    with closing(sqlite3.connect(here)) as connection:
        trigger = "CREATE TRIGGER no_rows BEFORE INSERT ON verdict BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        connection.execute(trigger)
    with pytest.raises(HistoryError, match="cannot be used: the disk is full"):
        take(here, there)
    with closing(sqlite3.connect(here)) as connection:
        connection.execute("DROP TRIGGER no_rows")
    assert dump(here) == before
