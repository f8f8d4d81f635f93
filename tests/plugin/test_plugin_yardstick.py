"""`--perf-yardstick`: cases take turns with it, in a series of their own; without one nothing is measured."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from ipexperf.conduct import yardstick

if TYPE_CHECKING:
    from plugin_suite import Suite


def test_without_a_yardstick_nothing_is_measured(suite: Suite) -> None:
    result = suite.run("tiny", "--perf-yardstick")
    assert result.ret == 4
    told = "--perf-yardstick: there is no yardstick in *.ipexperf: make one with `ipexperf yardstick make`"
    result.stderr.fnmatch_lines([f"*{told}"])


def test_a_case_beside_a_yardstick_is_a_case_of_its_own(suite: Suite) -> None:
    """Its name says so, its environment names the yardstick, and both times are kept."""
    packages = suite.path / "packages.txt"
    packages.write_text("# nothing\n")
    yardstick.make(suite.path / ".ipexperf", packages, lambda _: None)
    result = suite.run("tiny", "--perf-yardstick")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*tiny-fake-fp32-spin-plain+yardstick:on*"])
    with closing(sqlite3.connect(suite.path / "ipexperf.db")) as connection:
        metrics = {row[0] for row in connection.execute("SELECT metric FROM series")}
        documents = [json.loads(row[0]) for row in connection.execute("SELECT doc FROM environment")]
    assert {"step_time", "relative_time", "yardstick_time"} <= metrics
    assert [len(one["yardstick"]["content"]) for one in documents if "yardstick" in one] == [12]


def test_pairs_need_none(suite: Suite) -> None:
    result = suite.raw(*suite.load, "--model", "tiny", "--device", "fake", "--dtype", "fp32", "--mode", "spin",
                       "--stack", "plain", "--perf-yardstick", "--perf-against", "dtype=bf16")  # fmt: skip
    assert result.ret == 4
    told = "--perf-yardstick: pairs take turns with the other arm, and need no yardstick"
    result.stderr.fnmatch_lines([f"*{told}"])


def test_a_host_of_a_fleet_has_a_yardstick_of_its_own(suite: Suite) -> None:
    """A host without one takes no part, and equal hosts are equal in that too."""
    packages = suite.path / "packages.txt"
    packages.write_text("# nothing\n")
    host = suite.path / ".ipexperf/fleet/local"
    yardstick.make(host / "a/.ipexperf", packages, lambda _: None)
    result = suite.run("tiny", "--perf-yardstick", "--perf-fleet=local:a,b")
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["HOST b TOOK NO PART: --perf-yardstick: there is no yardstick in *local/b/.ipexperf*"])
    [(params,)] = suite.query("SELECT json_extract(params, '$.knobs.yardstick') FROM \"case\"")
    assert params == "on"
    metrics = {name for (name,) in suite.query("SELECT metric FROM series")}
    assert {"step_time", "relative_time", "yardstick_time"} <= metrics
