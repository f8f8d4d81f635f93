"""A report of a history made by hand, and a browser to look at it, both made once."""

from collections.abc import Iterator
from pathlib import Path

import browser as webdriver
import pytest
from dashboard_records import fill

from ipexperf.dashboard import writing
from ipexperf.history import History


@pytest.fixture(scope="session")
def history_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("history") / "nightly.db")


@pytest.fixture(scope="session")
def report(history_path: Path) -> Path:
    """The folder of a report."""
    folder = history_path.parent / "report"
    with History.open(history_path, create=False) as history:
        writing.write(history, folder)
    return folder


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Browser]:
    if webdriver.MISSING:
        pytest.skip(webdriver.MISSING)
    made = webdriver.Browser(tmp_path_factory.mktemp("browser") / "driver.log")
    yield made
    made.close()
