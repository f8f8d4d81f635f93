"""Opening: what is created, migrated, backed up and refused."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from history_records import HARDWARE, OK, make_measurement

from ipexperf import cli
from ipexperf.errors import HistoryError
from ipexperf.history import History, database, schema

GOLDEN = Path(__file__).parents[1] / "golden" / "history.sql"
SECOND = """
import sqlalchemy as sa
from alembic import op
revision = "0007"
down_revision = "0006"

def upgrade():
    op.add_column("run", sa.Column("note", sa.Text))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.db"


@pytest.fixture
def future(tmp_path, monkeypatch):
    """Let the program be one revision ahead of the one that is shipped."""
    migrations = tmp_path / "migrations"
    shutil.copytree(database.MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    (migrations / "versions" / "0007_note.py").write_text(SECOND)
    monkeypatch.setattr(database, "MIGRATIONS", migrations)
    monkeypatch.setattr(schema, "REVISION", "0007")


def refusal(path, **options):
    with pytest.raises(HistoryError) as raised:
        History.open(path, **options)
    message = str(raised.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


def test_a_new_history_and_a_migrated_one_have_the_schema_of_the_code(path):
    """The recorded history is of the first schema: the migrations bring it to where a new one begins."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(GOLDEN.read_text())
    for history_of in (path, path.with_name("new.db")):
        with History.open(history_of) as history, history._engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
            made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'measurement'").scalar_one()
            assert "WITHOUT ROWID" in made
    config = Config()
    config.set_main_option("script_location", str(database.MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.REVISION]


@pytest.mark.parametrize("form", [str, lambda path: f"sqlite:///{path}"])
def test_a_path_and_a_url_name_the_same_history(path, form):
    """Both are accepted, and opening again changes nothing."""
    with History.open(form(path)) as history:
        uid = history.start_run(HARDWARE, {})
    with History.open(path, create=False) as history:
        assert history.find_run("last").uid == uid
    assert [file.name for file in path.parent.iterdir()] == ["history.db"]


def test_an_older_history_is_backed_up_and_migrated(path, request):
    """The backup is the history as it was. The migrated file still has all of its content."""
    with History.open(path) as history:
        uid = history.start_run(HARDWARE, {})
        history.record(uid, make_measurement(), OK)
    request.getfixturevalue("future")
    with History.open(path) as history:
        assert len(history.measurements(uid)) == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0007",)]
    with closing(sqlite3.connect(path.with_name("history.db.backup-0006"))) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0006",)]
        assert connection.execute("SELECT uid FROM run").fetchall() == [(uid,)]


def test_a_migration_that_fails_changes_nothing(path, future, monkeypatch):
    """The whole migration is one transaction."""
    monkeypatch.setattr(schema, "REVISION", "0006")
    History.open(path).close()
    monkeypatch.setattr(schema, "REVISION", "0007")
    broken = SECOND + '    op.drop_table("nowhere")\n'
    (database.MIGRATIONS / "versions" / "0007_note.py").write_text(broken)
    assert "is unchanged, its migration failed: no such table: nowhere" in refusal(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0006",)]
        assert "note" not in {row[1] for row in connection.execute("PRAGMA table_info(run)")}


def test_an_unknown_argument_of_the_url_is_refused(path):
    """SQLAlchemy ignores it with a warning, so a user who asks for read-only access would write."""
    History.open(path).close()
    told = "cannot be opened: its driver does not take these arguments of the URL: mode."
    assert told in refusal(f"sqlite:///{path}?mode=ro")
    History.open(f"sqlite:///{path}?timeout=5").close()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE alembic_version SET version_num = '0042'", "has schema 0042, newer than the 0006 of this program"),
        ("UPDATE alembic_version SET version_num = '0005'", "has schema 0005, older than the 0006 of this program"),
        ("UPDATE alembic_version SET version_num = X'3030'", "has schema b'00', newer"),
        ("DROP TABLE alembic_version", "is a database of something else"),
    ],
)
def test_a_database_that_is_not_ours_is_refused_and_not_changed(path, sql, told):
    """Also where a run would begin: an old program must not write into what it does not understand."""
    History.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.commit()
    before = path.read_bytes()
    assert told in refusal(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_not_changed(path):
    """A mistyped path must not destroy a file."""
    path.write_text("model,time\nresnet50,0.01\n" * 100)
    before = path.read_bytes()
    assert "file is not a database" in refusal(path)
    assert path.read_bytes() == before


def test_a_place_that_cannot_hold_a_history_is_refused(path, tmp_path):
    """Every refusal is one sentence with the path in it."""
    assert "the folder of the history" in refusal(tmp_path / "nowhere" / "history.db")
    assert "is a folder" in refusal(tmp_path)
    assert "there is no history" in refusal(path, create=False)
    assert not path.exists()
    assert "unable to open database file" in refusal("/proc/history.db")
    assert "cannot be opened" in refusal("nosuchdatabase://host/name")
    assert "is neither a path nor a database URL" in refusal("://")


def test_an_upgrade_by_command_says_what_it_did(path, request, capsys):
    """It names both schemas and the copy; `db check` before it only tells that there is a newer one."""
    History.open(path).close()
    request.getfixturevalue("future")
    assert cli.main(["db", "check", "--db", str(path)]) == 0
    assert "this program writes schema 0007: `ipexperf db upgrade`" in capsys.readouterr().out
    assert cli.main(["db", "upgrade", "--db", str(path)]) == 0
    told = f"{path}: schema 0006 became 0007; as it was: history.db.backup-0006\n"
    assert capsys.readouterr().out == told
    assert path.with_name("history.db.backup-0006").exists()
    assert cli.main(["db", "upgrade", "--db", str(path)]) == 0
    assert "schema 0007 is the newest" in capsys.readouterr().out
