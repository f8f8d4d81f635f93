"""Suites of asv, unedited: their benchmarks are tests of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("asv_runner", reason="needs asv_runner: pip install 'ipexperf[asv]'")

from test_plugin_functions import LIBRARY, SLOWER, Functions

if TYPE_CHECKING:
    from plugin_suite import Suite

pytestmark = pytest.mark.process

CONFIGURATION = """{
    // As asv writes it.
    "version": 1,
    "benchmark_dir": "speed",
}
"""
BENCHMARKS = """
from pathlib import Path

from asv_runner.benchmarks.mark import SkipNotImplemented, skip_for_params

RAN = Path(__file__).with_name("ran")


class Cached:
    params = [[1, 2], ["a"]]
    param_names = ["count", "letter"]

    def setup_cache(self):
        with RAN.open("a") as ran:
            ran.write("x")
        Path("written").write_text("here")
        return [1, 2, 3]

    def setup(self, cache, count, letter):
        self.left = ["x"]
        if not hasattr(self, "read"):
            cache.append(count)
            self.read = cache, Path("written").read_text()

    def time_pop(self, cache, count, letter):
        self.left.pop()
        assert self.read == ([1, 2, 3, count], "here")

    @skip_for_params([(2, "a")])
    def time_one(self, cache, count, letter):
        return count


class Absent:
    def setup(self):
        raise NotImplementedError

    def time_it(self):
        raise ValueError


def time_later():
    raise SkipNotImplemented


def time_once():
    assert not hasattr(time_once, "called")
    time_once.called = True


time_once.number, time_once.repeat, time_once.warmup_time = 1, 1, 0


class Broken:
    def __init__(self):
        raise RuntimeError("cannot be made")

    def time_it(self):
        pass


def peakmem_list():
    return [0] * 1000


def timeraw_import():
    return "import json"


def track_size():
    return 1
"""


@pytest.fixture
def asv(suite: Suite) -> Functions:
    functions = Functions(suite)
    (functions.path / "asv.conf.json").write_text(CONFIGURATION)
    (functions.path / "speed").mkdir()
    functions.tests("", "speed/__init__.py")
    return functions


def test_each_benchmark_is_measured_as_asv_runs_it(asv: Functions) -> None:
    """One test a combination, each call after its setup, with its cache and in a folder of its own; what tells a number
    is a program, and what cannot be made a test that says so."""
    asv.tests(BENCHMARKS, "speed/suite.py")
    result = asv.run("asv.conf.json", "--perf-benchmark", "-rs")
    result.assert_outcomes(passed=7, skipped=3, failed=1)
    said = " ".join(result.stdout.str().split())
    assert "cannot be made" in said
    sql = "SELECT json_extract(params, '$.program'), json_extract(params, '$.unit') FROM \"case\" WHERE test IS NULL"
    numbers = asv.suite.query(sql)
    units = {"peakmem_list": "bytes", "timeraw_import": "s", "track_size": "unit"}
    assert dict(numbers) == {f"asv.conf.json::suite::{name}": unit for name, unit in units.items()}
    measured = ("Cached.time_one(1, 'a')", "Cached.time_pop(1, 'a')", "Cached.time_pop(2, 'a')", "time_once")
    recorded = sorted(test for test, outcome in asv.outcomes().items() if test and outcome == "no_baseline")
    assert recorded == [f"asv.conf.json::suite::{name}" for name in measured]
    assert (asv.path / "speed" / "ran").read_text() == "xx"  # once in the user's session, once in the one that is timed
    assert not (asv.path / "written").exists()


def test_what_became_slower_beside_a_commit_fails_alone(asv: Functions) -> None:
    """And a module that cannot be imported costs its own benchmarks."""
    asv.library(LIBRARY)
    asv.tests(
        "from library import total\n\n\ndef time_total():\n    total(2000)\n\n\n"
        "def time_same():\n    sorted(range(2000))\n",
        "speed/suite.py",
    )
    asv.tests("import not_installed\n\n\ndef time_it():\n    pass\n", "speed/other.py")
    asv.commit()
    asv.library(SLOWER)
    result = asv.run("asv.conf.json", "--perf-benchmark", "--perf-against=git:HEAD", "--perf-max-pairs=4")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR asv.conf.json::other - ModuleNotFoundError*"])
    regressed = [test for test, outcome in asv.outcomes().items() if test and outcome == "regressed"]
    assert regressed == ["asv.conf.json::suite::time_total"]


@pytest.mark.parametrize(
    ("conftest", "text", "said", "status"),
    [
        ("import sys\n\nsys.modules['json5'] = None\n", CONFIGURATION, "asv's suites need json5: pip install*", 4),
        ("", "[1]", "*asv.conf.json is no configuration of asv: *", pytest.ExitCode.INTERRUPTED),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    asv: Functions, conftest: str, text: str, said: str, status: int
) -> None:
    with (asv.path / "conftest.py").open("a") as file:
        file.write(conftest)
    (asv.path / "asv.conf.json").write_text(text)
    result = asv.run("asv.conf.json", "--perf-benchmark")
    assert result.ret == status
    assert "Traceback" not in result.stdout.str()
    (result.stderr if status == pytest.ExitCode.USAGE_ERROR else result.stdout).fnmatch_lines([f"*{said}"])
