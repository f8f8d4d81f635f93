"""Where the histories of these tests are: in files, and on a PostgreSQL server."""

import importlib.util
import shutil
from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a history without a run, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "history.db"
    History.open(path).close()
    return path


@pytest.fixture
def target(empty_file: Path, tmp_path: Path) -> str:
    """A place for a test that opens its history more than once."""
    return str(shutil.copy(empty_file, tmp_path / "history.db"))


@pytest.fixture
def history(target: str) -> Iterator[History]:
    """A history without a run."""
    with History.open(target) as opened:
        yield opened
