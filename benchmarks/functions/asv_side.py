"""The same suite under asv: two commits that take turns, compared as `asv continuous` compares them.

Between two calls of a benchmark's `setup` asv calls it many times: tests that ask for one before each call are not
comparable.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

FACTOR = 1.1
"""asv's own."""
ROUNDS = 2
"""Its own too: each commit is measured so often, in turns."""
BENCHMARKS = '''
import functools
import json
import os
import pathlib
import runpy

import pytest

for path in pathlib.Path(os.environ["SUITE"]).glob("suite/*_test.py"):
    runpy.run_path(str(path))  # what it imports is there in asv's server, before it forks


class Taken:
    """A `benchmark` that keeps the function in place of measuring it."""

    enabled, disabled, group, stats = True, False, None, None

    def __init__(self):
        self.call, self.extra_info = None, {}

    def _raw(self, function, *args, **kwargs):
        self.call = functools.partial(function, *args, **kwargs)
        return self.call()

    def _raw_pedantic(self, function, **more):
        pytest.skip("asks for a setup before each call")

    def __call__(self, function, *args, **kwargs):
        return self._raw(function, *args, **kwargs)


class Plugin:
    def __init__(self):
        self.taken = Taken()

    @pytest.fixture
    def benchmark(self):
        return self.taken


class Suite:
    params = json.loads(pathlib.Path(os.environ["TESTS"]).read_text())
    param_names = ["test"]

    def setup(self, test):
        os.chdir(os.environ["SUITE"])
        plugin = Plugin()
        pytest.main([test, "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "-p", "no:ipexperf"], plugins=[plugin])
        self.call = plugin.taken.call

    def time_test(self, test):
        self.call()
'''
CONFIG = {"version": 1, "project": "suite", "repo": ".", "branches": ["HEAD"], "environment_type": "existing"}
_ROW = re.compile(r"^\|\s*(\S?)\s*\|.*\|\s*~?([\d.]+|n/a)\s*\|\s*bench\.Suite\.time_test\('(.*)'\)")


def compared(folder: Path, tests: list[str], environment: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Each test with its outcome and its ratio. `environment` is for both commits; the second one has `PLANT=1` too."""
    place = folder / "asv"
    (place / "benchmarks").mkdir(parents=True)
    (place / "benchmarks" / "__init__.py").touch()
    (place / "benchmarks" / "bench.py").write_text(BENCHMARKS)
    (place / "asv.conf.json").write_text(json.dumps(CONFIG))
    (place / "tests.json").write_text(json.dumps(tests))
    shared = {**environment, "TESTS": str(place / "tests.json"), "SUITE": str(folder)}
    run = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    commits = []
    for _ in range(2):
        subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "one"], cwd=place, check=True)
        told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=place, check=True, capture_output=True, text=True)
        commits.append(told.stdout.strip())
    asv = [sys.executable, "-m", "asv"]
    subprocess.run([*asv, "machine", "--yes"], cwd=place, check=True, capture_output=True)
    for _ in range(ROUNDS):
        for plant, commit in enumerate(commits):
            words = ("run", "--python=same", f"--set-commit-hash={commit}", "-a", "rounds=1", "--append-samples")
            subprocess.run(
                [*asv, *words], cwd=place, env={**shared, "PLANT": str(plant)}, check=False, capture_output=True
            )
    words = ("compare", *commits, f"--factor={FACTOR}")
    told = subprocess.run([*asv, *words], cwd=place, env=dict(os.environ), check=True, capture_output=True, text=True)
    for line in told.stdout.splitlines():
        if (row := _ROW.match(line)) and row[2] != "n/a":
            yield row[3], {"+": "regressed", "-": "improved"}.get(row[1], "ok"), float(row[2])
