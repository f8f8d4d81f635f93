"""Where the histories of these tests are: in files of SQLite, and in databases of a PostgreSQL server."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import postgres
import pytest

from ipexperf.history import History


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """One server for all tests."""
    programs = postgres.binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed here: initdb is not found")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed here: it comes with the extra `postgresql`")
    with postgres.running(programs) as running:
        yield running


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def empty_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Where a history can be made: each call gives a place that nobody else has and where there is nothing yet."""
    if request.param == "sqlite":
        return lambda: str(tmp_path_factory.mktemp("history") / "history.db")
    database: Callable[[], str] = request.getfixturevalue("server").database
    return database


@pytest.fixture(scope="session")
def place(empty_place: Callable[[], str], request: pytest.FixtureRequest) -> Callable[[], str]:
    """Where a history can be opened: each is a copy of one that has its tables, which is quicker."""
    first = empty_place()
    History.open(first).close()
    if "://" not in first:
        return lambda: shutil.copy(first, empty_place())
    server = request.getfixturevalue("server")
    return lambda: server.database(first.rpartition("/")[2].partition("?")[0])


@pytest.fixture
def target(place: Callable[[], str]) -> str:
    """A place for a test that opens its history more than once."""
    return place()


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a history without a run, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "history.db"
    History.open(path).close()
    return path


@pytest.fixture
def history(empty_file: Path, tmp_path: Path) -> Iterator[History]:
    """A history without a run, in a file. Tests of what only a database does have both kinds."""
    with History.open(shutil.copy(empty_file, tmp_path / "history.db")) as opened:
        yield opened
