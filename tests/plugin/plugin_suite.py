"""A suite of fake cases in a folder of its own, run by a pytest of its own, in an interpreter without torch."""

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from forked_pytest import QUICK, Servers

ROOT = Path(__file__).parents[2]
NO_TORCH = ROOT / "tests" / "fakes" / "no_torch"
NO_TRANSFORMERS = ROOT / "tests" / "fakes" / "no_transformers"
PLUGIN = ("-p", "ipexperf.short_options", *QUICK)
CELL = ("--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
SHORT = ("--perf-launches", "1", "--perf-samples", "3", "--perf-seconds", "0.05")
PATIENCE = 60

INI = """
[pytest]
addopts = --strict-markers --strict-config
filterwarnings = error
"""
# The machine that runs these tests is anybody's. They look neither at how free it was nor at how sharp ratios are:
# three turns, which are as many samples as SHORT asks for.
CONFTEST = f"""
{(ROOT / "tests" / "fakes" / "any_machine.py").read_text()}
import functools

from ipexperf.compare import against, group

against.Effort = group.Effort = functools.partial(group.Effort, turns=3, most=3, seconds=0.02)
"""
BUSY = """
from ipexperf.compare import together
from ipexperf.conduct import gate

honest, BEGUN = together.play, []


def play(*given):
    BEGUN.append(given)
    return honest(*given)


together.play = play
gate.contended = lambda *_: {said!r} if len(BEGUN) <= {times} else ""
"""
WITHOUT_WORKERS = f"""
import sys

import pytest

sys.path.append({str(ROOT / "tests")!r})
from fake_rounds import played

played(pytest.MonkeyPatch(), lambda _: 0.01)
"""
SUITE = """
import pytest


@pytest.mark.perf
def test_it(perf):
    perf()
"""


class Suite:
    """A folder with a suite in it, and a way to run it."""

    def __init__(self, pytester: pytest.Pytester, fake: str, servers: Servers) -> None:
        self.pytester = pytester
        self.servers = servers
        self.path = pytester.path
        self.fake = fake
        # With "=": pytest looks for its ini file beside every argument that is a path.
        self.load = (f"--perf-load={fake}",)
        (self.path / "pytest.ini").write_text(INI)
        (self.path / "conftest.py").write_text(CONFTEST)
        (self.path / "test_suite.py").write_text(SUITE)

    def keep(self, folder: Path) -> None:
        """Copies everything into an empty folder, for `kept_in`."""
        shutil.copytree(self.path, folder, dirs_exist_ok=True)

    def kept_in(self, folder: Path) -> bool:
        """Whether `keep` filled this folder before: then it is copied here, and nobody has to measure it again."""
        if not any(folder.iterdir()):
            return False
        shutil.copytree(folder, self.path, dirs_exist_ok=True)
        return True

    def short_pairs(self) -> None:
        """Shortens pairs as SHORT does launches: on the command line, pairs take no number of samples."""
        self.always("--perf-samples=3", "--perf-seconds=0.05")

    def always(self, *words: str) -> None:
        """Write these options into the ini file, beside those that are there."""
        path = self.path / "pytest.ini"
        before, _, ours = path.read_text().partition("ipexperf = ")
        path.write_text(f"{before}ipexperf = {' '.join([*ours.split(), *words])}\n")

    def busy(self, times: int, said: str = "busy") -> None:
        """Lets so many rounds find that the machine is not theirs, and no later one."""
        with (self.path / "conftest.py").open("a") as conftest:
            conftest.write(BUSY.format(times=times, said=said))

    def without_workers(self) -> None:
        """Lets each arm of a round take as long as the others, without a process: what comes of it is looked at."""
        with (self.path / "conftest.py").open("a") as conftest:
            conftest.write(WITHOUT_WORKERS)

    def run(self, model: str, *arguments: str, cell: tuple[str, ...] = CELL) -> pytest.RunResult:
        """Measures these models in one cell, quickly."""
        return self.raw(*self.load, "--model", model, *cell, *SHORT, *arguments)

    def raw(self, *arguments: str, patience: int = PATIENCE) -> pytest.RunResult:
        """Runs pytest with the plugin and these arguments only."""
        base = f"--basetemp={self.path / 'basetemp'}"
        return self.servers.run("pytest", (base, *PLUGIN, *arguments), self.path, patience)

    def command(self, *words: str) -> pytest.RunResult:
        """Runs `ipexperf` with these words."""
        return self.servers.run("ipexperf", words, self.path, PATIENCE)

    def fresh(self, *arguments: str) -> pytest.RunResult:
        """Runs pytest in an interpreter that has imported nothing."""
        return self.pytester.runpytest_subprocess(*PLUGIN, *arguments, timeout=PATIENCE)

    @contextmanager
    def start(
        self, model: str, *arguments: str, cell: tuple[str, ...] = CELL, short: tuple[str, ...] = SHORT
    ) -> Iterator[subprocess.Popen[str]]:
        """Starts a measurement in a fresh interpreter, and does not wait for it. It is over at the end of the block."""
        words = (sys.executable, "-m", "pytest", *PLUGIN, *self.load, "--model", model, *cell, *short, *arguments)
        with subprocess.Popen(
            words, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def query(self, sql: str, database: str = "ipexperf.db") -> list[tuple[Any, ...]]:
        """Asks the database, as anybody with sqlite3 can."""
        with closing(sqlite3.connect(f"file:{self.path / database}?mode=ro", uri=True)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return connection.execute(sql).fetchall()

    def launches(self) -> list[tuple[Any, ...]]:
        """Model and outcome of every recorded launch."""
        return self.query('SELECT c.model, l.outcome FROM launch l JOIN "case" c ON c.id = l.case_id ORDER BY l.rowid')

    def verdicts(self, what: str, order: str = "judged_at") -> list[tuple[Any, ...]]:
        """What is asked of every verdict on a case: those on its other metrics are in other series."""
        return self.query(
            f"SELECT {what} FROM verdict v JOIN series s ON s.id = v.series_id "  # noqa: S608 - our own words
            f"WHERE s.metric = 'step_time' ORDER BY {order}"
        )

    def properties(self) -> dict[str, str]:
        """What `junit.xml` says of the only test."""
        [case] = ET.parse(self.path / "junit.xml").getroot().iter("testcase")  # noqa: S314 - our own file
        return {x.get("name", ""): x.get("value", "") for x in case.iter("property")}

    def statuses(self) -> list[str]:
        return [status for (status,) in self.query("SELECT status FROM run ORDER BY id")]

    def pids(self) -> tuple[int, ...]:
        """Waits until a fake model has told its pids."""
        path = self.path / "pids"
        until = time.monotonic() + PATIENCE
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.02)
        return tuple(map(int, path.read_text().split()))


class LookedAt:
    """Runs one case whose structure the test chooses."""

    def __init__(self, suite: Suite) -> None:
        self.suite, self.path = suite, suite.path / "ran.json"

    def run(self, ran: dict[str, int], *arguments: str) -> pytest.RunResult:
        self.path.write_text(json.dumps(ran))
        load = (f"--perf-load={self.suite.fake},{Path(self.suite.fake).with_name('looked_at.py')}",)
        cell = ("--device", "fake", "--dtype", "fp32", "--mode", "looked_at", "--stack", "plain")
        return self.suite.raw(*load, "--model", "tiny", *cell, *SHORT, "--junitxml=junit.xml", *arguments)

    def told(self, *arguments: str) -> str:
        """What the command says, in a process of its own: pytester forgets what was imported here."""
        found = self.suite.command(*arguments)
        assert found.ret == 0, found.stderr.str()
        return found.stdout.str()
